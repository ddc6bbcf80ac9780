"""Kafka and RabbitMQ that are killed, lose a leader, are full or take nothing, and a server that dies while it delivers to
them: nothing is lost, every duplicate has its cause, no attempt is beyond the maximum, and neither a healthy topic of the same
broker nor one with another receiver notices."""

import functools

import kafka_server
import pytest
import rabbitmq_server
from conftest import Server
from histories import payload_of
from kafka_server import KafkaCluster, KafkaReader, headers_of
from programs import wait_for
from push_histories import MS, Arrival
from push_world import BEFORE_S, FLAGS, Busy, Lives, Topic, World, outcomes, torture, tried_again
from rabbitmq_server import RabbitMqListener, RabbitMqServer

pytest_plugins = ["push_fixtures"]
pytestmark = pytest.mark.alone

TIMEOUT_MS = 2000
# For a healthy topic of the broker that is broken elsewhere. Whenever it was late, so were the broker's round trips, in
# librdkafka's statistics: 15 to 45 ms at times while leaders moved, 105 ms with other work on the two cores. A topic that had
# to wait for the other one would wait for its time-out.
BESIDE_MS = TIMEOUT_MS / 20


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    """Broker 1 is the controller too, and stays; broker 2 may die."""
    if why := kafka_server.why_not():
        pytest.skip(why)
    one = KafkaCluster(tmp_path_factory.mktemp("kafka"), brokers=2, controllers=1)
    yield one
    one.close()


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory):
    if why := rabbitmq_server.why_not():
        pytest.skip(why)
    one = RabbitMqServer(tmp_path_factory.mktemp("rabbitmq") / "server")
    yield one
    one.close()


@pytest.fixture
def world_of(tmp_path):
    """world_of(broker): the World of a server that knows the broker."""
    made = []

    def make(broker):
        server = Server(tmp_path / f"data{len(made)}", *FLAGS, *broker.flags())
        made.append(World(server))
        return made[-1]

    yield make
    for one in made:
        one.close()
        assert one.server.stop() == 0, "".join(one.server.errors)


@pytest.fixture
def lives_of(tmp_path):
    """lives_of(broker, ...): the same, for a server that may be killed."""
    made = []

    def make(*brokers):
        made.append(Lives(tmp_path / "data", *(flag for broker in brokers for flag in broker.flags())))
        return made[-1]

    yield make
    for one in made:
        one.close()


def kafka_topic(cluster, name, replicas, **options):
    """A topic into one partition of Kafka's on these brokers. Kafka notes the time when it stores a message."""
    cluster.create(f"ready_{name}", 1, [replicas], message_timestamp_type="LogAppendTime", min_insync_replicas=1)

    def arrivals(topic):
        reader = KafkaReader(cluster, f"ready_{name}")
        try:
            return list(map(arrival_in_kafka, reader.read_to_end()))
        finally:
            reader.close()

    return Topic(name, {"sink": "kafka", "timeout_ms": TIMEOUT_MS}, arrivals, **options)


def arrival_in_kafka(message):
    heads, at_ns = headers_of(message), message.timestamp()[1] * MS
    intact = message.value().decode() == payload_of(heads["tocsin-job-id"])
    return arrival_of(heads, at_ns, intact)


def arrival_of(heads, at_ns, intact):
    """A broker has confirmed what it has, if it could: whether it could, outages tell."""
    numbers = int(heads["tocsin-attempt"]), int(heads["tocsin-due-ms"])
    return Arrival(heads["tocsin-job-id"], heads["tocsin-token"], *numbers, at_ns, at_ns, intact)


@pytest.fixture
def rabbitmq_topic(rabbitmq):
    """rabbitmq_topic(name, queue={}, **options): a topic into a queue of its own, which `topic.listener` empties."""
    listeners = []

    def make(name, queue=None, timeout_ms=TIMEOUT_MS, **options):
        rabbitmq.declare(f"ready_{name}", **(queue or {}))
        listener = RabbitMqListener(rabbitmq, f"ready_{name}")
        listeners.append(listener)

        def arrivals(topic):
            def whole():
                return topic.expected <= {ids(properties) for _, properties, _ in list(listener.messages)}

            wait_for(lambda: whole() or not listener.left(), 30, f"the messages of {name}")
            wait_for(lambda: not listener.left(), 30, f"the end of the queue of {name}")
            return [arrival_in_rabbitmq(*message) for message in list(listener.messages)]

        topic = Topic(name, {"sink": "rabbitmq", "timeout_ms": timeout_ms}, arrivals, **options)
        topic.listener = listener
        return topic

    yield make
    for one in listeners:
        one.close()


