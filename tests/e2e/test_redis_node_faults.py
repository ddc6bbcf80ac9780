"""Nodes on one Redis that are killed, stand still, or lose their network: nothing is lost, nothing early, nothing stuck."""

import os
import random

import pytest
from cluster_faults import KINDS, fenced, fixtures, node_fault, skip_without_cut
from cluster_load import Load, seed_of

rig, world, probe = fixtures(lambda rig: rig.world(rig.single()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_fails(rig, world, probe, kind):
    skip_without_cut(rig, kind)
    draw = random.Random(seed_of(os.environ.get("SEED")))
    with fenced(world) as seen, Load(world, draw.random()) as load:
        load.run_for(200)
        node_fault(world, probe, load, kind, draw)
        load.verdict()
    assert kind != "stop" or seen["refused"] > 0, "what it did with its old epochs was refused"
