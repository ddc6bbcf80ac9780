"""A server that may open few files: whoever uses them up, clients, strangers or receivers, the journal goes on."""

import resource
import socket
import threading

import pytest

from conftest import DEADLINE_S, ack, reserve, submit
from programs import Place, wait_for
from webhook_receiver import WebhookReceiver

FILES = 256
FEW_FILES = Place(prefix=["sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh"])
SMALL = ("--journal-segment-size", "4MiB", "--limits-payload-size", "64KiB", "--webhook-allow", "127.0.0.0/8")
PAYLOAD = "x" * 60_000


@pytest.fixture
def many_files():
    """The test itself may open more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def receiver(tmp_path):
    one = WebhookReceiver(tmp_path / "receiver")
    yield one
    one.close()


def segments_go_by(client, server, count):
    """Jobs come and go, so that the journal needs as many new segments."""
    for _ in range(count * 7):
        answer = client.post(server.topic("busy") + "/jobs", json={"jobs": [{"payload": PAYLOAD}] * 10})
        assert answer.status_code == 201, answer.text
        jobs = reserve(client, server, "busy", max=10, wait_ms=20000)
        assert ack(client, server, *jobs, topic="busy") == ["ok"] * len(jobs)


def test_strangers_who_fill_all_connections_do_not_stop_the_journal(start, client, many_files):
    server = start(*SMALL, place=FEW_FILES)
    submit(client, server, "busy")  # this connection stays
    strangers, done = [], threading.Event()

    def connect_on():
        for i in range(5_000):
            if done.is_set():
                return
            port = server.port if i % 2 else server.resp_port
            strangers.append(socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S))
            if len(strangers) > 1_000:  # the first ones are inside, and stay
                strangers.pop(FILES).close()

    crowd = threading.Thread(target=connect_on)
    crowd.start()
    wait_for(lambda: len(strangers) > 2 * FILES, DEADLINE_S, "a crowd")
    segments_go_by(client, server, 8)
    done.set()
    crowd.join(DEADLINE_S)
    for wire in strangers:
        wire.close()
    assert server.process.poll() is None
    assert server.stop() == 0, "".join(server.errors)


def hanging(client, server, topic, receiver):
    delivery = {"sink": "webhook", "url": receiver.url(), "in_flight": 10_000, "timeout_ms": 60_000}
    assert client.put(server.topic(topic), json={"delivery": delivery}).status_code in (200, 201)
    jobs = [{"id": f"{topic}-{i}", "headers": {"answers": '["hang"]'}} for i in range(400)]
    assert client.post(server.topic(topic) + "/jobs", json={"jobs": jobs}).status_code == 201


def test_silent_receivers_stop_neither_the_journal_nor_other_webhooks(start, client, receiver):
    server = start(*SMALL, place=FEW_FILES)
    for topic in ("silent-1", "silent-2"):
        hanging(client, server, topic, receiver)
    wait_for(lambda: len(receiver.requests()) >= 10, DEADLINE_S, "requests that hang")
    assert client.put(server.topic("well"), json={"delivery": {"sink": "webhook", "url": receiver.url()}}).status_code == 201
    assert client.post(server.topic("well") + "/jobs", json={"jobs": [{}] * 200}).status_code == 201
    segments_go_by(client, server, 4)
    wait_for(lambda: client.get(server.topic("well")).json()["figures"]["acked"] == 200, DEADLINE_S, "200 that are well")
    assert server.process.poll() is None
    server.kill()
    asked = len(receiver.requests())
    again = start(*SMALL, place=FEW_FILES)
    assert client.get(again.topic("well")).json()["figures"]["scheduled"] == 0, "what was acked stays so"
    for topic in ("silent-1", "silent-2"):
        figures = client.get(again.topic(topic)).json()["figures"]
        assert figures["scheduled"] + figures["leased"] == 400, figures
    wait_for(lambda: len(receiver.requests()) >= asked + 10, DEADLINE_S, "requests that hang again")
    segments_go_by(client, again, 2)
    assert again.stop() == 0, "".join(again.errors)
