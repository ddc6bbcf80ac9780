"""The memory that operations.md tells people to plan for is enough, whatever sizes of jobs come and go."""

import itertools
import time

from conftest import DEADLINE_S
from resp_wire import Error, Wire, pack
from test_resp_wire import rss_bytes

MIB = 1 << 20
LIMIT_MIB = 64
PLAN = LIMIT_MIB * MIB * 9 // 8 + 200 * MIB
BATCH = 500


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
