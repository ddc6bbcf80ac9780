"""Faults of nodes, of masters of Redis and of ZooKeeper under load, one after another, and what must hold around each.

Every run begins with a lease in each group and ends with the same once more: whatever was broken, every group gives its
expired lease back within the session and two seconds, and nothing is ever started again that was not killed here.
"""

import threading
import time

import pytest
import redis.crc
from cluster_load import instant
from cluster_probe import Probe
from cluster_world import PREFIX, Rig, poll
from programs import wait_for

KINDS = ("kill", "stop", "cut")
LAG_S = 0.3
WORDS = {"kill": ("kill", "start"), "stop": ("pause", "resume"), "cut": ("cut", "heal")}


def fixtures(make_world):
    """For a module of tests, to be given these names there: rig, world, probe. make_world(rig) chooses the topology."""

    @pytest.fixture(scope="module")
    def rig(request, tmp_path_factory):
        one = Rig(tmp_path_factory.mktemp(request.module.__name__))
        yield one
        one.close()

    @pytest.fixture(scope="module")
    def world(rig):
        return make_world(rig)

    @pytest.fixture(scope="module")
    def probe(world):
        return Probe(world)

    return rig, world, probe


def break_it(part, kind, place=None):
    """Breaks a part (a Seat, a server of Redis or ZooKeeper); what mends it again."""
    harm, mend = WORDS[kind]
    if kind == "cut" and place is not None:
        part = place
    getattr(part, harm)()
    return getattr(part, mend)


def skip_without_cut(rig, kind):
    if kind == "cut" and rig.why_no_cut:
        pytest.skip(rig.why_no_cut)


def node_fault(world, probe, load, kind, draw):
    """One node; nothing may be lost, and nothing may be late by more than the session and two seconds."""
    seat = world.seats[draw.choice(sorted(world.seats))]
    leased = probe.lease_all()
    began = time.monotonic()
    mend = break_it(seat, kind)
    fired = probe.fire_all(world.patience_s)
    returned = probe.await_return(leased, began, world.patience_s)
    _, settled = world.await_settled(world.patience_s)
    load.run_for(200)
    mend()
    mended = time.monotonic()
    healed = heal(world, probe, mended)
    load.run_for(200)
    print(f"  node {seat.name} {kind}: all groups fire after {fired:.2f} s, all leases are back after {returned:.2f} s, "
          f"agreed {settled:.2f} s later; mended, all agreed after {healed:.2f} s")


def heal(world, probe, mended):
    """All nodes agree within the session and two seconds of `mended`, and every group has an owner that does its part."""
    world.await_settled(max(0.1, mended + world.patience_s - time.monotonic()))
    took = time.monotonic() - mended
    leased = probe.lease_all()
    probe.await_return(leased, time.monotonic(), world.patience_s)
    return took


def master_fault(world, probe, load, kind, master, new_master):
    """The master of some groups; `new_master()` returns when another has taken over. What was lost is counted."""
    leased = probe.lease_all()
    world.await_replicas()
    began, fault = time.monotonic(), instant()
    mend = lag_and_kill(world, master) if kind == "lag" else break_it(master, kind, master.place)
    promoted = new_master()
    took_over = time.monotonic()
    returned = probe.await_return(leased, took_over, world.patience_s)
    fired = probe.fire_all(world.patience_s)
    world.await_settled(world.patience_s)
    load.run_for(200)
    mend()
    wait_for(lambda: not master.is_master() and in_step(world), 30, "the old master among the replicas")
    load.window(fault, instant())
    healed = heal(world, probe, time.monotonic())
    load.run_for(200)
    print(f"  master {kind}: {promoted.address} took over after {took_over - began:.2f} s, all leases were back "
          f"{returned:.2f} s later, a job of every group fires in {fired:.2f} s; mended, all agreed after {healed:.2f} s")


def lag_and_kill(world, master):
    """The worst that asynchronous replication allows: the replicas hear nothing for a while before the master dies, and
    what was on its way to them dies with its machine."""
    replicas = [server for server in world.redis.servers if server is not master]
    for replica in replicas:
        replica.place.cut()
    threading.Event().wait(LAG_S)  # the fault itself: the nodes are answered, and nothing is replicated
    master.place.cut()
    master.kill()
    for replica in replicas:
        replica.place.heal()

    def mend():
        master.place.heal()
        master.start()

    return mend


def in_step(world):
    try:
        world.redis.wait_until_in_step(0.5)
    except AssertionError:
        return False
    return True


def reshard(world, probe, load, draw, slots=6):
    """Hash slots of some groups move to other masters, keys in small portions, while everything goes on."""
    groups = draw.sample(range(64), slots)
    moved = 0
    began = time.monotonic()
    for group in groups:
        hash_slot = hash_slot_of(group)
        source = world.redis.master_of(hash_slot)
        to = draw.choice([master for master in world.redis.masters() if master is not source])
        world.redis.begin_migration(hash_slot, to)
        while count := world.redis.move_keys(hash_slot, source, to, 5):
            moved += count
        world.redis.end_migration(hash_slot, source, to)
        load.run_for(20)
    took = time.monotonic() - began
    healed = heal(world, probe, time.monotonic())
    print(f"  reshard: {len(groups)} hash slots with {moved} keys moved in {took:.2f} s; all agreed after {healed:.2f} s")


def hash_slot_of(group):
    return redis.crc.key_slot(f"{{{PREFIX}.{group}}}".encode())


def zookeeper_fault(world, probe, load, kind):
    """Without ZooKeeper every node keeps what it looked after: jobs fire and leases end as ever."""
    began = time.monotonic()
    mend = break_it(world.zookeeper, kind, world.zookeeper.place)
    poll(lambda: all(seat.metric("tocsin_cluster_members") == 0 for seat in world.serving()), 2 * world.session_s + 2,
         "nodes that know that their sessions are over")
    alone = time.monotonic() - began
    fired = probe.fire_all(world.patience_s)
    leased = probe.lease_all()
    returned = probe.await_return(leased, time.monotonic(), world.patience_s)
    load.run_for(100)
    mend()
    _, settled = world.await_settled(world.patience_s)
    load.run_for(200)
    print(f"  ZooKeeper {kind}: nodes knew after {alone:.2f} s; without it a job of every group fired in {fired:.2f} s and all leases "
          f"were back after {returned:.2f} s; mended, all agreed after {settled:.2f} s")
