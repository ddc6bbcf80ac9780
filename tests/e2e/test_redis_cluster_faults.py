"""A master of a Redis Cluster is killed, stands still, or loses its network; hash slots move; all under load."""

import os
import random

import pytest
from cluster_faults import KINDS, fixtures, hash_slot_of, master_fault, reshard, skip_without_cut
from cluster_load import Load, seed_of
from cluster_store_faults import full_disk, full_memory, lost_topics, restored
from cluster_world import GROUPS

rig, world, probe = fixtures(lambda rig: rig.world(rig.cluster()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_master_fails(rig, world, probe, kind):
    skip_without_cut(rig, kind)
    draw = random.Random(seed_of(os.environ.get("SEED")))
    hash_slot = hash_slot_of(draw.randrange(GROUPS))
    old = world.redis.master_of(hash_slot)
    with Load(world, draw.random()) as load:
        load.run_for(200)
        master_fault(world, probe, load, kind, old, lambda: world.redis.wait_for_new_master(hash_slot, old))
        load.verdict()
    world.redis.wait_until_ok()


@pytest.mark.parametrize("fault", [lost_topics, full_memory, full_disk, restored], ids=lambda fault: fault.__name__)
def test_a_master_fails_in_part(world, probe, fault):
    """The list of topics is lost; a master takes nothing more for a while; or it comes back with an old copy of its files,
    which undoes nothing on the others."""
    draw = random.Random(seed_of(os.environ.get("SEED")))
    with Load(world, draw.random()) as load:
        load.run_for(200)
        fault(world, probe, load, draw)
        load.verdict()
    world.redis.wait_until_ok()


def test_hash_slots_move_under_load(world, probe):
    """Nothing is lost: a reshard is no failover."""
    draw = random.Random(seed_of(os.environ.get("SEED")))
    with Load(world, draw.random()) as load:
        load.run_for(200)
        reshard(world, probe, load, draw)
        load.verdict()
    world.redis.wait_until_ok()
