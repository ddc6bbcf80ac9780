"""Loads that once kept a shard's thread for long. What is judged is the longest turn that the server has measured (turns.py)."""

import threading
import time

import httpx
import pytest

from conftest import DEADLINE_S, ack, now_ms, reserve
from programs import wait_for
from resp_wire import Error, Wire, pack
from test_disk_full import FLAGS as SMALL_SEGMENTS
from test_disk_full import fill as fill_disk
from test_many_topics import fill as send_all
from test_slow_readers import fill as fill_with_large
from test_slow_readers import slow_readers

pytestmark = pytest.mark.torture  # several seconds each: not a part of make test

LOAD_S = 2
HOUR_MS = 3_600_000
BATCH = 10_000  # what limits.batch allows


def submit_batches(server, topic, jobs, *when, payload="p"):
    with Wire(server) as wire:
        for _ in range(jobs // BATCH):
            ids = wire.call("JOB.MSUBMIT", topic, *when, *[payload] * BATCH)
            assert not any(isinstance(each, Error) for each in ids), ids[:3]


def beside_each_other(*calls):
    """Repeats each call for LOAD_S, each on its own thread. Returns how often each ran."""
    end, ran, failed = time.monotonic() + LOAD_S, [0] * len(calls), []

    def repeat(i, call):
        try:
            while time.monotonic() < end:
                call()
                ran[i] += 1
        except Exception as error:  # of another thread: the test fails below
            failed.append(error)

    threads = [threading.Thread(target=repeat, args=arguments) for arguments in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    assert all(ran), ran


def asking(server, path):
    client = httpx.Client(timeout=DEADLINE_S)

    def ask():
        assert client.get(server.url + path).status_code == 200

    return ask


def walking(server, topic):
    """Lists all jobs of a topic, a page at a call."""
    wire, cursor = Wire(server), []

    def walk():
        page = wire.call("JOB.LIST", topic, "LIMIT", 1000, *(["CURSOR", cursor[0]] if cursor else []))
        assert not isinstance(page, Error), page
        cursor[:] = [page[0]] if page[0] else []

    return walk


@pytest.mark.turns("eight listers beside 300,000 jobs")
def test_listers(start):
    server = start("--shards", "1")
    submit_batches(server, "many", 300_000, "DELAY", HOUR_MS)
    send_all(server, [("JOB.SUBMIT", "few", "p", "DELAY", HOUR_MS)])
    lists = [asking(server, f"/v1/topics/{topic}/jobs?limit=1000&state={state}")
             for topic, state in [("few", "scheduled"), ("few", "dead"), ("many", "dead"), ("many", "scheduled")]]
    beside_each_other(*lists, *[walking(server, "many") for _ in range(4)])


@pytest.mark.turns("pollers beside 9,000 topics")
def test_pollers_beside_many_topics(start):
    server = start("--shards", "1")
    send_all(server, [("JOB.SUBMIT", f"topic-{i}", "p", "DELAY", HOUR_MS) for i in range(9_000)])
    paths = ["/v1/topics/topic-7", "/v1/topics/topic-8", "/v1/topics", "/v1/stats", "/metrics"]
    beside_each_other(*[asking(server, path) for path in paths])


@pytest.mark.turns("batches of 10,000")
def test_large_batches(start, client):
    """Submitted, due in one millisecond, reserved and acknowledged in calls of as many jobs as are allowed."""
    server = start("--shards", "1")
    jobs = 10 * BATCH
    submit_batches(server, "t", jobs, "AT", now_ms() + 3000)
    wait_for(lambda: client.get(server.topic("t")).json()["figures"]["ready"] == jobs, what="ready jobs")
    for _ in range(jobs // BATCH):
        some = reserve(client, server, max=BATCH)
        assert set(ack(client, server, *some)) == {"ok"}


@pytest.mark.turns("own ids, submitted again and replaced")
def test_own_ids(start):
    server = start("--shards", "1")
    for words in ([], [], ["REPLACE"]):
        send_all(server, [("JOB.SUBMIT", "t", "p", "ID", f"{i:08}-own-id", "DELAY", HOUR_MS, *words) for i in range(50_000)])


@pytest.mark.turns("leases that end on a full disk")
def test_leases_that_end_on_a_full_disk(small_disk, start, client):
    server = start(*SMALL_SEGMENTS, "--shards", "1", folder=small_disk / "data")
    jobs = 6 * BATCH
    submit_batches(server, "small", jobs, "DELAY", 0)
    fill_disk(client, server)

    def figures():
        return client.get(server.topic("small")).json()["figures"]

    wait_for(lambda: figures()["ready"] == jobs, what="ready jobs")
    leased = 0
    for _ in range(jobs // BATCH):
        leased += len(reserve(client, server, "small", max=BATCH, lease_ms=3000))
    assert leased > 0
    wait_for(lambda: figures()["leased"] == 0, what="the end of the leases")


@pytest.mark.turns("nacks without end on a full disk")
def test_nacks_on_a_full_disk(small_disk, start, client):
    server = start(*SMALL_SEGMENTS, "--shards", "1", folder=small_disk / "data")
    submit_batches(server, "small", BATCH, "DELAY", 0)
    fill_disk(client, server)

    def nack():
        some = reserve(client, server, "small", max=1000, wait_ms=100)
        if some:
            tokens = [job["token"] for job in some]
            answer = client.post(server.topic("small") + "/nack", json={"tokens": tokens, "delay_ms": 0})
            assert answer.status_code in (200, 507), answer.text

    beside_each_other(nack)


@pytest.mark.turns("reserves that find no room")
def test_reserves_without_room(start, client):
    server = start("--shards", "1", "--memory-limit", "512MiB")  # 64 MiB for answers
    submit_batches(server, "t", BATCH, "DELAY", 0, payload="x" * 1000)
    fill_with_large(client, server, "slow")
    answers = []

    def take():
        with httpx.Client(timeout=DEADLINE_S) as own:
            answers.append(own.post(server.topic("t") + "/reserve", json={"max": BATCH, "lease_ms": 100}).status_code)

    with slow_readers(server):
        beside_each_other(take, take, take)
    assert set(answers) <= {200, 503}


@pytest.mark.turns("topics made, filled and dropped")
def test_topics_that_come_and_go(start):
    server = start("--shards", "1")

    def come_and_go():
        with Wire(server) as wire:
            name = f"topic-{threading.get_ident()}"
            wire.send_raw(pack("JOB.MSUBMIT", name, "DELAY", HOUR_MS, *["p"] * BATCH) * 3 + pack("TOPIC.DROP", name))
            assert not any(isinstance(wire.read(), Error) for _ in range(4))

    beside_each_other(come_and_go, come_and_go)
