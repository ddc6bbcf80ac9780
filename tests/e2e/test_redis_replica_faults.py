"""redis.wait_replicas under load, through a failover: what was answered holds, acks and cancels too. A claim may be forgotten,
and then its job comes twice.
"""

import os
import random

import pytest
from cluster_faults import hash_slot_of, skip_without_cut, waited_fault
from cluster_load import Load, seed_of
from cluster_probe import Probe
from cluster_world import GROUPS, Rig
from redis_cluster import RedisCluster

WAIT = ("--redis-wait-replicas", "1")


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    one = Rig(tmp_path_factory.mktemp("replicas"))
    yield one
    one.close()


@pytest.fixture(scope="module", params=["sentinels", "cluster"])
def world(request, rig):
    return rig.world(getattr(rig, request.param)(), name=f"nodes-{request.param}", flags=WAIT)


@pytest.fixture(scope="module")
def probe(world):
    return Probe(world)


@pytest.mark.parametrize("kind", ["kill", "lag"])
def test_a_failover_loses_nothing_that_was_answered(rig, world, probe, kind):
    """kill: the replicas follow. lag: they hear nothing for a while before the master dies; without the setting hundreds of
    jobs that were answered are lost then."""
    if kind == "lag":
        skip_without_cut(rig, "cut")
    draw = random.Random(seed_of(os.environ.get("SEED")))
    redis, hash_slot = world.redis, hash_slot_of(draw.randrange(GROUPS))
    is_cluster = isinstance(redis, RedisCluster)
    old = redis.master_of(hash_slot) if is_cluster else redis.master()
    with Load(world, draw.random()) as load:
        load.run_for(200)
        waited_fault(world, probe, load, kind, old,
                     lambda: redis.wait_for_new_master(hash_slot, old) if is_cluster else redis.wait_for_new_master(old))
        accepted, lost = load.verdict()
    assert accepted > 0 and lost == 0
    if is_cluster:
        redis.wait_until_ok()
