"""Where jobs are pushed to, and a tocsind with one topic that pushes there. Each receiver is a Server of its own that also knows how
it is reached, and how a client that does nothing but send is run against it: the limit which it sets."""

import json
import pathlib
import subprocess
import urllib.request

import procs
import servers

TOPIC = "bench"
READY = f"ready_{TOPIC}"  # where the sinks bring its jobs, as delivered
RAW_S = 120
HTTP_S = 30


class Receiver(servers.Server):
    kind = ""  # the verb of push_bench
    has_limit = True  # a plain client sends it what the sink does

    def __init__(self, folder, programs):
        super().__init__(folder)
        self.program = programs / "push_bench"

    def flags(self):
        """Of tocsind."""
        raise NotImplementedError

    def delivery(self):
        """Of the topic."""
        return {"sink": self.kind}

    def address(self):
        return f"127.0.0.1:{self.port}"

    def raw(self, name, jobs, *more):
        """What push_bench says of a load of so many messages; with none, of what is there."""
        command = [self.program, self.kind, "--address", self.address(), "--name", name, "--jobs", str(jobs),
                   "--time-limit", str(RAW_S), *more]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=2 * RAW_S, check=False)
        if done.returncode != 0:
            raise procs.StartError((done.stderr.strip().splitlines() or ["push_bench failed"])[-1])
        return json.loads(done.stdout)

    def received(self):
        return self.raw(READY, 0)["at_receiver"]

    def warm_up(self):
        """Before anything is measured."""
        self.received()  # makes the topic or the queue, as who sets a receiver up does


class Kafka(Receiver):
    """One broker in KRaft mode, which is its own controller, from the jars of tools/kafka_jars.sh."""

    kind = "kafka"
    JARS = pathlib.Path(__file__).resolve().parents[1] / "build/kafka"
    settings = "one Kafka broker, KRaft, java -Xmx1g, 4 partitions, acks=all, idempotent, settings of brokers as delivered"
    LOG4J = ("log4j.rootLogger=WARN, out\nlog4j.logger.kafka.server.KafkaRaftServer=INFO\n"
             "log4j.appender.out=org.apache.log4j.ConsoleAppender\nlog4j.appender.out.layout=org.apache.log4j.SimpleLayout\n")

    @classmethod
    def missing(cls):
        """Why there is none, or None."""
        if (cls.JARS / "wanted").exists():
            return None
        reason = cls.JARS.with_name("kafka-missing")
        return reason.read_text().strip() if reason.exists() else "tools/kafka_jars.sh gets its jars"

    def command(self):
        data, controller = self.folder / "data", procs.free_port()
        data.mkdir(exist_ok=True)
        (self.folder / "log4j.properties").write_text(self.LOG4J)
        (data / "meta.properties").write_text("version=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\nnode.id=1\n")
        (self.folder / "server.properties").write_text(
            f"process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAIN://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            "listener.security.protocol.map=PLAIN:PLAINTEXT,CONTROLLER:PLAINTEXT\ninter.broker.listener.name=PLAIN\n"
            f"controller.listener.names=CONTROLLER\nlog.dirs={data}\nnum.partitions=4\noffsets.topic.replication.factor=1\n")
        return ["java", "-Xmx1g", "-Xms1g", "-Djava.net.preferIPv4Stack=true", "-Dlog4j.configuration=file:log4j.properties",
                "-cp", self.JARS / "*", "kafka.Kafka", "server.properties"]

    def ready(self):
        return "Kafka Server started" in self.process.log.read_text(errors="replace")

    def flags(self):
        return ["--kafka-brokers", self.address()]

    def warm_up(self):
        super().warm_up()
        for _ in range(2):  # java compiles what is used often
            self.raw("warm_up", 300_000)


class RabbitMq(Receiver, servers.RabbitMq):
    """`lazy`: the queue keeps its messages only on disk, as every classic queue does since RabbitMQ 3.12."""

    kind = "rabbitmq"

    def __init__(self, folder, programs, lazy):
        super().__init__(folder, programs)
        self.lazy = lazy

    @staticmethod
    def describe(lazy):
        queue = "x-queue-mode lazy, x-queue-version 2" if lazy else "without arguments"
        return f"Debian's RabbitMQ as delivered, one durable classic queue ({queue}), persistent, mandatory, publisher confirms"

    def flags(self):
        password = self.folder / "password"
        password.write_text("guest\n")
        password.chmod(0o600)
        return ["--rabbitmq-url", f"amqp://guest@{self.address()}", "--rabbitmq-password-file", password]

    def raw(self, name, jobs, *more):
        return super().raw(name, jobs, *more, "--lazy", "yes" if self.lazy else "no", "--remove", "yes" if jobs else "no")


class Webhook(Receiver):
    """`batch`: jobs in one request."""

    kind = "webhook"

    def __init__(self, folder, programs, batch):
        super().__init__(folder, programs)
        self.batch = batch
        self.has_limit = batch == 1

    @staticmethod
    def describe(batch):
        many = "one job" if batch == 1 else f"up to {batch} jobs"
        return f"a keep-alive receiver in C++ with one thread that answers 200, {many} in a request, not signed"

    def command(self):
        return [self.program, "receiver", "--time-limit", "900"]

    def ready(self):
        self.port = int((self.process.log.read_text().strip() or ":0").rsplit(":", 1)[1])
        return self.port

    def flags(self):
        return ["--webhook-allow", "127.0.0.0/8"]

    def delivery(self):
        batch = {"batch": self.batch} if self.batch > 1 else {}
        return {**super().delivery(), "url": f"http://{self.address()}/", **batch}


class PushingTocsind(servers.Tocsind):
    def __init__(self, folder, programs, receiver):
        super().__init__(folder, programs)
        self.receiver = receiver

    def command(self):
        return [*super().command(), *self.receiver.flags()]

    def http(self, path, body=None):
        """The text of an answer."""
        request = urllib.request.Request(f"http://{self.doors['http']}{path}", json.dumps(body).encode() if body else None,
                                         {"content-type": "application/json"}, method="PUT" if body else "GET")
        with urllib.request.urlopen(request, timeout=HTTP_S) as answer:
            return answer.read().decode()


class Pushed:
    """A receiver and the tocsind that pushes to it. To the runner it is a Server."""

    def __init__(self, folder, programs, make):
        self.folder = pathlib.Path(folder)
        self.receiver = make(self.folder / "receiver", programs)
        self.tocsind = PushingTocsind(self.folder / "tocsind", programs, self.receiver)

    def start(self, limit_s=servers.START_S):
        try:
            self.receiver.start(limit_s)
            self.receiver.warm_up()
            self.tocsind.start(limit_s)
            self.tocsind.http(f"/v1/topics/{TOPIC}", {"delivery": self.receiver.delivery()})
        except BaseException:
            self.stop()
            raise
        return self

    def addresses(self):
        return self.tocsind.addresses()

    def processes(self):
        return {"tocsind": self.tocsind.process.pid, "the receiver": self.receiver.process.pid}

    def metrics(self):
        return self.tocsind.http("/metrics")

    def stop(self):
        for server in (self.tocsind, self.receiver):
            server.stop()
