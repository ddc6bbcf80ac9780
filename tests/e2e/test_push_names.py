"""Webhooks whose names hang: a name server that answers nothing for them delays no other topic, and costs no attempts."""

import time

import pytest
from conftest import DEADLINE_S, submit
from name_server import NameServer, why_not
from programs import wait_for
from webhook_receiver import WebhookReceiver

HANGING = 100  # topics
JOBS = 100  # each for a healthy name that was never looked up before
LATER_P50_MS, LATER_P99_MS = 5, 50  # than without names that hang; it was 31 s
TRIES = 3  # what else the machine does makes jobs late, too
STOP_S = 5  # a look-up that hangs takes 10 s


@pytest.fixture
def names(tmp_path):
    if reason := why_not():
        pytest.skip(reason)
    kinds = ["alone", *(f"well-{number}" for number in range(TRIES))]
    one = NameServer(tmp_path, {f"{kind}-{number}.test": "127.0.0.1" for kind in kinds for number in range(JOBS)})
    yield one
    one.close()


@pytest.fixture
def receiver(tmp_path):
    one = WebhookReceiver(tmp_path / "receiver")
    yield one
    one.close()


def put(client, server, topic, url, **settings):
    delivery = {"sink": "webhook", "url": url, **settings.pop("delivery", {})}
    answer = client.put(server.topic(topic), json={"delivery": delivery, **settings})
    assert answer.status_code in (200, 201), answer.text


def figures(client, server, topic):
    return client.get(server.topic(topic)).json()["figures"]


def lateness(client, server, receiver, kind, port):
    """p50 and p99, in ms, of jobs from their submit to their receiver. Each is for a topic with a name of its own."""
    late_ms = []
    for number in range(JOBS):
        topic = f"{kind}-{number}"
        put(client, server, topic, f"http://{topic}.test:{port}/")
        began_ms = time.time_ns() / 1e6
        submit(client, server, topic, id=topic, payload="x")
        [request, *_] = wait_for(lambda: receiver.of(topic), DEADLINE_S, "a healthy topic", between_s=0.002)  # noqa: B023
        late_ms.append(request["at_ms"] - began_ms)
    late_ms.sort()
    return late_ms[JOBS // 2], late_ms[JOBS * 99 // 100]


def test_names_that_hang_delay_no_other_topic_and_cost_no_attempt(names, receiver, start, client):
    server = start("--webhook-allow", "127.0.0.0/8", "--shards", "1", place=names.place)
    port = receiver.url().rsplit(":", 1)[1].split("/")[0]
    alone = lateness(client, server, receiver, "alone", port)
    hanging = [f"hang-{number}" for number in range(HANGING)]
    for topic in hanging:
        put(client, server, topic, f"http://{topic}.test:{port}/", max_attempts=1, delivery={"timeout_ms": 1000})
        submit(client, server, topic, id="a", payload="x")
    wait_for(lambda: len(set(names.asked)) >= HANGING, DEADLINE_S, "every name is being looked up")
    for number in range(TRIES):
        beside = lateness(client, server, receiver, f"well-{number}", port)
        print("p50 and p99: {:.1f} and {:.1f} ms alone, {:.1f} and {:.1f} ms beside names that hang".format(*alone, *beside))
        if well := beside[0] <= alone[0] + LATER_P50_MS and beside[1] <= alone[1] + LATER_P99_MS:
            break
    assert well, (alone, beside)
    assert {f"well-0-{number}.test" for number in range(JOBS)} <= set(names.asked), "each was looked up"
    # Each of them has only one attempt, which never left the server.
    wait_for(lambda: all(retried(client, server, topic) for topic in hanging), DEADLINE_S, "look-ups that failed")
    assert [figures(client, server, topic)["dead"] for topic in hanging] == [0] * HANGING
    put(client, server, "hang-last", f"http://hang-last.test:{port}/")
    submit(client, server, "hang-last", id="a", payload="x")
    wait_for(lambda: any("hang-last" in name for name in names.asked), DEADLINE_S, "a look-up that hangs")
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < STOP_S, "a stop does not wait for the name server"


def retried(client, server, topic):
    text = client.get(server.url + "/metrics").text
    return any(line.startswith("tocsin_push_outcomes_total{" + f'topic="{topic}"') and 'outcome="retry"' in line
               and float(line.rsplit(" ", 1)[1]) > 0 for line in text.splitlines())  # fmt: skip
