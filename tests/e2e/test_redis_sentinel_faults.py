"""The master behind Sentinel is killed, stands still, or loses its network."""

import os
import random
import threading
import time

import httpx
import pytest
from cluster_faults import KINDS, fixtures, in_step, lag_and_kill, master_fault, skip_without_cut
from cluster_load import Load, seed_of
from cluster_world import poll
from conftest import DEADLINE_S, now_ms

rig, world, probe = fixtures(lambda rig: rig.world(rig.sentinels()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_master_fails(rig, world, probe, kind):
    skip_without_cut(rig, kind)
    draw = random.Random(seed_of(os.environ.get("SEED")))
    old = world.redis.master()
    with Load(world, draw.random()) as load:
        load.run_for(200)
        failovers = world.redis.failovers()
        master_fault(world, probe, load, kind, old, lambda: world.redis.wait_for_new_master(old))
        verdict_after(world, load, failovers)


def verdict_after(world, load, failovers):
    """What was answered before a failover that nothing here caused may be undone, and no window says when that was."""
    try:
        load.verdict()
    except AssertionError as error:
        extra = world.redis.failovers() - failovers - 1
        if extra > 0:
            pytest.skip(f"this machine stood still so long that Sentinel failed over {extra} times more: {error}")
        raise


def test_what_no_replica_had_received_is_lost_and_nothing_else(rig, world, probe):
    skip_without_cut(rig, "cut")
    draw = random.Random(seed_of(os.environ.get("SEED")))
    old = world.redis.master()
    with Load(world, draw.random()) as load:
        load.run_for(200)
        master_fault(world, probe, load, "lag", old, lambda: world.redis.wait_for_new_master(old))
        _, lost = load.verdict()
    assert lost > 0, "the loss that the README tells of can be seen, and is measured"


def test_a_topic_that_no_replica_had_received_is_put_back_by_the_nodes(rig, world):
    skip_without_cut(rig, "cut")
    old = world.redis.master()
    world.await_replicas()
    mend = lag_and_kill(world, old, lambda: world.await_topic("fresh", slots=4, lease_ms=4321))
    promoted = world.redis.wait_for_new_master(old)
    poll(lambda: str(promoted.ask("HEXISTS", "{tocsin}topics", "fresh")) == "1", DEADLINE_S, "a topic that a node has put back")
    world.await_settled(DEADLINE_S)
    for seat in world.serving():
        assert seat.call("GET", "/topics/fresh")["lease_ms"] == 4321
        seat.call("POST", "/topics/fresh/jobs", {"payload": seat.name})
    got = world.call("POST", "/topics/fresh/reserve", {"max": 10, "wait_ms": 1000})["jobs"]
    assert sorted(job["payload"] for job in got) == sorted(seat.name for seat in world.serving())
    mend()
    poll(lambda: not old.is_master() and in_step(world), DEADLINE_S, "the old master among the replicas")


def test_peer_bug_03_nobody_is_wedged_while_sentinels_have_no_master_to_name(world, probe):
    """bullmq #4378. The master dies while no sentinel answers; calls fail in time instead of hanging, and everything,
    also a reserve that was parked before, goes on when the sentinels have found a new one."""
    a, b, _ = world.seats.values()
    world.await_topic("wedge", slots=4)
    world.await_replicas()
    old = world.redis.master()
    for sentinel in world.redis.sentinels:
        sentinel.pause()
    old.kill()

    began = time.monotonic()
    refused = a.client.post("/v1/topics/wedge/jobs", json={"payload": "x"}, timeout=10)
    assert refused.status_code == 503 and refused.json()["error"]["code"] == "unavailable", refused.text
    assert time.monotonic() - began < 5, "as redis.timeout says, not for ever"
    poll(lambda: a.client.get("/readyz").status_code == 503, 5, "a node that says that it is not ready")
    assert a.client.get("/healthz").status_code == 200

    got = []

    def park():
        with httpx.Client(base_url=b.server.url, timeout=60) as client:
            got.extend(client.post("/v1/topics/wedge/reserve", json={"wait_ms": 50_000}).json()["jobs"])

    parked = threading.Thread(target=park, daemon=True)
    parked.start()
    for sentinel in world.redis.sentinels:
        sentinel.resume()
    world.redis.wait_for_new_master(old)
    found = time.monotonic()
    fired = probe.fire_all(world.patience_s)
    submitted = a.call("POST", "/topics/wedge/jobs", {"payload": "late", "delay_ms": 200})["jobs"][0]
    parked.join(world.patience_s)
    assert [job["payload"] for job in got] == ["late"], "the reserve that waited through all of it is served"
    assert now_ms() >= submitted["due_ms"]
    world.await_settled(world.patience_s)
    print(f"\n  every group fired {fired:.2f} s after the new master was named, all was well after "
          f"{time.monotonic() - found:.2f} s")
    old.start()
    world.redis.wait_until_in_step()
