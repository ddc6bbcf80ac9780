"""Reserves take room before they claim jobs: those that find none wait, are not refused, and hold up nobody."""

import contextlib
import json
import re
import selectors
import socket
import time

import pytest

from conftest import DEADLINE_S
from test_limits import request
from test_resp_wire import rss_bytes
from test_slow_readers import fill, slow_readers

pytestmark = pytest.mark.alone

MIB = 1 << 20
BUDGET = 64 * MIB  # of a memory limit of 512 MiB
RESERVES = 40
EACH = 4
PAYLOAD = "x" * 1_000_000
TRIES = 3  # what else the machine does makes turns long, too


def metric(client, server, name):
    """The sum over all labels."""
    text = client.get(server.url + "/metrics").text
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


def await_at_least(client, server, name, at_least):
    end = time.monotonic() + DEADLINE_S
    while metric(client, server, name) < at_least:
        assert time.monotonic() < end, f"{name} is below {at_least}"


@contextlib.contextmanager
def parked(server, topic, reserves, body):
    """Connections that sent a reserve and have read nothing yet."""
    with contextlib.ExitStack() as stack:
        wires = []
        for _ in range(reserves):
            wire = stack.enter_context(socket.socket())
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.settimeout(DEADLINE_S)
            wire.connect(("127.0.0.1", server.port))
            fields = ["Connection: close"]
            wire.sendall(request("POST", f"/v1/topics/{topic}/reserve", json.dumps(body).encode(), *fields))
            wires.append(wire)
        yield wires


def read_all(wires, sample):
    """All answers, read side by side to their ends. Calls `sample` now and then."""
    answers = {wire: bytearray() for wire in wires}
    end = time.monotonic() + 4 * DEADLINE_S
    with selectors.DefaultSelector() as selector:
        for wire in wires:
            selector.register(wire, selectors.EVENT_READ)
        while selector.get_map():
            assert time.monotonic() < end, f"{len(selector.get_map())} reserves are not answered"
            for key, _ in selector.select(1):
                got = key.fileobj.recv(MIB)
                answers[key.fileobj] += got
                if not got:
                    selector.unregister(key.fileobj)
                    sample()
    return [bytes(answer) for answer in answers.values()]


def test_parked_reserves_of_large_jobs_stay_within_the_budget(start, client):
    server = start("--memory-limit", "512MiB", "--shards", "2")
    url = server.topic("t")
    assert client.put(url, json={"paused": True}).status_code in (200, 201)
    for _ in range(RESERVES * EACH // 10):
        assert client.post(url + "/jobs", json={"jobs": [{"payload": PAYLOAD}] * 10}).status_code == 201
    with parked(server, "t", RESERVES, {"max": EACH, "wait_ms": 120_000, "lease_ms": 600_000}) as wires:
        await_at_least(client, server, "tocsin_http_parked", RESERVES)
        before, most = rss_bytes(server), 0

        def sample():
            nonlocal most
            most = max(most, rss_bytes(server))

        assert client.post(url + "/resume").status_code == 200
        await_at_least(client, server, "tocsin_transfer_memory_bytes", BUDGET // 2)
        for _ in range(20):  # nobody reads: the answers fill the budget, and the other reserves stay parked
            sample()
            assert metric(client, server, "tocsin_transfer_memory_bytes") <= BUDGET + RESERVES * (64 << 10)
        assert metric(client, server, "tocsin_http_parked") > 0
        answers = read_all(wires, sample)
    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 200"}
    jobs = [job for answer in answers for job in json.loads(answer.partition(b"\r\n\r\n")[2])["jobs"]]
    while len(jobs) < RESERVES * EACH:  # a reserve takes what it has room for
        answer = client.post(url + "/reserve", json={"max": EACH, "wait_ms": 1000})
        assert answer.status_code == 200 and answer.json()["jobs"], f"{len(jobs)} jobs: {answer.text[:200]}"
        jobs += answer.json()["jobs"]
        sample()
    print(f"RSS grew by {(most - before) / MIB:.0f} MiB, of {BUDGET // MIB}")
    assert most - before < BUDGET
    assert len({job["id"] for job in jobs}) == RESERVES * EACH
    assert {job["attempt"] for job in jobs} == {1}
    assert all(job["payload"] == PAYLOAD for job in jobs)
    results = client.post(url + "/ack", json={"tokens": [job["token"] for job in jobs]}).json()["results"]
    assert {result["outcome"] for result in results} == {"ok"}
    figures = client.get(url).json()["figures"]
    assert figures["delivered"] == figures["acked"] == RESERVES * EACH, "nothing was claimed and given back"


def turns_beside_many_jobs(server, client):
    """Turns over 5 ms while reserves of 10,000 jobs each find no room for more than a few."""
    url = server.topic("many")
    assert client.post(url + "/jobs", json={"jobs": [{"payload": "x" * 100}] * 10_000}).status_code == 201
    delivered = client.get(url).json()["figures"]["delivered"]
    got = 0
    with slow_readers(server):
        before = metric(client, server, "tocsin_shard_long_turns_total")
        for _ in range(60):
            answer = client.post(url + "/reserve", json={"max": 10_000})
            assert answer.status_code == 200, answer.text
            got += len(answer.json()["jobs"])
        long_turns = metric(client, server, "tocsin_shard_long_turns_total") - before
    assert client.get(url).json()["figures"]["delivered"] - delivered == got, "nothing was claimed and given back"
    print(f"{long_turns:.0f} turns over 5 ms, in 60 reserves of {got} jobs")
    return long_turns


def test_reserves_that_find_no_room_take_no_long_turns(start, client):
    server = start("--memory-limit", "512MiB", "--shards", "2")
    fill(client, server, "slow")
    tries = []
    while not tries or (len(tries) < TRIES and tries[-1] > 0):
        tries.append(turns_beside_many_jobs(server, client))
        if tries[-1] > 0:
            fill(client, server, "slow")
    assert tries[-1] == 0, tries
