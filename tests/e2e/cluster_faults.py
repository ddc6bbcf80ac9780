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
from cluster_world import Rig, poll
from conftest import DEADLINE_S, now_ms
from group_tags import TAGS
from programs import hold, wait_for
from redis_servers import RedisSentinels

KINDS = ("kill", "stop", "cut")
LAG_S = 0.3
REFUSED = "groups_taken"  # says a node whose chore was refused
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


class Fenced:
    """Reads along each chore on the one Redis. A watch ends with the server that it reads: whoever kills that ends it before,
    and begins another one."""

    def __init__(self, world):
        self.world, self.watch, self.watches, self.seen = world, None, 0, {}

    def begin(self):
        (_, owners), _ = self.world.await_settled(30)
        self.watch = FenceWatch(self.world.redis, owners)
        self.watches += 1

    def end(self):
        if self.watch is None:
            return
        seen, self.watch = self.watch.close(), None
        print(f"  chores: {seen}")
        assert not seen["cut_off"], "the server went away, and what came after it was not watched"
        for name, value in seen.items():
            self.seen[name] = self.seen.get(name, type(value)()) + value
        assert seen["stale"] == [] and seen["denied"] == []


@contextlib.contextmanager
def fenced(world):
    """With each chore on the one Redis read along: none but the owner's was carried out (invariant 8, peer bug 12). What was
    seen is in the dictionary afterwards."""
    world.fence = fence = Fenced(world)
    fence.begin()
    try:
        yield fence.seen
    finally:
        world.fence = None
        fence.end()
    assert fence.seen["done"] > 0 and fence.seen["takes"] > 0


@contextlib.contextmanager
def unwatched(world):
    """The one Redis dies within, and with it the connection of the watch."""
    if world.fence:
        world.fence.end()
    yield
    if world.fence:
        world.fence.begin()


def node_fault(world, probe, load, kind, draw):
    """One node; nothing may be lost, and nothing may be late by more than the session and two seconds."""
    seat = world.seats[draw.choice(sorted(world.seats))]
    had = world.groups_of(seat)
    leased = probe.lease_all()
    began = time.monotonic()
    mend = break_it(seat, kind)
    if kind == "stop" and world.is_single:
        # So that it does not hear, when it goes on, that others have taken its groups: it has to be refused.
        world.redis.ask("CLIENT", "KILL", "TYPE", "pubsub")
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


def waited_fault(world, probe, load, kind, master, new_master):
    """The same where nodes wait for a replica (redis.wait_replicas): nothing that was answered may be undone, only claims
    may. What is left without a replica takes no writes, so the old master comes back first."""
    replicated = instant()
    world.await_replicas()
    mend = lag_and_kill(world, master) if kind == "lag" else break_it(master, kind, master.place)
    promoted = new_master()
    load.window(replicated, instant(), lost_max=0, claims_only=True)
    mend()
    wait_for(lambda: not master.is_master() and in_step(world), 30, "the old master among the replicas")
    healed = heal(world, probe, time.monotonic())
    load.run_for(200)
    print(f"  master {kind}, with a wait for replicas: {promoted.address} took over, all agreed after {healed:.2f} s")


def lag_and_kill(world, master, meanwhile=lambda: hold(LAG_S)):
    """The worst that asynchronous replication allows: the replicas hear nothing for a while before the master dies, and
    what was on its way to them dies with its machine."""
    servers = world.redis.servers if isinstance(world.redis, RedisSentinels) else world.redis.nodes
    replicas = [server for server in servers if follows(server, master)]
    for replica in replicas:
        replica.place.cut()
    meanwhile()  # the master answers the nodes, and nothing is replicated
    master.place.cut()
    master.kill()
    for replica in replicas:
        replica.place.heal()

    def mend():
        master.place.heal()
        master.start()

    return mend


def follows(server, master):
    role = server.ask("ROLE")
    return role[0] == "slave" and role[2] == master.port


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
    return redis.crc.key_slot(TAGS[group].encode())


def zookeeper_fault(world, probe, load, kind, draw):
    """Without ZooKeeper the members in Redis decide: jobs fire, leases end, and a node that dies is replaced."""
    began = time.monotonic()
    mend = break_it(world.zookeeper, kind, world.zookeeper.place)
    poll(lambda: all(seat.follows_redis() for seat in world.serving()), 2 * world.session_s + 2,
         "nodes that follow the list in Redis")
    switched = time.monotonic() - began
    fired = probe.fire_all(world.patience_s)
    seat = world.seats[draw.choice(sorted(world.seats))]
    leased = probe.lease_all()
    died = time.monotonic()
    seat.kill()
    returned = probe.await_return(leased, died, world.patience_s)
    load.run_for(100)
    seat.start()
    mend()
    _, settled = world.await_settled(world.patience_s)
    load.run_for(200)
    print(f"  ZooKeeper {kind}: nodes followed Redis after {switched:.2f} s; without it a job of every group fired in {fired:.2f} s, "
          f"node {seat.name} died and all leases were back after {returned:.2f} s; mended, all agreed after {settled:.2f} s")
