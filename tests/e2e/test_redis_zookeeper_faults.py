"""Nodes that find each other through ZooKeeper, while it is killed, stands still beyond the session, or is cut off."""

import os
import random

import pytest
from cluster_faults import KINDS, fenced, fixtures, node_fault, skip_without_cut, zookeeper_fault
from cluster_load import Load, seed_of

rig, world, probe = fixtures(lambda rig: rig.world(rig.single(), zookeeper=rig.zookeeper()))


@pytest.mark.parametrize("kind", KINDS)
def test_zookeeper_fails(rig, world, probe, kind):
    skip_without_cut(rig, kind)
    draw = random.Random(seed_of(os.environ.get("SEED")))
    with fenced(world), Load(world, draw.random()) as load:
        load.run_for(200)
        zookeeper_fault(world, probe, load, kind, draw)
        load.verdict()


def test_an_owner_stands_still_past_its_session(world, probe):
    """What it still does with its old epochs is refused."""
    draw = random.Random(seed_of(os.environ.get("SEED")))
    with fenced(world) as seen, Load(world, draw.random()) as load:
        load.run_for(200)
        node_fault(world, probe, load, "stop", draw)
        load.verdict()
    assert seen["refused"] > 0
