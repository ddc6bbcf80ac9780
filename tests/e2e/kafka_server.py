"""A real Kafka for end-to-end tests: one broker or several in KRaft mode, each a controller too, from the jars that
tools/kafka_jars.sh gets; and what a consumer in another language sees of it."""

import collections
import pathlib
import shutil

from programs import LOOPBACK, Program, free_port, wait_for

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"
READY = "Kafka Server started"
LOG4J = """log4j.rootLogger=WARN, out
log4j.logger.kafka.server.KafkaRaftServer=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss,SSS} %p %m%n
"""


def why_not():
    """None where Kafka can be run and read; otherwise the reason to skip."""
    if not shutil.which("java"):
        return "the program java is not installed (Debian: default-jre-headless)"
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        return "the Python module confluent_kafka is not installed (Debian: python3-confluent-kafka)"
    if (BUILD / "kafka/wanted").exists():
        return None
    missing = BUILD / "kafka-missing"
    reason = missing.read_text().strip() if missing.exists() else "tools/kafka_jars.sh gets its jars"
    return f"no Kafka: {reason}"


class Broker(Program):
    """One node. Its ports stay the same when it starts again."""

    start_s = 120

    def __init__(self, folder, number):
        java = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto"]
        java += ["-Djava.net.preferIPv4Stack=true", "-Dlog4j.configuration=file:log4j.properties"]
        java += ["-cp", BUILD / "kafka/*", "kafka.Kafka", "server.properties"]
        super().__init__(java, folder)
        self.number = number
        self.port, self.controller_port = free_port(), free_port()

    def configure(self, brokers, controllers, partitions):
        (self.folder / "data").mkdir()
        (self.folder / "log4j.properties").write_text(LOG4J)
        # What Kafka's own tool would write to format the folder, without a second start of java.
        (self.folder / "data/meta.properties").write_text(
            f"version=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\nnode.id={self.number}\n"
        )
        voters = ",".join(f"{one.number}@{LOOPBACK.host}:{one.controller_port}" for one in controllers)
        replicas = len(brokers)
        is_controller = self in controllers
        listeners = f"PLAIN://{LOOPBACK.host}:{self.port}"
        if is_controller:
            listeners += f",CONTROLLER://{LOOPBACK.host}:{self.controller_port}"
        (self.folder / "server.properties").write_text(
            f"process.roles={'broker,controller' if is_controller else 'broker'}\n"
            f"node.id={self.number}\n"
            f"controller.quorum.voters={voters}\n"
            f"listeners={listeners}\n"
            "listener.security.protocol.map=PLAIN:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            "inter.broker.listener.name=PLAIN\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={self.folder}/data\n"
            f"num.partitions={partitions}\n"
            "auto.create.topics.enable=true\n"
            f"default.replication.factor={replicas}\n"
            f"min.insync.replicas={replicas // 2 + 1}\n"
            f"offsets.topic.replication.factor={replicas}\n"
            "broker.session.timeout.ms=1000\n"  # else a killed one has to wait that long before it is back
            "broker.heartbeat.interval.ms=200\n"
            "replica.lag.time.max.ms=2000\n"
            "num.network.threads=1\n"
            "num.io.threads=2\n"
            "log.cleaner.enable=false\n"
            "log.index.size.max.bytes=1048576\n"
        )

    def launch(self):
        self.log.write_text("")  # what an earlier run has said
        super().launch()

    def _ready(self):
        return READY in self.output()


class KafkaCluster:
    """Ready when the constructor returns. The first `controllers` of the brokers are controllers too, otherwise all."""

    def __init__(self, folder, brokers=1, partitions=4, controllers=None):
        folder = pathlib.Path(folder)
        self.brokers = [Broker(folder / str(number), number) for number in range(1, brokers + 1)]
        for broker in self.brokers:
            broker.configure(self.brokers, self.brokers[:controllers], partitions)
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.await_ready()

    @property
    def servers(self):
        return ",".join(f"{LOOPBACK.host}:{broker.port}" for broker in self.brokers)

    def flags(self):
        return ["--kafka-brokers", self.servers]

    def close(self):
        for broker in self.brokers:
            broker.kill()

    def leader(self, topic, partition=0):
        """The broker that leads the partition; there may be none for a moment, after it was made and after one died."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.servers})

        def find():
            known = admin.list_topics(topic, timeout=30).topics[topic].partitions.get(partition)
            return known and next((one for one in self.brokers if one.number == known.leader), None)

        return wait_for(find, 30, f"a leader of {topic}")

    def create(self, topic, partitions, replicas=None, **settings):
        """`replicas`: the numbers of the brokers for each partition, the leader first; otherwise all of them for each.
        Settings with _ for the dots of their names."""
        from confluent_kafka.admin import AdminClient, NewTopic

        where = {"replica_assignment": replicas} if replicas else {"replication_factor": len(self.brokers)}
        wanted = NewTopic(
            topic,
            partitions,
            **where,
            config={name.replace("_", "."): str(value) for name, value in settings.items()},
        )
        admin = AdminClient({"bootstrap.servers": self.servers})  # its end would end what it was asked
        admin.create_topics([wanted])[topic].result(60)


class KafkaReader:
    """Reads all of a topic from its beginning, as it grows."""

    def __init__(self, cluster, topic):
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        self.consumer = Consumer(
            {
                "bootstrap.servers": cluster.servers,
                "group.id": "tests",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self.messages = []

        def partitions():
            found = self.consumer.list_topics(topic, timeout=30).topics[topic]
            return None if found.error else sorted(found.partitions)

        numbers = wait_for(partitions, 60, f"the topic {topic}")
        self.consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])

    def read_until(self, enough, within_s=60, what="what was read"):
        """Reads until `enough(messages)`; returns all messages so far."""

        def more():
            if enough(self.messages):
                return True
            got = self.consumer.consume(1000, 0.2)
            self.messages += [one for one in got if one.error() is None]
            return False

        wait_for(more, within_s, f"{what}, of {len(self.messages)} messages")
        return self.messages

    def read_to_end(self, within_s=60):
        """All that is there now."""
        ends = {one.partition: self.consumer.get_watermark_offsets(one)[1] for one in self.consumer.assignment()}

        def reached(messages):
            read = collections.Counter()
            for message in messages:
                read[message.partition()] = max(read[message.partition()], message.offset() + 1)
            return all(read[number] >= end for number, end in ends.items())

        return self.read_until(reached, within_s, f"the ends {ends}")

    def close(self):
        self.consumer.close()


def headers_of(message):
    """The last header of each name, as text."""
    return {name: value.decode() for name, value in message.headers() or []}