def retries(world, topic, sink):
    return outcomes(world.client, world.server, topic.name, "retry", sink)


def ids(properties):
    return properties.headers["tocsin-job-id"]


def arrival_in_rabbitmq(at_ns, properties, body):
    return arrival_of(properties.headers, at_ns, body.decode() == payload_of(ids(properties)))


@tried_again
def test_a_kafka_broker_is_killed_and_the_leader_moves(world_of, kafka, healthy, healthy_receiver, name):
    world = world_of(kafka)
    moved = kafka_topic(kafka, "moved-" + name, [2, 1])
    alone = kafka_topic(kafka, "alone-" + name, [2], impatient=True)
    beside = kafka_topic(kafka, "beside-" + name, [1], allowance_ms=BESIDE_MS)
    leader = f"ready_{moved.name}"
    with world.load(healthy, beside, moved, alone) as load:
        load.hold(BEFORE_S)
        if kafka.leader(leader).number != 2:
            raise Busy("a broker has lost its partition before anything was broken")
        with load.fault("receiver"):
            kafka.brokers[1].kill()
            wait_for(lambda: kafka.leader(leader).number == 1, 30, "another leader")
            at_the_move = world.figures(moved)["acked"]
            wait_for(lambda: world.figures(moved)["acked"] > at_the_move + 100, 30, "jobs through the new leader")
            wait_for(lambda: retries(world, alone, "kafka") > 0, 30, "a try that failed")
            with load.aside():
                kafka.brokers[1].start()
            back = world.figures(alone)["acked"]
            wait_for(lambda: world.figures(alone)["acked"] > back + 100, 30, "jobs through the broker that came back")
    report = world.judge(load, [healthy, beside], healthy_receiver)
    assert report[moved.name]["dead"] == report[alone.name]["dead"] == 0, "what was not sent costs no attempt"


@tried_again
def test_a_kafka_broker_hangs(world_of, kafka, healthy, healthy_receiver, name):
    world = world_of(kafka)
    broken = kafka_topic(kafka, name, [2])
    beside = kafka_topic(kafka, "beside-" + name, [1], allowance_ms=BESIDE_MS)
    with world.load(healthy, beside, broken) as load:
        load.hold(BEFORE_S)
        with load.fault("receiver"):
            kafka.brokers[1].pause()
            wait_for(lambda: retries(world, broken, "kafka") > 100, 30, "tries that failed")
            kafka.brokers[1].resume()
            back = world.figures(broken)["acked"]
            wait_for(lambda: world.figures(broken)["acked"] > back + 100, 30, "jobs through the broker that came back")
    world.judge(load, [healthy, beside], healthy_receiver)


@tried_again
def test_rabbitmq_is_killed(world_of, rabbitmq, rabbitmq_topic, healthy, healthy_receiver, name):
    world = world_of(rabbitmq)
    broken = rabbitmq_topic(name, impatient=True)
    with world.load(healthy, broken) as load:
        load.hold(BEFORE_S)
        with load.fault("receiver"):
            rabbitmq.kill()
            wait_for(lambda: retries(world, broken, "rabbitmq") > 100, 30, "tries that failed")
            with load.aside():
                rabbitmq.start()
            back = world.figures(broken)["acked"]
            wait_for(lambda: world.figures(broken)["acked"] > back + 100, 30, "jobs through the broker that came back")
    report = world.judge(load, [healthy], healthy_receiver)[name]
    assert report["dead"] == 0, "what was not sent costs no attempt"


