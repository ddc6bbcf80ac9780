"""The servers of the subjects: each starts on a free loopback port with its data in a folder of its own, says how it is set, can be
stopped, and can be killed and started again on the same data."""

import os
import pathlib
import re
import shutil
import subprocess

import procs

START_S = 60
RECOVER_S = 300


class Server:
    """What all have in common. `settings` is what stands in the results beside the figures."""

    settings = ""
    user = None  # a user to run as if we are root, for programs that refuse root

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.port = procs.free_port()
        self.process = None
        if self.user and os.geteuid() == 0:
            shutil.chown(self.folder, self.user)

    def command(self):
        raise NotImplementedError

    def ready(self):
        """True once a reserve or a submit would be answered."""
        raise NotImplementedError

    def environment(self):
        return {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}

    def start(self, limit_s=START_S):
        self.process = procs.Process(self.command(), self.folder / "server.log", self.user, self.environment(), self.folder)
        try:
            self.process.wait_until(self.ready, limit_s)
        except BaseException:
            self.process.kill()
            raise
        return self

    def addresses(self):
        return {"default": f"127.0.0.1:{self.port}"}

    def stop(self):
        if self.process:
            self.process.stop()

    def kill(self):
        if self.process:
            self.process.kill()

    def processes(self):
        """The names of its programs, with the ids of their processes."""
        return {type(self).__name__.lower(): self.process.pid}


class Tocsind(Server):
    settings = "tocsind --shards 1 --durability fsync, else as delivered"

    def __init__(self, folder, programs):
        super().__init__(folder)
        self.programs = programs
        self.doors = {}

    def command(self):
        (self.folder / "server.log").unlink(missing_ok=True)  # its lines name the ports of this start
        return [self.programs / "tocsind", "--http-listen", "127.0.0.1:0", "--resp-listen", "127.0.0.1:0", "--shards", "1",
                "--log-level", "warn", *self.store()]

    def store(self):
        return ["--data-dir", self.folder / "data", "--durability", "fsync"]

    def ready(self):
        line = re.search(r" ready http=(?P<http>\S+) resp=(?P<resp>\S+)", self.process.log.read_text(errors="replace"))
        if not line:
            return False
        self.doors = line.groupdict()
        body = b'{"max":1}'
        request = b"POST /v1/topics/ready/reserve HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        return procs.ask(int(self.doors["http"].rsplit(":", 1)[1]), request % (len(body), body)).startswith(b"HTTP/1.1 ")

    def addresses(self):
        return self.doors


class Redis(Server):
    """`sync` is always, everysec or none (no append-only file at all)."""

    def __init__(self, folder, sync):
        super().__init__(folder)
        self.sync = sync

    @staticmethod
    def describe(sync):
        if sync == "none":
            return "redis-server --appendonly no --save ''"
        return f"redis-server --appendonly yes --appendfsync {sync} --save '' --auto-aof-rewrite-percentage 0"

    def command(self):
        common = ["redis-server", "--bind", "127.0.0.1", "--port", self.port, "--dir", self.folder, "--save", ""]
        if self.sync == "none":
            return common + ["--appendonly", "no"]
        # Without rewrites: they would cost it throughput, and the runs are too short to need them.
        return common + ["--appendonly", "yes", "--appendfsync", self.sync, "--auto-aof-rewrite-percentage", "0"]

    def ready(self):
        return procs.ask(self.port, b"PING\r\n").startswith(b"+PONG")


class Replica(Redis):
    """Follows a Redis. Ready when it has all that its master had."""

    def __init__(self, folder, sync, master):
        super().__init__(folder, sync)
        self.master = master

    def command(self):
        return [*super().command(), "--replicaof", f"127.0.0.1 {self.master.port}"]

    def ready(self):
        return b"master_link_status:up" in procs.ask(self.port, b"INFO replication\r\n")


class Node(Tocsind):
    """A tocsind that shares a Redis with others."""

    def __init__(self, folder, programs, redis_port, flags=()):
        super().__init__(folder, programs)
        self.redis_port = redis_port
        self.flags = flags

    def store(self):
        return ["--store", "redis", "--redis-endpoints", f"127.0.0.1:{self.redis_port}", "--node-name", self.folder.name, *self.flags]


