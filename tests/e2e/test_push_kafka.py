"""Jobs that the server pushes into a real Kafka, read back by another client: nothing is lost whatever happens to the
brokers, every repeated message is a repeated attempt, and keys keep their order."""

import collections
import threading

import kafka_server
import pytest
from conftest import submit
from kafka_server import KafkaCluster, KafkaReader, headers_of
from programs import wait_for

JOBS = 3_000


def _skip_without_kafka():
    if why := kafka_server.why_not():
        pytest.skip(why)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    _skip_without_kafka()
    one = KafkaCluster(tmp_path_factory.mktemp("kafka"))
    yield one
    one.close()


@pytest.fixture
def three_brokers(tmp_path):
    _skip_without_kafka()
    cluster = KafkaCluster(tmp_path / "kafka", brokers=3)
    yield cluster
    cluster.close()


@pytest.fixture
def reader():
    """reader(cluster, topic): a KafkaReader that is closed at the end."""
    readers = []

    def make(cluster, topic):
        readers.append(KafkaReader(cluster, topic))
        return readers[-1]

    yield make
    for one in readers:
        one.close()


def deliver_to_kafka(client, server, topic, max_attempts=100, backoff_ms=100, **settings):
    answer = client.put(
        server.topic(topic),
        json={
            "max_attempts": max_attempts,
            "backoff_base_ms": backoff_ms,
            "backoff_max_ms": max(1_000, backoff_ms),
            "delivery": {"sink": "kafka", **settings},
        },
    )
    assert answer.status_code in (200, 201), answer.text


def figures(client, server, topic):
    return client.get(server.topic(topic)).json()["figures"]


def await_drained(client, server, topic, within_s=90):
    """Until nothing of the topic is scheduled, ready or leased."""

    def drained():
        now = figures(client, server, topic)
        return not (now["scheduled"] or now["ready"] or now["leased"])

    wait_for(drained, within_s, f"the end of {topic}'s jobs")
    return figures(client, server, topic)


def submit_many(client, server, topic, ids, **fields):
    jobs = [{"id": one, "payload": f"payload of {one}", **fields} for one in ids]
    for begin in range(0, len(jobs), 100):
        answer = client.post(server.topic(topic) + "/jobs", json={"jobs": jobs[begin : begin + 100]})
        assert answer.status_code == 201, answer.text


def all_came(ids):
    """For read_until: whether each was read at least once."""
    missing, looked = set(ids), 0

    def came(messages):
        nonlocal looked
        missing.difference_update(headers_of(message)["tocsin-job-id"] for message in messages[looked:])
        looked = len(messages)
        return not missing

    return came


def check_history(messages, ids):
    """All of them came, none that was not submitted; what came more than once did so in attempts of its own, or as one
    attempt that Kafka had taken without the server hearing of it. Returns the number of repeats."""
    count = collections.Counter()
    for message in messages:
        job_id = headers_of(message)["tocsin-job-id"]
        count[job_id] += 1
        assert message.value().decode() == f"payload of {job_id}"
    assert set(count) == set(ids)
    return len(messages) - len(count)


def test_a_job_is_in_kafka_when_it_is_done(start, client, kafka, reader):
    server = start(*kafka.flags())
    deliver_to_kafka(client, server, "trip")
    job = submit(
        client, server, "trip", id="one", key="customer-7", payload="hello", headers={"trace": "00-4b"}, delay_ms=50
    )
    submit(client, server, "trip", id="bare", payload="")
    end = await_drained(client, server, "trip")
    assert (end["acked"], end["dead"]) == (2, 0)
    messages = reader(kafka, "ready_trip").read_until(lambda all_of_them: len(all_of_them) >= 2)
    found = {headers_of(message)["tocsin-job-id"]: message for message in messages}
    assert set(found) == {"one", "bare"}
    one, heads = found["one"], headers_of(found["one"])
    assert (one.key(), one.value()) == (b"customer-7", b"hello")
    assert heads["trace"] == "00-4b"
    assert heads["tocsin-topic"] == "trip"
    assert heads["tocsin-attempt"] == "1"
    assert heads["tocsin-key"] == "customer-7"
    assert int(heads["tocsin-due-ms"]) == job["due_ms"]
    assert len(heads["tocsin-token"]) == 24
    assert found["bare"].key() is None
    assert found["bare"].value() == b""
    assert "tocsin-key" not in headers_of(found["bare"])


