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
from functools import partial

import pytest
from cluster_faults import KINDS, fenced, hash_slot_of, master_fault, node_fault, reshard, zookeeper_fault
from cluster_load import Load, seed_of
from cluster_probe import Probe
from cluster_store_faults import full_disk, full_memory, lost_topics, restored
from cluster_world import GROUPS, Rig

MINUTES = float(os.environ.get("MINUTES") or 5)
FAULTS_OF_A_LOAD = 4  # then its jobs are drained and judged


def kinds_of(rig):
    return [kind for kind in KINDS if kind != "cut" or not rig.why_no_cut]


def node_faults(rig, world):
    """What is broken -> what breaks it, given the probe, the load and what to draw with."""

    def fault(kind, probe, load, draw):
        node_fault(world, probe, load, kind, draw)

    return {f"node: {kind}": partial(fault, kind) for kind in kinds_of(rig)}


def store_faults(world):
    faults = (lost_topics, full_memory, full_disk, restored)
    return {fault.__name__.replace("_", " "): partial(fault, world) for fault in faults}


def nodes(rig):
    world = rig.world(rig.single())
    return world, node_faults(rig, world) | store_faults(world)


def sentinels(rig):
    world = rig.world(rig.sentinels())

    def master(kind, probe, load, draw):
        old = world.redis.master()
        master_fault(world, probe, load, kind, old, lambda: world.redis.wait_for_new_master(old))

    kinds = [*kinds_of(rig), *(["lag"] if not rig.why_no_cut else [])]
    return world, {f"master: {kind}": partial(master, kind) for kind in kinds} | node_faults(rig, world)


def cluster(rig):
    world = rig.world(rig.cluster())

    def master(kind, probe, load, draw):
        hash_slot = hash_slot_of(draw.randrange(GROUPS))
        old = world.redis.master_of(hash_slot)
        master_fault(world, probe, load, kind, old, lambda: world.redis.wait_for_new_master(hash_slot, old))
        world.redis.wait_until_ok()

    def move(probe, load, draw):
        reshard(world, probe, load, draw)
        world.redis.wait_until_ok()

    masters = {f"master: {kind}": partial(master, kind) for kind in kinds_of(rig)}
    return world, masters | {"reshard": move} | node_faults(rig, world) | store_faults(world)


def zookeeper(rig):
    world = rig.world(rig.single(), zookeeper=rig.zookeeper())

    def fault(kind, probe, load, draw):
        zookeeper_fault(world, probe, load, kind, draw)

    return world, {f"ZooKeeper: {kind}": partial(fault, kind) for kind in kinds_of(rig)} | node_faults(rig, world)


def one_load(world, probe, faults, draw, end, totals):
    with Load(world, draw.random()) as load:
        load.run_for(200)
        for _ in range(FAULTS_OF_A_LOAD):
            if time.monotonic() < end:
                name = draw.choice(sorted(faults))
                faults[name](probe, load, draw)
                totals["faults"][name] += 1
        accepted, lost = load.verdict()
        totals["jobs"].update(loads=1, accepted=accepted, lost=lost)
        totals["delivered again"].update(load.again)


@pytest.mark.parametrize("make", [nodes, sentinels, cluster, zookeeper], ids=lambda make: make.__name__)
def test_faults_without_end(tmp_path, make):
    draw = random.Random(seed_of(os.environ.get("SEED")))
    totals = {name: collections.Counter() for name in ("jobs", "faults", "delivered again")}
    rig = Rig(tmp_path)
    try:
        world, faults = make(rig)
        probe = Probe(world)
        end = time.monotonic() + 60 * MINUTES
        with fenced(world) if world.is_single else contextlib.nullcontext():
            while time.monotonic() < end:
                one_load(world, probe, faults, draw, end, totals)
    finally:
        for name, count in totals.items():
            print(f"  in all, {name}: {dict(sorted(count.items()))}")
        rig.close()
