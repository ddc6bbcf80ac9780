"""A real RabbitMQ for end-to-end tests: one node of Debian's package with a name service, a cookie and data of its own; and
what a consumer in another language sees of it."""

import logging
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

from programs import LOOPBACK, NotReady, Program, free_port, wait_for

# Not those of /usr/sbin, which change the user and write into the package's folders.
PROGRAMS = pathlib.Path("/usr/lib/rabbitmq/bin")
CONTROL_S = 120
READY = "Starting broker... completed"
USER, PASSWORD = "tocsin", "wire-9f2e-horse"
LOOPBACK_ONLY = "-kernel inet_dist_use_interface {127,0,0,1}"


def why_not():
    """None where RabbitMQ can be run and read; otherwise the reason to skip."""
    if not (PROGRAMS / "rabbitmq-server").exists():
        return f"{PROGRAMS}/rabbitmq-server is not installed (Debian: rabbitmq-server)"
    if not shutil.which("epmd"):
        return "the program epmd is not installed (Debian: erlang-base)"
    try:
        import pika  # noqa: F401
    except ImportError:
        return "the Python module pika is not installed (Debian: python3-pika)"
    return None


class NameService(Program):
    def __init__(self, folder):
        port = free_port()
        super().__init__(["epmd", "-address", LOOPBACK.host, "-port", port], folder)
        self.port = port
        self.start()

    def _ready(self):
        try:
            socket.create_connection((self.host, self.port), timeout=1).close()
            return True
        except OSError:
            return False


class RabbitMqServer(Program):
    """Ready when the constructor returns."""

    start_s = 120

    def __init__(self, folder):
        super().__init__([], folder)
        self.password_file = self.folder / "password"
        self.password_file.write_text(PASSWORD + "\n")
        self.password_file.chmod(0o600)
        self.port, distribution_port = free_port(), free_port()
        self.names = NameService(self.folder / "names")
        self.settings = {
            "HOME": self.folder,  # of the cookie
            "ERL_EPMD_ADDRESS": LOOPBACK.host,
            "ERL_EPMD_PORT": self.names.port,
            "RABBITMQ_NODENAME": f"tocsin{self.port}@localhost",
            "RABBITMQ_DIST_PORT": distribution_port,
            "RABBITMQ_MNESIA_BASE": self.folder / "data",
            "RABBITMQ_LOG_BASE": self.folder / "logs",
            "RABBITMQ_CONFIG_FILE": self.folder / "rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": self.folder / "enabled_plugins",
            "RABBITMQ_PID_FILE": self.folder / "pid",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": LOOPBACK_ONLY,
            "RABBITMQ_CTL_ERL_ARGS": LOOPBACK_ONLY,
            "RUNNING_UNDER_SYSTEMD": "true",  # the script becomes the server, so that signals reach it
        }
        (self.folder / "enabled_plugins").write_text("[].\n")
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = {LOOPBACK.host}:{self.port}\n"
            f"default_user = {USER}\n"
            f"default_pass = {PASSWORD}\n"
            "vm_memory_high_watermark.relative = 0.6\n"
            "disk_free_limit.absolute = 50MB\n"
        )
        words = [f"{name}={value}" for name, value in self.settings.items()]
        self.arguments += ["env", *words, str(PROGRAMS / "rabbitmq-server")]
        try:
            self.start()
        except NotReady:
            self.names.kill()
            raise

    def launch(self):
        self.log.write_text("")  # what an earlier run has said
        super().launch()

    def _ready(self):
        return READY in self.output()

    def close(self):
        self.kill()
        self.names.kill()

    def flags(self):
        url = f"amqp://{USER}@{LOOPBACK.host}:{self.port}"
        return ["--rabbitmq-url", url, "--rabbitmq-password-file", self.password_file]

    def control(self, *words):
        """rabbitmqctl; takes some seconds."""
        environment = {**os.environ, **{name: str(value) for name, value in self.settings.items()}}
        subprocess.run([PROGRAMS / "rabbitmqctl", *words], env=environment, check=True, capture_output=True, timeout=CONTROL_S)

    def channel(self):
        """A channel of a connection of its own; closed with `channel.connection.close()`."""
        import pika

        login = pika.PlainCredentials(USER, PASSWORD)
        parameters = pika.ConnectionParameters(LOOPBACK.host, self.port, credentials=login, heartbeat=0)
        return pika.BlockingConnection(parameters).channel()

    def declare(self, queue, **arguments):
        """A durable queue, which outlives a kill from now on; arguments with _ for the dashes of their names."""
        channel = self.channel()
        named = {"x-" + name.replace("_", "-"): value for name, value in arguments.items()}
        channel.queue_declare(queue, durable=True, arguments=named)
        channel.connection.close()
        # RabbitMQ answers before that is on the disk: killed in the seconds after, it has neither the queue nor what it
        # has confirmed in it.
        self.control("eval", "mnesia:sync_log().")


class RabbitMqListener(threading.Thread):
    """Takes out of a queue whatever comes while `listening` is set, and notes when it came; connects again whenever the
    broker was away."""

    def __init__(self, server, queue):
        super().__init__(daemon=True)
        logging.getLogger("pika").setLevel(logging.CRITICAL)  # that a broker is away is what tests are about
        self.server, self.queue = server, queue
        self.messages = []  # (ns of the wall clock, properties, body)
        self.seen = set()
        self.stopping, self.listening = threading.Event(), threading.Event()
        self.listening.set()
        self.start()

    def run(self):
        import pika

        while not self.stopping.is_set():
            try:
                if self.listening.wait(0.1):
                    self._listen()
            except (pika.exceptions.AMQPError, OSError):
                self.stopping.wait(0.1)

    def _listen(self):
        channel = self.server.channel()
        channel.basic_qos(prefetch_count=500)
        channel.basic_consume(self.queue, self._take)
        while self.listening.is_set() and not self.stopping.is_set():
            channel.connection.process_data_events(time_limit=0.1)
        channel.connection.close()

    def _take(self, channel, method, properties, body):
        now_ns = time.time_ns()
        token = properties.headers["tocsin-token"]
        # What was not acknowledged before the broker died comes again, from the broker and not from the server.
        if not (method.redelivered and token in self.seen):
            self.messages.append((now_ns, properties, body))
        self.seen.add(token)
        channel.basic_ack(method.delivery_tag)

    def left(self):
        """How many are in the queue still."""
        channel = self.server.channel()
        count = channel.queue_declare(self.queue, passive=True).method.message_count
        channel.connection.close()
        return count

    def close(self):
        self.stopping.set()
        self.join(10)


class RabbitMqReader:
    """Takes messages out of a queue: (properties, body), in its order."""

    def __init__(self, server, queue):
        self.server, self.queue = server, queue
        self.messages = []

    def read_until(self, enough, within_s=60, what="what was read"):
        """Reads until `enough(messages)`; returns all messages so far."""
        channel = self.server.channel()

        def more():
            if enough(self.messages):
                return True
            while True:
                got, properties, body = channel.basic_get(self.queue, auto_ack=True)
                if got is None:
                    return False
                self.messages.append((properties, body))

        try:
            wait_for(more, within_s, f"{what}, of {len(self.messages)} messages")
        finally:
            channel.connection.close()
        return self.messages
