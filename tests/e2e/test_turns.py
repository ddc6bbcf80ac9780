"""Loads that once kept a shard's thread for long. What is judged is the longest turn that the server has measured (turns.py)."""

import contextlib
import resource
import socket
import threading
import time

import httpx
import pytest

import turns
from conftest import DEADLINE_S, ack, await_metric, metric, now_ms, reserve
from programs import wait_for
from resp_wire import Error, Wire, pack
from test_disk_full import FLAGS as SMALL_SEGMENTS
from test_disk_full import fill as fill_disk
from test_limits import request
from test_many_topics import fill as send_all
from test_slow_readers import fill as fill_with_large
from test_slow_readers import slow_readers

LOAD_S = 2
HOUR_MS = 3_600_000
BATCH = 10_000  # what limits.batch allows
PAYLOAD = "x" * 1000
PARKED = 2_000
PARK_MS = 5_000


def load(name, **bounds):
    """Several seconds, so not a part of make test. Loads with turns of 4 ms and more have long_turns: others on the machine
    may add a millisecond to a few of thousands."""
    return lambda test: pytest.mark.torture(pytest.mark.turns(name, **bounds)(test))


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


@load("eight listers beside 300,000 jobs", long_turns=3)
def test_listers(start):
    server = start("--shards", "1")
    submit_batches(server, "many", 300_000, "DELAY", HOUR_MS)
    send_all(server, [("JOB.SUBMIT", "few", "p", "DELAY", HOUR_MS)])
    lists = [asking(server, f"/v1/topics/{topic}/jobs?limit=1000&state={state}")
             for topic, state in [("few", "scheduled"), ("few", "dead"), ("many", "dead"), ("many", "scheduled")]]
    beside_each_other(*lists, *[walking(server, "many") for _ in range(4)])


@load("pollers beside 9,000 topics", long_turns=3)
def test_pollers_beside_many_topics(start):
    server = start("--shards", "1")
    send_all(server, [("JOB.SUBMIT", f"topic-{i}", "p", "DELAY", HOUR_MS) for i in range(9_000)])
    paths = ["/v1/topics/topic-7", "/v1/topics/topic-8", "/v1/topics", "/v1/stats", "/metrics"]
    beside_each_other(*[asking(server, path) for path in paths])


