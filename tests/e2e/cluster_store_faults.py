"""Redis loses, refuses or forgets a part of what it holds, under load: what must hold around each.

    lost_topics    the key with the list of topics is gone, with or without that of its version
    full_memory    Redis, or a master of a Cluster, is at maxmemory for a while
    full_disk      it can write nothing to its append-only file for a while
    restored       a master dies, and comes back with a copy of its files that was made some seconds before
"""

import resource
import shutil
import time

from cluster_faults import follows, hash_slot_of, heal, unwatched
from cluster_load import instant
from cluster_world import GROUPS, PREFIX
from conftest import DEADLINE_S
from programs import hold, wait_for
from redis_cluster import RedisCluster

TOPICS_KEY = f"{{{PREFIX}}}topics"
REFUSING_S = 2


def lost_topics(world, probe, load, draw):
    """The nodes know the topics, and put them back: nothing may be lost."""
    server = world.server_of(f"{{{PREFIX}}}")
    had = server.ask("HLEN", TOPICS_KEY)
    assert had > 0
    lost = draw.choice([[TOPICS_KEY], [TOPICS_KEY, TOPICS_KEY + ":version"]])
    server.ask("DEL", *lost)
    began = time.monotonic()
    wait_for(lambda: server.ask("HLEN", TOPICS_KEY) == had, DEADLINE_S, "topics that are put back")
    back = time.monotonic() - began
    fired = probe.fire_all(world.patience_s)
    load.run_for(200)
    print(f"  lost topics, {len(lost)} keys: all {had} were back after {back:.2f} s, a job of every group fired in {fired:.2f} s")


def full_memory(world, probe, load, draw):
    """What is stored is delivered, and the rest refused: nothing may be lost."""
    server = one_master(world, draw)
    server.ask("CONFIG", "SET", "maxmemory", 1)
    try:
        hold(REFUSING_S)
    finally:
        server.ask("CONFIG", "SET", "maxmemory", 0)
    goes_on(world, probe, load, "full memory")


def full_disk(world, probe, load, draw):
    """Redis refuses every write until it has written what it answered before: nothing may be lost."""
    server = one_master(world, draw)
    with unwatched(world):  # Redis refuses chores of owners too
        limit_files(server, 1)
        try:
            wait_for(lambda: server.info("persistence")["aof_last_write_status"] == "err", DEADLINE_S, "a full disk")
            hold(REFUSING_S)
        finally:
            limit_files(server, resource.RLIM_INFINITY)
        wait_for(lambda: server.info("persistence")["aof_last_write_status"] == "ok", DEADLINE_S, "room on the disk")
    goes_on(world, probe, load, "full disk")


def one_master(world, draw):
    """The one Redis, or any master of a Cluster."""
    if not isinstance(world.redis, RedisCluster):
        return world.redis
    return world.redis.master_of(hash_slot_of(draw.randrange(GROUPS)))


def goes_on(world, probe, load, what):
    mended = time.monotonic()
    healed = heal(world, probe, mended)
    load.run_for(200)
    print(f"  {what}: for {REFUSING_S} s; mended, all agreed after {healed:.2f} s")


def limit_files(server, size):
    """The largest size of a file that it may write: an error of the append-only file, as on a full disk."""
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def restored(world, probe, load, draw):
    """What this master answered since the copy may be undone. Nothing else may be, on the other masters either."""
    master, replicas = one_master(world, draw), []
    if isinstance(world.redis, RedisCluster):
        replicas = [one for one in world.redis.nodes if follows(one, master)]
    slots = load.slots_on(master)
    files, copy = master.folder / "appendonlydir", master.folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copied = instant()
    shutil.copytree(files, copy)
    load.run_for(200)
    with unwatched(world):
        for server in (*replicas, master):  # the replicas first: none of them may take over
            server.kill()
        shutil.rmtree(files)
        shutil.copytree(copy, files)
        for server in (master, *replicas):
            server.start()
        load.window(copied, instant(), slots=slots)
        if replicas:
            world.redis.wait_until_ok()
            world.redis.wait_until_in_step()
        healed = heal(world, probe, time.monotonic())
    load.run_for(200)
    print(f"  restored master: all agreed {healed:.2f} s after it was back")
