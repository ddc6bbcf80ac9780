"""redis.wait_replicas: what is answered is on a replica."""

import threading

import httpx
import pytest
import redis_servers
from conftest import DEADLINE_S, reserve
from programs import wait_for

PRODUCERS = 4
ENOUGH = 400  # answers before the master dies


@pytest.fixture
def pair(tmp_path):
    """A master, and a replica that follows it."""
    if why := redis_servers.why_not():
        pytest.skip(why)
    at_once = "repl-diskless-sync-delay 0"
    master = redis_servers.RedisServer(tmp_path / "master", [at_once])
    replica = redis_servers.RedisServer(tmp_path / "replica", [at_once, f"replicaof {master.host} {master.port}"])
    wait_for(lambda: replica.info("replication")["master_link_status"] == "up", DEADLINE_S, "a replica that follows")
    wait_for(lambda: "state=online" in master.info("replication").get("slave0", ""), DEADLINE_S, "a master that knows it")
    yield master, replica
    for server in (replica, master):
        server.close()


def stored(client, server, **job):
    """Stores a job. On a busy machine a replica may take longer than a write waits for it: then once more."""

    def is_stored():
        return client.post(server.topic("t") + "/jobs", json=job).status_code in (200, 201)

    wait_for(is_stored, DEADLINE_S, "a write that the replica has")


def acked(client, server, jobs):
    """Acks jobs, once more where the replica takes too long."""
    tokens = [job["token"] for job in jobs]
    assert tokens

    def is_acked():
        return client.post(server.topic("t") + "/ack", json={"tokens": tokens}).status_code == 200

    wait_for(is_acked, DEADLINE_S, "an ack that the replica has")


def test_what_was_answered_is_on_the_replica_when_the_master_dies(node, pair):
    master, replica = pair
    server = node("a", master, "--redis-wait-replicas", "1", "--redis-timeout", "1s")
    answered, dead = [], threading.Event()

    def produce(number):
        with httpx.Client(timeout=DEADLINE_S) as one:
            for each in range(100_000):
                answer = one.post(server.topic("t") + "/jobs", json={"id": f"{number}-{each}", "delay_ms": 3_600_000})
                if answer.status_code == 201:
                    answered.append(answer.json()["jobs"][0]["id"])
                if dead.is_set():
                    return

    producers = [threading.Thread(target=produce, args=(number,)) for number in range(PRODUCERS)]
    for one in producers:
        one.start()
    wait_for(lambda: len(answered) >= ENOUGH, DEADLINE_S, "some answers")
    master.kill()
    dead.set()
    for one in producers:
        one.join(DEADLINE_S)
    replica.ask("REPLICAOF", "NO", "ONE")
    held = set()
    for key in replica.ask("KEYS", "{tocsin*:id"):
        held |= {field[2:] for field in replica.ask("HKEYS", key)}
    assert set(answered) <= held, sorted(set(answered) - held)


def test_without_a_replica_a_write_is_unknown_and_reserves_go_on(node, pair, client):
    master, replica = pair
    server = node("a", master, "--redis-wait-replicas", "1")
    stored(client, server, id="before", payload="x")
    replica.pause()
    refused = client.post(server.topic("t") + "/jobs", json={"id": "during", "payload": "x"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable"), refused.text
    assert "0 of 1 replicas" in refused.json()["error"]["message"]
    got = []
    while len(got) < 2:  # the second one was stored: it is only not known to last
        got += reserve(client, server, max=2, wait_ms=DEADLINE_S * 1000)
    replica.resume()
    assert sorted(job["id"] for job in got) == ["before", "during"]

    acked(client, server, got)
    stored(client, server, id="after")
    acked(client, server, reserve(client, server, wait_ms=DEADLINE_S * 1000))
