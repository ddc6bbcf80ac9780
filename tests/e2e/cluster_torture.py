"""The faults of test_redis_*_faults.py again and again, in an order that a seed draws: `make torture-cluster`.

    MINUTES=30   for each of the four kinds of cluster (5 unless set)
    SEED=42      repeats the choices of a run

Not collected by `make test`: its name does not begin with test_.
"""

import collections
import contextlib
import os
import random
import time

import pytest
from cluster_faults import KINDS, fenced, hash_slot_of, master_fault, node_fault, reshard, zookeeper_fault
from cluster_load import Load, seed_of
from cluster_probe import Probe
from cluster_world import GROUPS, Rig

MINUTES = float(os.environ.get("MINUTES") or 5)
FAULTS_OF_A_LOAD = 4  # then its jobs are drained and judged


def kinds_of(rig):
    return [kind for kind in KINDS if kind != "cut" or not rig.why_no_cut]


def nodes(rig):
    world = rig.world(rig.single())
    return world, [lambda probe, load, draw: node_fault(world, probe, load, draw.choice(kinds_of(rig)), draw)]


def sentinels(rig):
    world = rig.world(rig.sentinels())

    def master(probe, load, draw):
        old = world.redis.master()
        kind = draw.choice([*kinds_of(rig), *(["lag"] if not rig.why_no_cut else [])])
        master_fault(world, probe, load, kind, old, lambda: world.redis.wait_for_new_master(old))

    return world, [master, lambda probe, load, draw: node_fault(world, probe, load, draw.choice(kinds_of(rig)), draw)]


def cluster(rig):
    world = rig.world(rig.cluster())

    def master(probe, load, draw):
        hash_slot = hash_slot_of(draw.randrange(GROUPS))
        old = world.redis.master_of(hash_slot)
        kind = draw.choice(kinds_of(rig))
        master_fault(world, probe, load, kind, old, lambda: world.redis.wait_for_new_master(hash_slot, old))
        world.redis.wait_until_ok()

    def move(probe, load, draw):
        reshard(world, probe, load, draw)
        world.redis.wait_until_ok()

    return world, [master, move, lambda probe, load, draw: node_fault(world, probe, load, draw.choice(kinds_of(rig)), draw)]


def zookeeper(rig):
    world = rig.world(rig.single(), zookeeper=rig.zookeeper())
    return world, [
        lambda probe, load, draw: zookeeper_fault(world, probe, load, draw.choice(kinds_of(rig))),
        lambda probe, load, draw: node_fault(world, probe, load, draw.choice(kinds_of(rig)), draw),
    ]


def one_load(world, probe, faults, draw, end, count):
    with Load(world, draw.random()) as load:
        load.run_for(200)
        for _ in range(FAULTS_OF_A_LOAD):
            if time.monotonic() < end:
                draw.choice(faults)(probe, load, draw)
                count.update(faults=1)
        accepted, lost = load.verdict()
        count.update(loads=1, accepted=accepted, lost=lost)


@pytest.mark.parametrize("make", [nodes, sentinels, cluster, zookeeper], ids=lambda make: make.__name__)
def test_faults_without_end(tmp_path, make):
    draw = random.Random(seed_of(os.environ.get("SEED")))
    count = collections.Counter()
    rig = Rig(tmp_path)
    try:
        world, faults = make(rig)
        probe = Probe(world)
        end = time.monotonic() + 60 * MINUTES
        with fenced(world) if world.is_single else contextlib.nullcontext():
            while time.monotonic() < end:
                one_load(world, probe, faults, draw, end, count)
    finally:
        print(f"  in all: {dict(count)}")
        rig.close()
