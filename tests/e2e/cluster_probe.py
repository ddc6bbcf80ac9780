"""Asks whether every group is served: a topic with a slot in each group, and one job for each slot.

What was leased comes back only through the owner of its group, so a probe that was leased before a fault says when all
groups have an owner again.
"""

import itertools
import time
import zlib

import httpx
from cluster_world import GROUPS
from conftest import now_ms

TOPIC = "probe"
LEASE_MS = 1000  # the fault has to come before they run out


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
        world.await_topic(TOPIC, slots=GROUPS, backoff_base_ms=0, backoff_max_ms=0)

    def submit(self, delay_ms=0):
        """One job for each group; their ids, with the due time of each."""
        self.round += 1
        ids = [f"{self.round}-{slot}" for slot in range(GROUPS)]
        jobs = [{"id": one, "key": KEYS[slot], "delay_ms": delay_ms} for slot, one in enumerate(ids)]
        answers = self.world.call("POST", f"/topics/{TOPIC}/jobs", {"jobs": jobs})["jobs"]
        assert [answer["outcome"] for answer in answers] == ["accepted"] * GROUPS, answers
        return {answer["id"]: answer["due_ms"] for answer in answers}

    def collect(self, due, within_s, lease_ms=20_000):
        """Takes them through all nodes that serve in turn, however often a call fails; by id."""
        got = {}
        end = time.monotonic() + within_s
        while len(got) < len(due):
            for seat in self.world.serving():
                jobs = self.reserve(seat, lease_ms)
                for job in jobs:
                    assert now_ms() >= job["due_ms"], f"early: {job}"
                    if job["id"] in due:
                        got[job["id"]] = job
            missing = sorted(due.keys() - got.keys())
            assert time.monotonic() < end, f"{len(missing)} slots are not served after {within_s:.1f} s: {missing}"
        return got

    @staticmethod
    def reserve(seat, lease_ms):
        body = {"max": GROUPS, "wait_ms": 50, "lease_ms": lease_ms}
        try:
            answer = seat.client.post(f"/v1/topics/{TOPIC}/reserve", json=body, timeout=2)
        except httpx.HTTPError:
            return []
        assert answer.status_code in (200, 503), answer.text
        return answer.json()["jobs"] if answer.status_code == 200 else []

    def settle(self, jobs):
        tokens = [job["token"] for job in jobs.values()]
        results = self.world.call("POST", f"/topics/{TOPIC}/ack", {"tokens": tokens})["results"]
        assert {result["outcome"] for result in results} <= {"ok"}, results

    def lease_all(self, lease_ms=LEASE_MS):
        """Leases a job of every group for a short while; what await_return asks for."""
        due = self.submit()
        self.collect(due, 20, lease_ms)
        return due

    def await_return(self, due, since, within_s):
        """Until all of them were given back by the owners of their groups; how long after `since` (time.monotonic)."""
        got = self.collect(due, since + within_s - time.monotonic())
        took = time.monotonic() - since
        self.settle(got)
        return took

    def fire_all(self, within_s, delay_ms=0):
        """Every group takes a job and delivers it; seconds."""
        began = time.monotonic()
        self.settle(self.collect(self.submit(delay_ms), within_s))
        return time.monotonic() - began
