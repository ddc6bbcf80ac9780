"""Jobs that the server pushes into a real RabbitMQ, read back by another client: nothing is lost whatever happens to the
broker, every repeated message is a repeated attempt, and what cannot be routed is a dead letter with the reason."""

import collections

import pytest
import rabbitmq_server
from conftest import run, submit
from programs import wait_for
from rabbitmq_server import PASSWORD, RabbitMqReader, RabbitMqServer
from test_push_kafka import JOBS, await_drained, figures, submit_during, submit_many


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory):
    if why := rabbitmq_server.why_not():
        pytest.skip(why)
    one = RabbitMqServer(tmp_path_factory.mktemp("rabbitmq") / "server")
    yield one
    one.close()


def deliver_to_rabbitmq(client, server, topic, **settings):
    answer = client.put(
        server.topic(topic),
        json={"backoff_base_ms": 200, "backoff_max_ms": 2_000, "delivery": {"sink": "rabbitmq", **settings}},
    )
    assert answer.status_code in (200, 201), answer.text


def id_of(message):
    return message[0].headers["tocsin-job-id"]


def check_history(messages, ids):
    """All of them came, none that was not submitted; what came more than once did so in attempts of its own. Returns the
    number of repeats."""
    attempts = collections.defaultdict(list)
    for properties, body in messages:
        attempts[properties.message_id].append(int(properties.headers["tocsin-attempt"]))
        assert body.decode() == f"payload of {properties.message_id}"
    assert set(attempts) == set(ids)
    for one, numbers in attempts.items():
        assert len(set(numbers)) == len(numbers), f"attempt of {one} came twice: {numbers}"
    return sum(len(numbers) - 1 for numbers in attempts.values())


def all_came(ids):
    """For read_until: whether each was read at least once."""
    missing, looked = set(ids), 0

    def came(messages):
        nonlocal looked
        missing.difference_update(id_of(message) for message in messages[looked:])
        looked = len(messages)
        return not missing

    return came


def test_a_job_is_in_rabbitmq_when_it_is_done(start, client, rabbitmq):
    server = start(*rabbitmq.flags())
    rabbitmq.declare("ready_trip")
    deliver_to_rabbitmq(client, server, "trip")
    headers = {"trace": "00-4b", "content-type": "application/json"}
    job = submit(client, server, "trip", id="one", key="customer-7", payload="hello", headers=headers, delay_ms=50)
    end = await_drained(client, server, "trip")
    assert (end["acked"], end["dead"]) == (1, 0)
    submit(client, server, "trip", id="bare", payload="")
    (one, body), (bare, nothing) = RabbitMqReader(rabbitmq, "ready_trip").read_until(lambda got: len(got) >= 2)
    assert (body, nothing) == (b"hello", b"")
    assert (one.message_id, one.delivery_mode, one.content_type) == ("one", 2, "application/json")
    assert one.timestamp == job["due_ms"] // 1000
    heads = one.headers
    assert heads["trace"] == "00-4b"
    assert heads["tocsin-topic"] == "trip"
    assert heads["tocsin-job-id"] == "one"
    assert heads["tocsin-attempt"] == "1"
    assert heads["tocsin-key"] == "customer-7"
    assert int(heads["tocsin-due-ms"]) == job["due_ms"]
    assert len(heads["tocsin-token"]) == 24
    assert "tocsin-key" not in bare.headers
    assert bare.content_type is None


def test_a_server_without_rabbitmq_says_what_is_missing(server, client):
    answer = client.put(server.topic("lost"), json={"delivery": {"sink": "rabbitmq"}})
    assert answer.status_code == 400, answer.text
    assert "rabbitmq.url" in answer.text