@load("batches of 10,000")
def test_large_batches(start, client):
    """Submitted, due in one millisecond, reserved and acknowledged in calls of as many jobs as are allowed."""
    server = start("--shards", "1")
    jobs = 10 * BATCH
    submit_batches(server, "t", jobs, "AT", now_ms() + 3000)
    wait_for(lambda: client.get(server.topic("t")).json()["figures"]["ready"] == jobs, what="ready jobs")
    for _ in range(jobs // BATCH):
        some = reserve(client, server, max=BATCH)
        assert set(ack(client, server, *some)) == {"ok"}


def submit_small_calls(server, topic, jobs, payload):
    """Due at once."""
    each = 500
    send_all(server, [("JOB.MSUBMIT", topic, "DELAY", 0, *[payload] * each)] * (jobs // each))


def reserves_of_all(server, client):
    """Reserves all jobs at once, over each door."""
    figures = lambda: client.get(server.topic("t")).json()["figures"]
    for door in ("http", "packed", "resp"):
        wait_for(lambda: figures()["ready"] == BATCH, what="ready jobs")
        if door == "resp":
            with Wire(server) as wire:
                jobs = wire.call("JOB.RESERVE", "t", "MAX", BATCH, "LEASE", 1000)
                assert {job[2] for job in jobs} == {PAYLOAD.encode()}
        else:
            headers = {"Accept-Encoding": "gzip" if door == "packed" else "identity"}
            answer = client.post(server.topic("t") + "/reserve", json={"max": BATCH, "lease_ms": 1000}, headers=headers)
            jobs = answer.json()["jobs"]
            assert {job["payload"] for job in jobs} == {PAYLOAD}
        assert len(jobs) == BATCH


@pytest.mark.alone
@pytest.mark.turns("reserves of 10,000 jobs of 1 kB")
def test_large_reserves(start, client):
    """Each gets all that it asked for, and others have their turn meanwhile."""
    server = start("--shards", "1")
    settings = {"backoff_base_ms": 0, "max_attempts": 100}
    assert client.put(server.topic("t"), json=settings).status_code == 201
    submit_small_calls(server, "t", BATCH, PAYLOAD)
    turns.until_short(server, lambda: reserves_of_all(server, client))


def msubmit(jobs, payload):
    def submit(server, client):
        with Wire(server) as wire:
            ids = wire.call("JOB.MSUBMIT", "t", "DELAY", HOUR_MS, *[payload] * jobs)
            assert len(ids) == jobs and not any(isinstance(each, Error) for each in ids), ids[:3]

    return submit


def http_submit(jobs, **job):
    def submit(server, client):
        answer = client.post(server.topic("t") + "/jobs", json={"jobs": [{"delay_ms": HOUR_MS, **job}] * jobs})
        assert answer.status_code == 201, answer.text[:300]
        assert {each["outcome"] for each in answer.json()["jobs"]} == {"accepted"}

    return submit


def reserve_and_nack(server, client):
    submit_small_calls(server, "t", BATCH, "p")
    with Wire(server) as wire:
        tokens = []
        while len(tokens) < BATCH:
            tokens += [job[1] for job in wire.call("JOB.RESERVE", "t", "MAX", BATCH, "WAIT", 1000)]
        outcomes = wire.call("JOB.NACK", "t", *tokens, "DEAD", "REASON", "r" * 1024)
        assert set(outcomes) == {"dead"}
        wire.call("TOPIC.PURGE", "t")


def reserve_large_jobs(server, client):
    jobs, size = 15, 1 << 20
    with Wire(server) as wire:
        wire.call("JOB.MSUBMIT", "large", "DELAY", 0, *["x" * size] * jobs)
        got = []
        while len(got) < jobs:
            got += wire.call("JOB.RESERVE", "large", "MAX", jobs, "WAIT", 1000)
        assert {len(job[2]) for job in got} == {size}
        assert set(wire.call("JOB.ACK", "large", *[job[1] for job in got])) == {"ok"}


LARGE_CALLS = {
    "submit of 10,000 jobs of 1 kB": msubmit(BATCH, PAYLOAD),
    "submit of 15 jobs of 1 MiB": msubmit(15, "x" * (1 << 20)),
    "HTTP submit of 10,000 jobs of 1 kB": http_submit(BATCH, payload=PAYLOAD),
    "HTTP submit of 10,000 jobs of one byte": http_submit(BATCH, payload="p"),
    "HTTP submit of 10 jobs of 1 MB": http_submit(10, payload="x" * 1_000_000),
    "HTTP submit of 9,000 jobs with 32 headers": http_submit(9_000, headers={f"h{i}": "v" for i in range(32)}),
    "HTTP submit of a payload with 20,000 keys": http_submit(1, payload={f"{i:x}": 0 for i in range(20_000)}),
    "HTTP submit of a payload with 80,000 keys": http_submit(1, payload={f"{i:x}": 0 for i in range(80_000)}),
    "nack of 10,000 jobs with reasons of 1 KiB": reserve_and_nack,
    "reserve of 15 jobs of 1 MiB": reserve_large_jobs,
}


IN_MAKE_TEST = {
    "HTTP submit of 10,000 jobs of 1 kB",
    "HTTP submit of 10,000 jobs of one byte",
    "HTTP submit of a payload with 20,000 keys",
    "reserve of 15 jobs of 1 MiB",
}


@pytest.mark.turns("one call")
@pytest.mark.parametrize(
    "call", [pytest.param(call, marks=pytest.mark.alone if call in IN_MAKE_TEST else pytest.mark.torture) for call in LARGE_CALLS]
)
def test_large_calls(start, client, call):
    """With all that one call may have. Its shard works on it in several turns, none of which is long."""
    server = start("--shards", "1", "--memory-limit", "1GiB")
    turns.until_short(server, lambda: LARGE_CALLS[call](server, client))


RESERVES = {
    "http": request("POST", "/v1/topics/t/reserve", b'{"wait_ms":%d,"lease_ms":100}' % PARK_MS),
    "resp": pack("JOB.RESERVE", "t", "WAIT", PARK_MS, "LEASE", 100),
}


@contextlib.contextmanager
def connections(port):
    """PARKED of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < PARKED + 1_000:
        pytest.skip(f"this needs {PARKED + 1_000} open files, and {hard} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with contextlib.ExitStack() as stack:
            connect = lambda: socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
            yield [stack.enter_context(connect()) for _ in range(PARKED)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def parked(server, client, door):
    """Connections that each wait in a reserve."""
    with connections(server.port if door == "http" else server.resp_port) as wires:
        for wire in wires:
            wire.sendall(RESERVES[door])
        await_metric(client, server, f"tocsin_{door}_parked", PARKED)
        yield wires


@pytest.mark.alone
@pytest.mark.turns("2,000 parked reserves that wake together")
@pytest.mark.parametrize("door", RESERVES)
def test_parked_reserves_that_wake_together(start, client, door):
    server = start("--shards", "1", "--clock", "virtual")

    def wake():
        with parked(server, client, door) as wires, Wire(server) as other:
            other.call("JOB.MSUBMIT", "t", "DELAY", 1000, *["p"] * PARKED)
            other.call("CLOCK.ADVANCE", 1000)
            got = [wire.recv(65536) for wire in wires]
            assert all(b"token" in answer or answer.startswith(b"*1\r\n") for answer in got), got[:3]
            other.call("TOPIC.DROP", "t")

    turns.until_short(server, wake)


@pytest.mark.alone
@pytest.mark.turns("2,000 parked reserves that expire together")
@pytest.mark.parametrize("door", RESERVES)
def test_parked_reserves_that_expire_together(start, client, door):
    """The server sleeps while their deadlines pass."""
    server = start("--shards", "1")

    def expire():
        with parked(server, client, door) as wires:
            server.pause()
            end = time.monotonic() + PARK_MS / 1000
            wait_for(lambda: time.monotonic() > end, what="the deadlines")
            server.resume()
            got = [wire.recv(65536) for wire in wires]
            assert all(b'"jobs":[]' in answer or answer == b"*0\r\n" for answer in got), got[:3]

    turns.until_short(server, expire)


ASKED_TOGETHER = {
    "submits that wait for one sync": (201, request("POST", "/v1/topics/t/jobs", b'{"payload":"p","delay_ms":%d}' % HOUR_MS)),
    "totals that share a walk": (200, request("GET", "/v1/stats")),
}


@pytest.mark.alone
@pytest.mark.turns("2,000 requests")
@pytest.mark.parametrize("kind", ASKED_TOGETHER)
def test_requests_that_are_answered_together(start, client, kind):
    """They come while the server sleeps."""
    server = start("--shards", "1")
    send_all(server, [("JOB.SUBMIT", f"topic-{i}", "p", "DELAY", HOUR_MS) for i in range(200)])
    status, asked = ASKED_TOGETHER[kind]

    def ask():
        with connections(server.port) as wires:
            await_metric(client, server, "tocsin_http_connections", PARKED + 1)
            server.pause()
            for wire in wires:
                wire.sendall(asked)
            server.resume()
            got = [wire.recv(65536) for wire in wires]
            assert all(answer.startswith(b"HTTP/1.1 %d " % status) for answer in got), got[:3]

    turns.until_short(server, ask)


@load("own ids, submitted again and replaced")
def test_own_ids(start):
    server = start("--shards", "1")
    for words in ([], [], ["REPLACE"]):
        send_all(server, [("JOB.SUBMIT", "t", "p", "ID", f"{i:08}-own-id", "DELAY", HOUR_MS, *words) for i in range(50_000)])


@load("leases that end on a full disk")
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


@load("nacks without end on a full disk", long_turns=3)
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


@load("reserves that find no room", long_turns=3)
def test_reserves_without_room(start, client):
    server = start("--shards", "1", "--memory-limit", "512MiB")  # 64 MiB for answers
    submit_small_calls(server, "t", BATCH, PAYLOAD)
    fill_with_large(client, server, "slow")
    answers = []

    def take():
        with httpx.Client(timeout=DEADLINE_S) as own:
            answers.append(own.post(server.topic("t") + "/reserve", json={"max": BATCH, "lease_ms": 100}).status_code)

    with slow_readers(server):
        beside_each_other(take, take, take)
    assert set(answers) <= {200, 503}


@load("topics made, filled and dropped")
def test_topics_that_come_and_go(start):
    server = start("--shards", "1")

    def come_and_go():
        with Wire(server) as wire:
            name = f"topic-{threading.get_ident()}"
            wire.send_raw(pack("JOB.MSUBMIT", name, "DELAY", HOUR_MS, *["p"] * BATCH) * 3 + pack("TOPIC.DROP", name))
            assert not any(isinstance(wire.read(), Error) for _ in range(4))

    beside_each_other(come_and_go, come_and_go)


def operating(server, client, **body):
    """Runs an operation on all jobs of a topic to its end."""
    path = server.topic("t") + "/operations"

    def operate():
        begun = client.post(path, json={"all": True, **body}).json()
        wait_for(lambda: client.get(f"{path}/{begun['id']}").json()["state"] == "done", what="the end of the operation")

    return operate


@load("operations on 300,000 jobs", long_turns=3)
def test_operations_on_many_jobs(start, client):
    server = start("--shards", "1")
    submit_batches(server, "t", 300_000, "DELAY", HOUR_MS)
    beside_each_other(operating(server, client, action="reschedule", shift_ms=HOUR_MS), walking(server, "t"))
    operating(server, client, action="fire")()
    operating(server, client, action="purge")()
    assert client.get(server.topic("t")).json()["figures"]["scheduled"] == 0


@load("five clients of /v1/load beside 300,000 jobs", long_turns=3)
def test_clients_of_the_future_load(start):
    server = start("--shards", "1")
    for hours in range(1, 4):
        submit_batches(server, f"topic-{hours}", 100_000, "DELAY", hours * HOUR_MS)
    span = f"from={now_ms()}&to={now_ms() + 24 * HOUR_MS}"
    beside_each_other(*[asking(server, f"/v1/load?{span}&step=60000&by=topic")] * 5)


@load("tallies of 10,000 long values", long_turns=3)
def test_tallies_of_long_values(start, client):
    """Of 8 kB each, which begin in the same way. Their groups take little memory, however many clients count."""
    server = start("--shards", "1")
    for begin in range(0, BATCH, 500):
        jobs = [{"payload": "p", "delay_ms": HOUR_MS, "headers": {"h": f"{'x' * 200}{i}{'y' * 7000}"}}
                for i in range(begin, begin + 500)]
        client.post(server.topic("t") + "/jobs", json={"jobs": jobs}).raise_for_status()
    resident = lambda: metric(client, server, "process_resident_memory_bytes")
    before = resident()
    beside_each_other(*[asking(server, "/v1/topics/t/tally?by_header=h")] * 4)
    assert resident() - before < 64 << 20


@load("200 tallies beside large submits", long_turns=3)
def test_tallies_beside_large_submits(start):
    server = start("--shards", "1")
    submit_batches(server, "many", 300_000, "DELAY", HOUR_MS)
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            counts = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            counts.sendall(request("GET", "/v1/topics/many/tally?payload=z"))
        with Wire(server) as wire:
            beside_each_other(lambda: wire.call("JOB.MSUBMIT", "large", "DELAY", HOUR_MS, *["x" * 1_000_000] * 8))
