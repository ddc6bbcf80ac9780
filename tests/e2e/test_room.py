"""Reserves take room before they claim jobs: those that find none wait, are not refused, and hold up nobody."""

import contextlib
import json
import re
import selectors
import socket
import time

import pytest

from conftest import DEADLINE_S, ack, reserve
from test_limits import request
from test_resp_wire import rss_bytes
from test_slow_readers import fill, slow_readers

pytestmark = pytest.mark.alone

MIB = 1 << 20
BUDGET = 64 * MIB  # of a memory limit of 512 MiB
KEPT = 32 * MIB  # by malloc, for the threads of the two shards, of what was given back
RESERVES = 40
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


# The kernel buffers 2.5 MB of an unread answer. The rest of a larger one stays in the server, and other reserves wait.
@pytest.mark.parametrize("megabytes, each, some_wait", [(1, 4, False), (4, 1, True)])
def test_parked_reserves_of_large_jobs_stay_within_the_budget(start, client, megabytes, each, some_wait):
    server = start("--memory-limit", "512MiB", "--shards", "2", "--limits-payload-size", "4MiB")
    url, payload, all_jobs = server.topic("t"), "x" * (megabytes * 1_000_000), RESERVES * each
    assert client.put(url, json={"paused": True}).status_code == 201
    for _ in range(all_jobs // 2):
        assert client.post(url + "/jobs", json={"jobs": [{"payload": payload}] * 2}).status_code == 201
    with parked(server, "t", RESERVES, {"max": each, "wait_ms": 60_000, "lease_ms": 600_000}) as wires:
        await_at_least(client, server, "tocsin_http_parked", RESERVES)
        before, most = rss_bytes(server), 0

        def sample():
            nonlocal most
            most = max(most, rss_bytes(server))

        assert client.post(url + "/resume").status_code == 200
        await_at_least(client, server, "tocsin_transfer_memory_bytes", BUDGET // 2)
        for _ in range(20):
            sample()
            assert metric(client, server, "tocsin_transfer_memory_bytes") <= BUDGET + RESERVES * (64 << 10)
        assert not some_wait or metric(client, server, "tocsin_http_parked") > 0
        answers = read_all(wires, sample)
    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 200"}
    jobs = [job for answer in answers for job in json.loads(answer.partition(b"\r\n\r\n")[2])["jobs"]]
    while len(jobs) < all_jobs:  # a reserve takes what it has room for
        jobs += reserve(client, server, max=each, wait_ms=10_000)
        sample()
    print(f"RSS grew by {(most - before) / MIB:.0f} MiB beside a budget of {BUDGET // MIB}")
    assert most - before < BUDGET + KEPT
    assert len({job["id"] for job in jobs}) == all_jobs
    assert {job["attempt"] for job in jobs} == {1}
    assert all(job["payload"] == payload for job in jobs)
    assert set(ack(client, server, *jobs)) == {"ok"}
    figures = client.get(url).json()["figures"]
    assert figures["delivered"] == figures["acked"] == all_jobs, "nothing was claimed and given back"


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