def test_a_server_without_kafka_says_what_is_missing(server, client):
    answer = client.put(server.topic("lost"), json={"delivery": {"sink": "kafka"}})
    assert answer.status_code == 400, answer.text
    assert "kafka.brokers" in answer.text


def test_names_follow_their_templates(start, client, kafka, reader):
    server = start(*kafka.flags())
    deliver_to_kafka(client, server, "routed", kafka_topic="{header:region}-{topic}", kafka_key="{id}")
    submit(client, server, "routed", id="1", headers={"region": "eu"}, payload="x")
    submit(client, server, "routed", id="2", headers={"region": "us"}, payload="x")
    submit(client, server, "routed", id="3", headers={"region": "no/where"}, payload="x")
    end = await_drained(client, server, "routed")
    assert (end["acked"], end["dead"]) == (2, 1)
    for region, key in (("eu", b"1"), ("us", b"2")):
        messages = reader(kafka, f"{region}-routed").read_until(lambda all_of_them: all_of_them)
        assert [message.key() for message in messages] == [key]
    dead = client.get(server.topic("routed") + "/jobs", params={"state": "dead"}).json()["jobs"]
    assert "no/where-routed" in dead[0]["reason"]
    refused = client.put(server.topic("bad"), json={"delivery": {"sink": "kafka", "kafka_topic": "{topik}"}})
    assert refused.status_code == 400
    assert refused.json()["error"]["field"] == "delivery.kafka_topic"
    assert "topic" in refused.json()["error"]["message"]


def test_a_probe_goes_where_the_jobs_go(start, client, kafka, reader):
    server = start(*kafka.flags())
    kafka.create("ready_probed", 1)
    deliver_to_kafka(client, server, "probed", timeout_ms=20_000)
    answer = client.post(server.topic("probed") + "/test").json()
    assert (answer["outcome"], "reason" in answer) == ("confirmed", False), answer
    [message] = reader(kafka, "ready_probed").read_until(lambda all_of_them: all_of_them)
    heads = headers_of(message)
    assert (heads["tocsin-probe"], heads["tocsin-job-id"], message.key()) == ("true", "probe", None)
    assert message.value() == b'{"probe":true}'
    deliver_to_kafka(client, server, "probed", kafka_topic="{header:region}")
    answer = client.post(server.topic("probed") + "/test").json()
    assert answer["outcome"] == "refused", "it has no such header, and nothing is no name"
    assert "not a valid name of a Kafka topic" in answer["reason"]
    assert not any(figures(client, server, "probed").values()), "probes are no jobs"


def test_a_job_that_is_too_large_for_kafka_is_a_dead_letter_at_once(start, client, kafka, reader):
    server = start(*kafka.flags(), "--kafka-message-size", "100KiB")
    deliver_to_kafka(client, server, "wide")
    submit(client, server, "wide", id="large", payload="x" * 200_000)
    submit(client, server, "wide", id="small", payload="x")
    end = await_drained(client, server, "wide")
    assert (end["acked"], end["dead"], end["nacked"]) == (1, 1, 1), "one attempt, and no other"
    messages = reader(kafka, "ready_wide").read_until(lambda all_of_them: all_of_them)
    assert [headers_of(message)["tocsin-job-id"] for message in messages] == ["small"]


def test_jobs_of_one_key_keep_their_order(start, client, kafka, reader):
    server = start(*kafka.flags())
    deliver_to_kafka(client, server, "keyed")
    keys = [f"key-{number}" for number in range(10)]
    for number in range(50):
        jobs = [{"id": f"{key}/{number}", "key": key, "payload": "x", "delay_ms": 0} for key in keys]
        assert client.post(server.topic("keyed") + "/jobs", json={"jobs": jobs}).status_code == 201
    await_drained(client, server, "keyed")
    messages = reader(kafka, "ready_keyed").read_until(lambda all_of_them: len(all_of_them) >= 500)
    order, partitions = collections.defaultdict(list), collections.defaultdict(set)
    for message in messages:
        key, number = headers_of(message)["tocsin-job-id"].split("/")
        order[key].append(int(number))
        partitions[key].add(message.partition())
    assert order == {key: list(range(50)) for key in keys}
    assert all(len(numbers) == 1 for numbers in partitions.values())