@tried_again
def test_a_queue_of_rabbitmq_is_full(world_of, rabbitmq, rabbitmq_topic, healthy, healthy_receiver, name):
    world = world_of(rabbitmq)
    full = {"max_length": 100, "overflow": "reject-publish"}
    broken = rabbitmq_topic(name, queue=full, impatient=True, backoff_base_ms=400, backoff_max_ms=800)
    beside = rabbitmq_topic("beside-" + name, allowance_ms=BESIDE_MS)
    with world.load(healthy, beside, broken) as load:
        load.hold(BEFORE_S)
        with load.fault():
            broken.listener.listening.clear()
            wait_for(lambda: world.figures(broken)["nacked"] > 100, 30, "refusals")
            load.hold(2)
            broken.listener.listening.set()
    report = world.judge(load, [healthy, beside], healthy_receiver)[name]
    assert report["arrivals"] == report["arrived"], "what was refused is in the queue once"
    assert report["dead"] > 0
    assert all("refused" in letter.reason or "full" in letter.reason for letter in broken.dead.values()), broken.dead


@tried_again
def test_rabbitmq_takes_nothing_for_a_while(world_of, rabbitmq, rabbitmq_topic, healthy, healthy_receiver, name):
    world = world_of(rabbitmq)
    broken = rabbitmq_topic(name, timeout_ms=500)
    with world.load(healthy, broken) as load:
        load.hold(BEFORE_S)
        with load.fault("receiver"):
            with load.aside():
                rabbitmq.control("set_vm_memory_high_watermark", "0")
            wait_for(lambda: "takes no jobs for now" in "".join(world.server.errors), 30, "the warning")
            load.hold(2)
            with load.aside():
                rabbitmq.control("set_vm_memory_high_watermark", "0.6")
    report = world.judge(load, [healthy], healthy_receiver)[name]
    assert report["arrivals"] == report["jobs"] and broken.figures["nacked"] == 0, "an alarm costs no attempt"


@pytest.mark.parametrize("sink", ["kafka", "rabbitmq"])
def test_a_server_that_is_killed_with_jobs_in_flight(request, lives_of, sink, name):
    """With the broker answering, and with one that stands still, so that nothing of what was sent has been confirmed."""
    broker = request.getfixturevalue(sink)
    lives = lives_of(broker)
    world = lives.world
    if sink == "kafka":
        pushed, program = kafka_topic(broker, name, [2], rate=1500), broker.brokers[1]
    else:
        pushed, program = request.getfixturevalue("rabbitmq_topic")(name, rate=1500), broker
    with world.load(pushed) as load:
        for stands_still in (False, True, True):
            load.hold(1)
            with load.fault("server"):
                if stands_still:
                    program.pause()
                    wait_for(lambda: world.figures(pushed)["leased"] >= 100, 30, "jobs in flight")
                figures = world.figures(pushed)
                lives.kill()
                program.resume()
                # What was in flight is the oldest: all of it has been sent again when so many are confirmed.
                left = figures["scheduled"] + figures["leased"]
                wait_for(lambda: world.figures(pushed)["acked"] >= left, 30, "what was in flight, once more")
    world.judge(load)


@pytest.mark.torture
def test_brokers_and_the_server_die_again_and_again(lives_of, kafka, rabbitmq, rabbitmq_topic, healthy, name):
    lives = lives_of(kafka, rabbitmq)
    topics = [kafka_topic(kafka, "moved-" + name, [2, 1]), kafka_topic(kafka, "alone-" + name, [2], impatient=True)]
    topics += [rabbitmq_topic("rabbit-" + name, impatient=True), healthy]

    def kill(program, choose):
        program.kill()
        load.hold(choose.uniform(0, 3))
        program.start()
        load.hold(2)

    def stop(program, choose):
        program.pause()
        load.hold(choose.uniform(0.1, 5))
        program.resume()
        load.hold(2)  # what waited in sockets comes now

    programs = [kafka.brokers[1], rabbitmq]
    faults = [("receiver", functools.partial(kill, one)) for one in programs]
    faults += [("receiver", functools.partial(stop, one)) for one in programs]
    with lives.world.load(*topics) as load:
        torture(load, lives, faults)
    lives.world.judge(load)
