"""Nodes on one Redis that are killed, stand still, or lose their network: nothing is lost, nothing early, nothing stuck."""

import os
import random

import pytest
from cluster_faults import KINDS, fixtures, node_fault, skip_without_cut
from cluster_load import Load, seed_of
from cluster_monitor import FenceWatch

rig, world, probe = fixtures(lambda rig: rig.world(rig.single()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_fails(rig, world, probe, kind):
    """With each chore's epoch read along: none with an old one was carried out (invariant 8, peer bug 12)."""
    skip_without_cut(rig, kind)
    draw = random.Random(seed_of(os.environ.get("SEED")))
    (_, owners), _ = world.await_settled(30)
    watch = FenceWatch(world.redis, {group: epoch for group, (_, epoch) in owners.items()})
    try:
        with Load(world, draw.random()) as load:
            load.run_for(200)
            node_fault(world, probe, load, kind, draw)
            load.verdict()
    finally:
        seen = watch.close()
    print(f"  chores: {seen}")
    assert seen["done"] > 0 and seen["takes"] > 0
    assert seen["stale"] == []