def submit_during(client, server, topic, fault):
    """Submits JOBS jobs while `fault()` runs beside it; their ids."""
    ids = [f"job-{number}" for number in range(JOBS)]
    trouble = threading.Thread(target=fault)
    submit_many(client, server, topic, ids[: JOBS // 3])
    trouble.start()
    submit_many(client, server, topic, ids[JOBS // 3 :])
    trouble.join()
    return ids


def test_nothing_is_lost_when_the_broker_is_killed_under_load(start, client, kafka, reader):
    server = start(*kafka.flags())
    kafka.create("ready_killed", 4)
    deliver_to_kafka(client, server, "killed", timeout_ms=2_000)

    def kill_twice():
        for _ in range(2):
            kafka.brokers[0].kill()
            kafka.brokers[0].start()

    ids = submit_during(client, server, "killed", kill_twice)
    end = await_drained(client, server, "killed")
    assert (end["acked"], end["dead"]) == (JOBS, 0)
    messages = reader(kafka, "ready_killed").read_until(all_came(ids), 120, "every job")
    assert check_history(messages, ids) <= end["nacked"], "a repeat without an attempt that failed"


def test_a_broker_that_hangs_delays_no_other_topic(start, client, kafka):
    server = start(*kafka.flags())
    kafka.create("ready_hung", 1)
    deliver_to_kafka(client, server, "hung", timeout_ms=1_000)
    submit(client, server, "hung", id="before", payload="payload of before")
    await_drained(client, server, "hung")
    kafka.brokers[0].pause()
    try:
        submit_many(client, server, "hung", [f"job-{number}" for number in range(100)])
        wait_for(lambda: figures(client, server, "hung")["nacked"] > 0, 30, "an attempt that failed")
        submit(client, server, "pulled", id="other", payload="x")
        answer = client.post(server.topic("pulled") + "/reserve", json={"wait_ms": 5_000})
        assert [job["id"] for job in answer.json()["jobs"]] == ["other"]
    finally:
        kafka.brokers[0].resume()
    end = await_drained(client, server, "hung")
    assert (end["acked"], end["dead"]) == (101, 0)


def test_a_leader_that_dies_is_followed_to_the_next(start, client, three_brokers, reader):
    server = start(*three_brokers.flags())
    three_brokers.create("ready_moved", 1)
    deliver_to_kafka(client, server, "moved")

    def move():
        three_brokers.leader("ready_moved").kill()

    before = three_brokers.leader("ready_moved").number
    ids = submit_during(client, server, "moved", move)
    end = await_drained(client, server, "moved")
    assert (end["acked"], end["dead"]) == (JOBS, 0)
    assert three_brokers.leader("ready_moved").number != before
    messages = reader(three_brokers, "ready_moved").read_until(all_came(ids), 120, "every job")
    assert check_history(messages, ids) <= end["nacked"]


def test_a_password_is_in_no_log_and_no_answer(start, client, kafka, tmp_path):
    secret = tmp_path / "password"
    secret.write_text("open-sesame-9\n")
    secret.chmod(0o600)
    login = ["--kafka-security", "sasl_plaintext", "--kafka-username", "tocsin", "--kafka-password-file", secret]
    server = start(*kafka.flags(), *login, "--log-level", "debug")
    deliver_to_kafka(client, server, "guarded", max_attempts=1, timeout_ms=1_000, outage_ms=0)
    submit(client, server, "guarded", id="one", payload="x")
    assert await_drained(client, server, "guarded")["dead"] == 1
    dead = client.get(server.topic("guarded") + "/jobs", params={"state": "dead"}).json()["jobs"]
    assert dead[0]["reason"].startswith("Kafka")
    assert "open-sesame" not in str(dead)
    assert "open-sesame" not in client.get(server.topic("guarded")).text
    assert server.stop() == 0
    assert "open-sesame" not in "".join(server.errors)