def test_names_follow_their_templates_and_what_cannot_be_routed_is_dead_at_once(start, client, rabbitmq):
    server = start(*rabbitmq.flags())
    channel = rabbitmq.channel()
    channel.exchange_declare("timeouts", "topic", durable=True)
    channel.queue_declare("eu", durable=True)
    channel.queue_bind("eu", "timeouts", "routed.eu")
    channel.connection.close()
    deliver_to_rabbitmq(client, server, "routed", exchange="timeouts", routing_key="{topic}.{header:region}")
    submit(client, server, "routed", id="1", headers={"region": "eu"}, payload="x")
    submit(client, server, "routed", id="2", headers={"region": "us"}, payload="x")
    end = await_drained(client, server, "routed")
    assert (end["acked"], end["dead"], end["nacked"]) == (1, 1, 1), "one attempt, and no other"
    assert [id_of(one) for one in RabbitMqReader(rabbitmq, "eu").read_until(lambda got: got)] == ["1"]
    dead = client.get(server.topic("routed") + "/jobs", params={"state": "dead"}).json()["jobs"]
    assert "312 NO_ROUTE" in dead[0]["reason"]
    assert "routed.us" in dead[0]["reason"]
    refused = client.put(server.topic("bad"), json={"delivery": {"sink": "rabbitmq", "routing_key": "{topik}"}})
    assert refused.status_code == 400
    assert refused.json()["error"]["field"] == "delivery.routing_key"


def test_a_probe_goes_where_the_jobs_go(start, client, rabbitmq):
    server = start(*rabbitmq.flags())
    rabbitmq.declare("ready_probed")
    deliver_to_rabbitmq(client, server, "probed")
    answer = client.post(server.topic("probed") + "/test").json()
    assert (answer["outcome"], "reason" in answer) == ("confirmed", False), answer
    [(properties, body)] = RabbitMqReader(rabbitmq, "ready_probed").read_until(lambda got: got)
    assert (properties.headers["tocsin-probe"], properties.message_id, body) == ("true", "probe", b'{"probe":true}')
    # What the page says of templates: a job's key leads to the queue, and the probe has none.
    rabbitmq.declare("probed.customer-7")
    deliver_to_rabbitmq(client, server, "probed", routing_key="{topic}.{key}")
    answer = client.post(server.topic("probed") + "/test").json()
    assert answer["outcome"] == "refused"
    assert "312 NO_ROUTE" in answer["reason"] and 'routing key "probed."' in answer["reason"]
    assert not any(figures(client, server, "probed").values()), "probes are no jobs"
    submit(client, server, "probed", key="customer-7", payload="x")
    assert await_drained(client, server, "probed")["acked"] == 1


def test_a_queue_that_is_full_delays_jobs_and_loses_none(start, client, rabbitmq):
    server = start(*rabbitmq.flags())
    rabbitmq.declare("ready_full", max_length=10, overflow="reject-publish")
    deliver_to_rabbitmq(client, server, "full")
    ids = [f"job-{number}" for number in range(30)]
    submit_many(client, server, "full", ids)
    wait_for(lambda: figures(client, server, "full")["nacked"] > 0, 30, "a refusal")
    messages = RabbitMqReader(rabbitmq, "ready_full").read_until(all_came(ids), 60, "every job")
    end = await_drained(client, server, "full")
    assert (end["acked"], end["dead"]) == (30, 0)
    assert check_history(messages, ids) == 0


def test_jobs_of_one_key_keep_their_order(start, client, rabbitmq):
    server = start(*rabbitmq.flags())
    rabbitmq.declare("ready_keyed")
    deliver_to_rabbitmq(client, server, "keyed")
    keys = [f"key-{number}" for number in range(10)]
    for number in range(50):
        jobs = [{"id": f"{key}/{number}", "key": key, "payload": "x", "delay_ms": 0} for key in keys]
        assert client.post(server.topic("keyed") + "/jobs", json={"jobs": jobs}).status_code == 201
    await_drained(client, server, "keyed")
    order = collections.defaultdict(list)
    for message in RabbitMqReader(rabbitmq, "ready_keyed").read_until(lambda got: len(got) >= 500):
        key, number = id_of(message).split("/")
        order[key].append(int(number))
    assert order == {key: list(range(50)) for key in keys}


def test_nothing_is_lost_when_the_broker_is_killed_under_load(start, client, rabbitmq):
    server = start(*rabbitmq.flags())
    rabbitmq.declare("ready_killed")
    deliver_to_rabbitmq(client, server, "killed", timeout_ms=2_000)

    def kill_twice():
        for _ in range(2):
            rabbitmq.kill()
            rabbitmq.start()

    ids = submit_during(client, server, "killed", kill_twice)
    end = await_drained(client, server, "killed")
    assert (end["acked"], end["dead"]) == (JOBS, 0)
    messages = RabbitMqReader(rabbitmq, "ready_killed").read_until(all_came(ids), 120, "every job")
    assert check_history(messages, ids) <= end["nacked"], "a repeat without an attempt that failed"


