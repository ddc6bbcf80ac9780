"""Faults of nodes, of masters of Redis and of ZooKeeper under load, one after another, and what must hold around each.

Every run begins with a lease in each group and ends with the same once more: whatever was broken, every group gives its
expired lease back within the session and two seconds, and nothing is ever started again that was not killed here.
"""

import contextlib
import math
import time

import pytest
import redis.crc
from cluster_load import instant
from cluster_monitor import FenceWatch
from cluster_probe import TOPIC, Probe
from cluster_world import PREFIX, Rig, poll
from conftest import DEADLINE_S, now_ms
from programs import hold, wait_for

KINDS = ("kill", "stop", "cut")
LAG_S = 0.3
REFUSED = "was taken by another node"  # says a node whose chore was refused
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


@contextlib.contextmanager
def fenced(world):
    """With each chore on the one Redis read along: none but the owner's was carried out (invariant 8, peer bug 12). What was
    seen is in the dictionary afterwards."""
    (_, owners), _ = world.await_settled(30)
    watch, seen = FenceWatch(world.redis, owners), {}
    try:
        yield seen
    finally:
        seen |= watch.close()
        print(f"  chores: {seen}")
    assert seen["done"] > 0 and seen["takes"] > 0
    assert seen["stale"] == [] and seen["denied"] == []


def node_fault(world, probe, load, kind, draw):
    """One node; nothing may be lost, and nothing may be late by more than the session and two seconds."""
    seat = world.seats[draw.choice(sorted(world.seats))]
    had = world.groups_of(seat)
    leased = probe.lease_all()
    began = time.monotonic()
    mend = break_it(seat, kind)
    fired = probe.fire_all(world.patience_s)
    returned = probe.await_return(leased, began, world.patience_s)
    _, settled = world.await_settled(world.patience_s)
    load.run_for(200)
    left = []
    if kind == "stop" and world.is_single:
        left = go_on_with_old_epochs(world, probe, seat, had)
    else:
        mend()
    mended = time.monotonic()
    healed = heal(world, probe, mended)
    if left:
        probe.await_return(left, time.monotonic(), world.patience_s)
    load.run_for(200)
    print(f"  node {seat.name} {kind}: all groups fire after {fired:.2f} s, all leases are back after {returned:.2f} s, "
          f"agreed {settled:.2f} s later; mended, all agreed after {healed:.2f} s")


def go_on_with_old_epochs(world, probe, seat, groups):
    """Resumes a node whose groups others have taken, so that it does its work with the epochs that it had: leases of these
    groups have run out, no other node gives them back, and it cannot register anew before it was refused. Returns the
    leased probes."""
    others = world.serving()

    def others_leave_work():
        """They stand still while leases are running still."""
        leased = probe.lease_all()
        for other in others:
            other.pause()
        end_ms = max(world.lease_ends(TOPIC, groups), default=0)
        if end_ms > now_ms():
            return leased, end_ms
        for other in others:
            other.resume()
        return None

    (leased, end_ms), _ = poll(others_leave_work, DEADLINE_S, "a lease that nobody gives back")
    poll(lambda: now_ms() > end_ms, DEADLINE_S, "the end of the leases")
    said = len(seat.errors())
    with world.registration_closed():
        seat.resume()
        poll(lambda: REFUSED in seat.errors()[said:], world.patience_s, "a chore with an old epoch that was refused")
    for other in others:
        other.resume()
    return leased


def heal(world, probe, mended):
    """All nodes agree within the session and two seconds of `mended`, and every group has an owner that does its part."""
    world.await_settled(max(0.1, mended + world.patience_s - time.monotonic()))
    took = time.monotonic() - mended
    leased = probe.lease_all()
    probe.await_return(leased, time.monotonic(), world.patience_s)
    return took


def master_fault(world, probe, load, kind, master, new_master):
    """The master of some groups; `new_master()` returns when another has taken over. What was answered from then on may not
    be undone, nor what was answered before all replicas were seen to have it; what was lost in between is counted."""
    leased = probe.lease_all()
    replicated = instant()
    world.await_replicas()
    began = time.monotonic()
    mend = lag_and_kill(world, master) if kind == "lag" else break_it(master, kind, master.place)
    promoted = new_master()
    took_over = time.monotonic()
    load.window(replicated, instant(), math.inf if kind == "lag" else load.one_turn)
    returned = probe.await_return(leased, took_over, world.patience_s)
    fired = probe.fire_all(world.patience_s)
    world.await_settled(world.patience_s)
    load.run_for(200)
    goes_on = instant()
    mend()
    wait_for(lambda: not master.is_master() and in_step(world), 30, "the old master among the replicas")
    if kind == "stop":
        load.window(goes_on, instant())  # it does not know yet that it is the master no more, and may be asked
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
    hold(LAG_S)  # the master answers the nodes, and nothing is replicated
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
