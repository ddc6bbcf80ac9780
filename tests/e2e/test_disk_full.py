"""A disk that is full for a while: a small file system of the test's own."""

import time

from conftest import DEADLINE_S, ack, metric, reserve
from resp_wire import Error, Wire

PAYLOAD = "x" * 60_000
FLAGS = ("--journal-segment-size", "4MiB", "--limits-payload-size", "64KiB")


def fill(client, server):
    """Until a submit is refused; how many jobs are stored."""
    stored = 0
    for _ in range(100):
        answer = client.post(server.topic("t") + "/jobs", json={"jobs": [{"payload": PAYLOAD}] * 10})
        outcomes = [job["outcome"] for job in answer.json()["jobs"]]
        stored += outcomes.count("accepted")
        if answer.status_code == 507:
            assert set(outcomes) == {"storage_full"}
            return stored
        assert answer.status_code == 201, answer.text
    raise AssertionError("the disk was never full")


def test_a_full_disk_refuses_new_jobs_and_serves_the_others(small_disk, start, client):
    server = start(*FLAGS, folder=small_disk / "data")
    stored = fill(client, server)
    assert metric(client, server, "tocsin_journal_full") == 1
    cancelled = client.get(server.topic("t") + "/jobs?limit=1").json()["jobs"][0]["id"]
    assert client.delete(server.topic("t") + "/jobs/" + cancelled).json() == {"outcome": "cancelled"}
    acked = 0
    while acked < stored - 1:
        jobs = reserve(client, server, max=20)
        assert jobs
        assert ack(client, server, *jobs) == ["ok"] * len(jobs)
        acked += len(jobs)
    # Old segments are given back in the background.
    end = time.monotonic() + DEADLINE_S
    while client.post(server.topic("t") + "/jobs", json={"payload": "again"}).status_code != 201:
        assert time.monotonic() < end, "jobs were never accepted again"
    assert metric(client, server, "tocsin_journal_full") == 0
    assert server.stop() == 0


def test_topics_that_change_on_a_full_disk_stop_nothing(small_disk, start, client):
    server = start(*FLAGS, folder=small_disk / "data")
    url = "http://receiver.example/" + "x" * 2_000  # so that each change is large
    with Wire(server) as wire:
        assert not isinstance(wire.call("TOPIC.SET", "pushed", "SINK", "webhook", "URL", url), Error)
    stored = fill(client, server)
    replies = []
    with Wire(server) as wire:
        for i in range(200):
            for change in range(20):
                wire.send("TOPIC.SET", "pushed", "MAX_ATTEMPTS", 1 + (i + change) % 20, "URL", f"{url}{i}")
                wire.send("TOPIC.PAUSE" if i % 2 else "TOPIC.RESUME", "pushed")
            replies += [wire.read() for _ in range(40)]
    refused = {str(reply).split()[0] for reply in replies if isinstance(reply, Error)}
    assert refused == {"STORAGEFULL"}, refused
    attempts = client.get(server.topic("pushed")).json()["max_attempts"]
    assert server.process.poll() is None
    assert client.get(server.url + "/readyz").status_code in (200, 503)
    server.kill()
    again = start(*FLAGS, folder=small_disk / "data")
    assert client.get(again.topic("t")).json()["figures"]["scheduled"] == stored
    assert client.get(again.topic("pushed")).json()["max_attempts"] == attempts
    jobs = reserve(client, again, max=20)
    assert ack(client, again, *jobs) == ["ok"] * len(jobs)
    assert again.stop() == 0


def test_what_a_full_disk_holds_survives_a_kill(small_disk, start, client):
    server = start(*FLAGS, folder=small_disk / "data")
    stored = fill(client, server)
    server.kill()
    again = start(*FLAGS, folder=small_disk / "data")
    figures = client.get(again.topic("t")).json()["figures"]
    assert (figures["recovered"], figures["scheduled"]) == (stored, stored)
    assert again.stop() == 0
