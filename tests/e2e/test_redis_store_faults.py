"""Redis loses, refuses or forgets a part of what it holds, while three nodes serve under load."""

import os
import random

import pytest
from cluster_faults import fixtures
from cluster_load import Load, seed_of
from cluster_store_faults import full_disk, full_memory, lost_topics, restored

rig, world, probe = fixtures(lambda rig: rig.world(rig.single()))


@pytest.mark.parametrize("fault", [lost_topics, full_memory, full_disk, restored], ids=lambda fault: fault.__name__)
def test_redis_fails_in_part(world, probe, fault):
    draw = random.Random(seed_of(os.environ.get("SEED")))
    with Load(world, draw.random()) as load:
        load.run_for(200)
        fault(world, probe, load, draw)
        load.verdict()
