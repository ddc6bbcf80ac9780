"""The memory that operations.md tells people to plan for is enough, whatever sizes of jobs come and go."""

import itertools
import time

from conftest import DEADLINE_S
from resp_wire import Error, Wire, pack
from test_resp_wire import rss_bytes

MIB = 1 << 20
LIMIT_MIB = 64
BATCH = 500


def plan_bytes(limit_mib):
    return limit_mib * MIB * 9 // 8 + 200 * MIB


PLAN = plan_bytes(LIMIT_MIB)


def fill(wire, size):
    """Submits jobs of this size until the server has no memory for more; their ids."""
    payload, ids = b"x" * size, []
    for first in itertools.count(0, BATCH):
        names = [f"{size}-{first + i}" for i in range(BATCH)]
        wire.send_raw(b"".join(pack("JOB.SUBMIT", "t", payload, "ID", name, "DELAY", 3_600_000) for name in names))
        replies = [wire.read() for _ in names]
        ids += [name for name, reply in zip(names, replies) if not isinstance(reply, Error)]
        if isinstance(replies[-1], Error):
            assert "OVERCAPACITY" in str(replies[-1]).replace("_", "").upper()
            return ids


def cancel(wire, ids):
    for begin in range(0, len(ids), BATCH):
        names = ids[begin : begin + BATCH]
        wire.send_raw(b"".join(pack("JOB.CANCEL", "t", name) for name in names))
        assert {wire.read() for _ in names} == {"cancelled"}


def test_sizes_that_come_and_go_stay_within_the_plan(start):
    server = start("--memory-limit", f"{LIMIT_MIB}MiB", "--shards", "1")
    with Wire(server) as wire:
        for size in (500, 900, 1700, 3100, 6000, 12_000, 40_000, 90_000, 300_000):
            end = time.monotonic() + DEADLINE_S
            ids = fill(wire, size)
            while len(ids) * size < LIMIT_MIB * MIB // 2:  # room comes back once the others have moved together
                assert time.monotonic() < end, f"only {len(ids)} jobs of {size} bytes found room"
                cancel(wire, ids)
                ids = fill(wire, size)
            assert rss_bytes(server) < PLAN, f"with jobs of {size} bytes"
            cancel(wire, [name for i, name in enumerate(ids) if i % 64])


def test_leases_that_expire_stay_within_the_plan(start, client):
    """Millions of the smallest jobs fill the memory; then each is reserved, and nobody acks it."""
    limit_mib = 384  # with less, the fixed part of the plan would hide what each job gains
    server = start("--memory-limit", f"{limit_mib}MiB", "--shards", "1", "--durability", "os")
    settings = {"backoff_base_ms": 3_600_000, "backoff_max_ms": 3_600_000}
    assert client.put(server.topic("t"), json=settings).status_code == 201
    body = b'{"jobs":[' + b",".join([b'{"payload":""}'] * 10_000) + b"]}"
    headers = {"content-type": "application/json"}
    end = time.monotonic() + 4 * DEADLINE_S
    jobs = 0
    while client.post(server.topic("t") + "/jobs", content=body, headers=headers).status_code == 201:
        jobs += 10_000
        assert time.monotonic() < end
    assert jobs > limit_mib * MIB / 250
    while client.get(server.topic("t")).json()["figures"]["expired"] < jobs:
        answer = client.post(server.topic("t") + "/reserve", json={"max": 10_000, "lease_ms": 1})
        assert answer.status_code == 200, answer.text
        assert time.monotonic() < end
    assert rss_bytes(server) < plan_bytes(limit_mib)
