"""Asks whether every group is served: a topic with a slot in each group, and one job for each slot.

What was leased comes back only through the owner of its group, so a probe that was leased before a fault says when all
groups have an owner again.
"""

import itertools
import time
import zlib

import httpx
from cluster_world import GROUPS
from programs import wait_for
from conftest import now_ms

TOPIC = "probe"
LEASE_MS = 1000  # the fault has to come before they run out
PAUSE_S = 0.1
CALL_S = 3


def keys_by_slot():
    """A key for each slot: slot = crc32(key) mod slots."""
    keys = {}
    for number in itertools.count():
        keys.setdefault(zlib.crc32(str(number).encode()) % GROUPS, str(number))
        if len(keys) == GROUPS:
            return keys


KEYS = keys_by_slot()


class Probe:
    def __init__(self, world):
        self.world = world
        self.round = 0
        self.held = {}  # delivered, and not asked for yet
        world.await_topic(TOPIC, slots=GROUPS, backoff_base_ms=0, backoff_max_ms=0)

    def post(self, what, body, within_s=20):
        """Through whichever node answers; a call that failed may have happened all the same, and is made again."""
        end = time.monotonic() + within_s
        while True:
            for seat in self.world.serving():
                try:
                    answer = seat.client.post(f"/v1/topics/{TOPIC}/{what}", json=body, timeout=CALL_S)
                except httpx.HTTPError:
                    continue
                assert answer.status_code in (200, 201, 503), answer.text
                if answer.status_code != 503:
                    return answer.json()
            assert time.monotonic() < end, f"no node answers to {what} within {within_s} s"

    def submit(self, delay_ms=0):
        """One job for each group; their ids."""
        self.round += 1
        ids = [f"{self.round}-{slot}" for slot in range(GROUPS)]
        jobs = [{"id": one, "key": KEYS[slot], "delay_ms": delay_ms} for slot, one in enumerate(ids)]
        answers = self.post("jobs", {"jobs": jobs})["jobs"]
        assert {answer["outcome"] for answer in answers} <= {"accepted", "duplicate"}, answers
        return ids

    def collect(self, ids, within_s, lease_ms=20_000):
        """Takes them through all nodes that serve in turn, however often a call fails; by id."""

        def missing():
            return [one for one in ids if one not in self.held]

        def collected():
            while missing() and sum(self.reserve(seat, lease_ms) for seat in self.world.serving()):
                pass
            return not missing()

        wait_for(collected, within_s, lambda: f"the jobs of {len(missing())} slots, {missing()},", PAUSE_S)
        return [self.held.pop(one) for one in ids]

    def reserve(self, seat, lease_ms):
        """Without a wait, which misses nothing that is there; how many jobs came."""
        body = {"max": GROUPS, "wait_ms": 0, "lease_ms": lease_ms}
        try:
            answer = seat.client.post(f"/v1/topics/{TOPIC}/reserve", json=body, timeout=CALL_S)
        except httpx.HTTPError:
            return 0
        assert answer.status_code in (200, 503), answer.text
        jobs = answer.json().get("jobs", [])
        for job in jobs:
            assert now_ms() >= job["due_ms"], f"early: {job}"
            self.held[job["id"]] = job
        return len(jobs)

    def settle(self, jobs):
        results = self.post("ack", {"tokens": [job["token"] for job in jobs]})["results"]
        assert {result["outcome"] for result in results} <= {"ok", "stale"}, results  # stale: the second try of two

    def lease_all(self, lease_ms=LEASE_MS):
        """Leases a job of every group for a short while: what await_return waits for."""
        ids = self.submit()
        self.collect(ids, 20, lease_ms)
        return ids

    def await_return(self, ids, since, within_s):
        """Until all of them were given back by the owners of their groups; how long after `since` (time.monotonic)."""
        got = self.collect(ids, since + within_s - time.monotonic())
        took = time.monotonic() - since
        self.settle(got)
        return took

    def fire_all(self, within_s, delay_ms=0):
        """Every group takes a job and delivers it; seconds."""
        began = time.monotonic()
        self.settle(self.collect(self.submit(delay_ms), within_s))
        return time.monotonic() - began