class TocsinOnRedis:
    """Nodes of tocsind and the redis-server that they share, which is set as the recipe's. To the runner it is a Server."""

    def __init__(self, folder, programs, sync, nodes, replica=False):
        self.folder = pathlib.Path(folder)
        self.redis = Redis(self.folder / "redis", sync)
        self.replicas = [Replica(self.folder / "replica", sync, self.redis)] if replica else []
        flags = self.waiting(replica)
        self.nodes = [Node(self.folder / f"node-{number}", programs, self.redis.port, flags) for number in range(1, nodes + 1)]

    @staticmethod
    def waiting(replica):
        return ["--redis-wait-replicas", "1"] if replica else []

    @classmethod
    def describe(cls, sync, nodes, replica=False):
        many = "" if nodes == 1 else f"{nodes} x "
        flags = "".join(f" {flag}" for flag in cls.waiting(replica))
        with_replica = ", and a replica" if replica else ""
        return f"{many}tocsind --store redis --shards 1{flags}, else as delivered, on {Redis.describe(sync)}{with_replica}"

    def start(self, limit_s=START_S):
        try:
            for server in (self.redis, *self.replicas, *self.nodes):
                server.start(limit_s)
        except BaseException:
            self.kill()
            raise
        return self

    def addresses(self):
        every = [node.addresses() for node in self.nodes]
        return {door: ",".join(addresses[door] for addresses in every) for door in every[0]}

    def processes(self):
        nodes = {f"tocsind {number}": node.process.pid for number, node in enumerate(self.nodes, 1)}
        if len(nodes) == 1:
            nodes = {"tocsind": nodes["tocsind 1"]}
        return {**nodes, "redis-server": self.redis.process.pid}

    def stop(self):
        for server in (*self.nodes, *self.replicas, self.redis):
            server.stop()

    def kill(self):
        for server in (*self.nodes, *self.replicas, self.redis):
            server.kill()


class Beanstalkd(Server):
    """`sync_ms` is the time between two syncs of its log, 0 for each write, None for no log."""

    def __init__(self, folder, sync_ms):
        super().__init__(folder)
        self.sync_ms = sync_ms

    @staticmethod
    def describe(sync_ms):
        return "beanstalkd, no log" if sync_ms is None else f"beanstalkd -b DIR -f{sync_ms}, log files of 10 MiB"

    def command(self):
        log = [] if self.sync_ms is None else ["-b", self.folder, f"-f{self.sync_ms}"]
        return ["beanstalkd", "-l", "127.0.0.1", "-p", self.port, *log]

    def ready(self):
        # It listens before it has read its log, and answers after.
        return procs.ask(self.port, b"reserve-with-timeout 0\r\n", RECOVER_S).startswith(b"TIMED_OUT")


class Postgres(Server):
    OPTIONS = {"shared_buffers": "1GB", "max_wal_size": "4GB", "checkpoint_timeout": "15min", "fsync": "on",
               "synchronous_commit": "on"}
    settings = "postgres " + ", ".join(f"{name} = {value}" for name, value in OPTIONS.items())
    user = "postgres"

    @staticmethod
    def programs():
        """The newest version's folder of programs, or None."""
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
        return found[-1] if found else None

    def start(self, limit_s=START_S):
        if not (self.folder / "data").exists():
            command = [self.programs() / "initdb", "-D", self.folder / "data", "-U", "bench", "-A", "trust", "--locale", "C",
                       "-E", "UTF8"]
            made = procs.Process(command, self.folder / "initdb.log", self.user)
            if made.popen.wait(START_S) != 0:
                raise procs.StartError(f"initdb failed:\n{procs.tail(made.log)}")
        return super().start(limit_s)

    def command(self):
        options = [word for name, value in self.OPTIONS.items() for word in ("-c", f"{name}={value}")]
        return [self.programs() / "postgres", "-D", self.folder / "data", "-h", "127.0.0.1", "-p", self.port,
                "-k", self.folder, *options]

    def ready(self):
        asked = subprocess.run([self.programs() / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False)
        return asked.returncode == 0


class RabbitMq(Server):
    PROGRAM = pathlib.Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    settings = "rabbitmq-server, classic durable queues, persistent messages, publisher confirms; a TTL queue for each delay"
    user = "rabbitmq"

    def __init__(self, folder):
        super().__init__(folder)
        # A name service of our own: the usual one would outlive the benchmark.
        self.names_port = procs.free_port()
        self.names = None

    def start(self, limit_s=START_S):
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\nvm_memory_high_watermark.relative = 0.6\n"
            "disk_free_limit.absolute = 1GB\n")
        (self.folder / "enabled_plugins").write_text("[].\n")
        self.names = procs.Process(["epmd", "-address", "127.0.0.1", "-port", self.names_port], self.folder / "epmd.log")
        try:
            return super().start(limit_s)
        except BaseException:
            self.names.kill()
            raise

    def environment(self):
        return {**super().environment(), "HOME": str(self.folder), "ERL_EPMD_PORT": str(self.names_port),
                "ERL_EPMD_ADDRESS": "127.0.0.1", "RABBITMQ_NODENAME": f"bench{self.port}@localhost",
                "RABBITMQ_MNESIA_BASE": str(self.folder / "data"), "RABBITMQ_LOG_BASE": str(self.folder / "log"),
                "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"), "RABBITMQ_CONF_ENV_FILE": "/dev/null",
                "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
                "RABBITMQ_PID_FILE": str(self.folder / "pid"), "RABBITMQ_DIST_PORT": str(procs.free_port())}

    def command(self):
        return [self.PROGRAM]

    def ready(self):
        return procs.ask(self.port, b"AMQP\x00\x00\x09\x01").startswith(b"\x01")

    def stop(self):
        super().stop()
        if self.names:
            self.names.kill()