def test_a_broker_that_hangs_delays_no_other_topic(start, client, rabbitmq):
    server = start(*rabbitmq.flags())
    rabbitmq.declare("ready_hung")
    deliver_to_rabbitmq(client, server, "hung", timeout_ms=1_000)
    submit(client, server, "hung", id="before", payload="payload of before")
    await_drained(client, server, "hung")
    rabbitmq.pause()
    try:
        submit_many(client, server, "hung", [f"job-{number}" for number in range(100)])
        wait_for(lambda: figures(client, server, "hung")["nacked"] > 0, 30, "an attempt that failed")
        submit(client, server, "pulled", id="other", payload="x")
        answer = client.post(server.topic("pulled") + "/reserve", json={"wait_ms": 5_000})
        assert [job["id"] for job in answer.json()["jobs"]] == ["other"]
    finally:
        rabbitmq.resume()
    end = await_drained(client, server, "hung")
    assert (end["acked"], end["dead"]) == (101, 0)


def test_an_alarm_of_the_broker_costs_no_attempt(start, client, rabbitmq):
    server = start(*rabbitmq.flags())
    rabbitmq.declare("ready_blocked")
    deliver_to_rabbitmq(client, server, "blocked", timeout_ms=500)
    submit(client, server, "blocked", id="before", payload="payload of before")
    await_drained(client, server, "blocked")
    rabbitmq.control("set_vm_memory_high_watermark", "0")
    ids = [f"job-{number}" for number in range(50)]
    submit_many(client, server, "blocked", ids)
    wait_for(lambda: "takes no jobs for now" in "".join(server.errors), 30, "the warning")
    rabbitmq.control("set_vm_memory_high_watermark", "0.6")  # takes longer than the time-out
    end = await_drained(client, server, "blocked")
    assert (end["acked"], end["nacked"], end["dead"]) == (51, 0, 0)
    messages = RabbitMqReader(rabbitmq, "ready_blocked").read_until(all_came(ids), 60, "every job")
    assert check_history(messages, [*ids, "before"]) == 0


def test_an_exchange_may_come_later(start, client, rabbitmq):
    server = start(*rabbitmq.flags())
    rabbitmq.declare("ready_late")
    deliver_to_rabbitmq(client, server, "late", exchange="later")
    submit(client, server, "late", id="one", payload="payload of one")
    wait_for(lambda: figures(client, server, "late")["nacked"] > 0, 30, "an attempt that failed")
    found = client.get(server.topic("late") + "/jobs/one").json()
    assert "404 NOT_FOUND - no exchange 'later'" in found["reason"]
    channel = rabbitmq.channel()
    channel.exchange_declare("later", "direct", durable=True)
    channel.queue_bind("ready_late", "later", "ready_late")
    channel.connection.close()
    assert await_drained(client, server, "late")["acked"] == 1


def test_a_password_is_in_no_log_and_no_answer(start, client, rabbitmq, tmp_path):
    wrong = tmp_path / "password"
    wrong.write_text("open-sesame-9\n")
    wrong.chmod(0o600)
    url, _ = rabbitmq.flags()[:2]
    server = start(url, rabbitmq.flags()[1], "--rabbitmq-password-file", wrong)
    deliver_to_rabbitmq(client, server, "secret", timeout_ms=500, outage_ms=0)
    submit(client, server, "secret", id="one", payload="x")
    wait_for(lambda: figures(client, server, "secret")["nacked"] > 0, 30, "an attempt that failed")
    found = client.get(server.topic("secret") + "/jobs/one").text
    assert "403 ACCESS_REFUSED" in found
    said = found + client.get(server.topic("secret")).text + client.get(server.url + "/metrics").text
    said += "".join(server.errors) + "".join(server.banner)
    assert "open-sesame-9" not in said
    assert PASSWORD not in said

    refused = run("tocsind", "--rabbitmq-url", "amqp://tocsin:open-sesame-9@localhost")
    assert refused.returncode != 0
    assert "rabbitmq.url holds a password" in refused.stderr
    assert "open-sesame-9" not in refused.stderr + refused.stdout
