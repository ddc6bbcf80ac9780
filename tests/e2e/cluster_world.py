"""Many nodes on one Redis, each of which can be killed, stopped, cut off and started again, and what they say of each other.

    world = World(folder, redis, names="abc")      # with zookeeper=... they find each other there
    world.seats["a"].kill(); ...; world.seats["a"].start()
    world.await_settled(within_s)                  # all nodes that serve agree on who owns what, and Redis says the same
    world.close()                                  # each must stop as asked

`Rig` brings what a world stands on, in namespaces where those can be made, so that every part can be cut off.
"""

import contextlib
import json
import time

import httpx
import netns
import pytest
import redis
import redis.crc
import redis_servers
import zookeeper_server
from conftest import DEADLINE_S, Server
from group_tags import TAGS
from programs import LOOPBACK, Place, wait_for
from redis_cluster import RedisCluster

GROUPS = 64
PREFIX = "tocsin"
SESSION_S = 2
GRACE_S = 2  # after the session every group is served again
POLL_S = 0.03
ASK_S = 5
LEASES_IN_A_MS, LEASES_SINCE_MS = 4096, 1577836800000  # the scores of leases: script_parts.h, lease_until


def poll(condition, within_s, what):
    """Waits for the condition; returns what it returned, and after how many seconds."""
    began = time.monotonic()
    return wait_for(condition, within_s, what, POLL_S), time.monotonic() - began


def with_the_tests(place):
    """The same place, where what runs is killed with the tests."""
    return Place(place.host, [*place.prefix, "setpriv", "--pdeathsig", "KILL"])


class Seat:
    """Where one node runs: it may be killed and started again, with another id and, in a namespace, on other ports."""

    def __init__(self, name, flags, folder, place):
        self.name, self.flags, self.folder, self.place = name, flags, folder, place
        self.server = None
        self.serving = False  # neither dead nor stopped nor cut off
        self.client = httpx.Client(timeout=ASK_S)
        self.log = []
        self.start()

    def start(self):
        self.server = Server(self.folder, *self.flags, place=with_the_tests(self.place))
        self.client.close()
        self.client = httpx.Client(timeout=ASK_S, base_url=self.server.url)
        self.serving = True

    def kill(self):
        self.serving = False
        self.server.kill()
        self.log += self.server.errors

    def pause(self):
        self.serving = False
        self.server.pause()

    def resume(self):
        self.server.resume()
        self.serving = True

    def cut(self):
        self.serving = False
        self.place.cut()

    def heal(self):
        self.place.heal()
        self.serving = True

    def cluster(self):
        answer = self.client.get("/v1/cluster")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def follows_redis(self):
        """Whether it has its members from Redis because ZooKeeper is away."""
        return "the members are those in redis" in self.cluster()["coordinator"]["state"]

    def call(self, method, path, body=None, expect=(200, 201)):
        answer = self.client.request(method, "/v1" + path, content=None if body is None else json.dumps(body))
        assert answer.status_code in expect, f"{self.name}: {method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def metric(self, name):
        for line in self.client.get("/metrics").text.splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(f"{self.name} has no metric {name}")

    def errors(self):
        return "".join([*self.log, *(self.server.errors if self.server else [])])

    def close(self):
        """Its exit status; 0 where it had been killed."""
        self.client.close()
        if self.server.process.poll() is not None:
            return 0
        self.server.resume()
        return self.server.stop()


class World:
    def __init__(self, folder, shared_redis, zookeeper=None, names="abc", place_of=redis_servers.everywhere,
                 session_s=SESSION_S, flags=()):
        self.redis, self.zookeeper, self.session_s = shared_redis, zookeeper, session_s
        self.fence = None  # while each chore is read along: cluster_faults.Fenced
        coordination = zookeeper.flags() if zookeeper else ["--coordination", "redis"]
        common = [*shared_redis.flags(), *coordination, "--session-timeout", f"{session_s}s"]
        common += ["--redis-timeout", "1s", "--shards", "2", *flags]
        self.seats = {}
        try:
            for name in names:
                place = place_of(name)
                self.seats[name] = Seat(name, [*common, "--node-name", name], folder / name, place)
            self.await_settled(DEADLINE_S)
        except BaseException:
            for seat in self.seats.values():
                seat.server.process.kill()
            raise

    @property
    def patience_s(self):
        """Within so much of a fault, or of its end, everything is served again."""
        return self.session_s + GRACE_S

    def serving(self):
        return [seat for seat in self.seats.values() if seat.serving]

    def call(self, method, path, body=None, **options):
        """Through the first node that serves."""
        return self.serving()[0].call(method, path, body, **options)

    def ask_redis(self, group, *words):
        """A command on a key of that group, at the server that has it."""
        return self.server_of(TAGS[group]).ask(*words)

    def server_of(self, key):
        if isinstance(self.redis, RedisCluster):
            return self.redis.master_of(redis.crc.key_slot(key.encode()))
        return self.redis.master() if isinstance(self.redis, redis_servers.RedisSentinels) else self.redis

    def masters(self):
        if isinstance(self.redis, RedisCluster):
            return self.redis.masters()
        return [self.server_of("")]

    def owners_in_redis(self):
        """group -> (node, epoch)"""
        owners = {}
        for group in range(GROUPS):
            node, epoch = self.ask_redis(group, "HMGET", f"{TAGS[group]}owner", "node", "epoch")
            owners[group] = (node, epoch and int(epoch))
        return owners

    def views(self):
        """Of each node that serves: its members, and group -> (owner, epoch)."""
        views = []
        for seat in self.serving():
            try:
                report = seat.cluster()
            except httpx.HTTPError:
                return []
            members = sorted(member["id"] for member in report["members"])
            views.append((members, {one["group"]: (one["owner"], one["epoch"]) for one in report["groups"]}))
        return views

    def settled(self):
        views = self.views()
        if not views or any(view != views[0] for view in views):
            return None
        members, owners = views[0]
        names = sorted(member.rsplit("-", 1)[0] for member in members)
        if names != sorted(seat.name for seat in self.serving()) or len(owners) != GROUPS:
            return None
        return views[0] if all(owner in members for owner, _ in owners.values()) else None

    def await_settled(self, within_s):
        """(members, owners) as all nodes say, and after how many seconds."""
        try:
            return poll(self.settled, within_s, "nodes that agree")
        except AssertionError as error:
            raise AssertionError(f"{error}; last said: {self.views()}") from error

    def await_topic(self, topic, **settings):
        """Makes a topic, and waits until every node that serves knows it so."""
        self.call("PUT", f"/topics/{topic}", settings)

        def known():
            for seat in self.serving():
                shown = seat.client.get(f"/v1/topics/{topic}")
                if shown.status_code != 200 or any(shown.json()[name] != value for name, value in settings.items()):
                    return False
            return True

        poll(known, DEADLINE_S, f"every node's knowledge of topic {topic}")

    def await_replicas(self):
        """Until all replicas have what the masters had at the call."""
        copies = 2 if isinstance(self.redis, redis_servers.RedisSentinels) else 1
        for server in self.masters():
            one = redis.Connection(server.host, server.port, socket_timeout=ASK_S, decode_responses=True)
            try:
                key = f"wait:{server.port}"
                if isinstance(self.redis, RedisCluster):
                    key = next(f"{{{i}}}" for i in range(1 << 20) if self.server_of(f"{{{i}}}") is server)
                for words in (("SET", key, 1), ("WAIT", copies, 4000)):
                    one.send_command(*words)
                    answer = one.read_response()
                assert answer >= copies, f"{answer} replicas of {server.address} follow, not {copies}"
            finally:
                one.disconnect()

    @property
    def is_single(self):
        """One Redis server, which never fails over."""
        return isinstance(self.redis, redis_servers.RedisServer)

    @contextlib.contextmanager
    def registration_closed(self):
        """Within, no node can register, or renew its session; those that have one keep it until that has passed."""
        assert self.is_single
        if self.zookeeper:
            self.zookeeper.pause()
        jobs, topics = f"~{{{PREFIX}.*", f"~{{{PREFIX}}}*"
        self.redis.ask("ACL", "SETUSER", "default", "resetkeys", jobs, topics)  # all keys but those of the members
        try:
            yield
        finally:
            self.redis.ask("ACL", "SETUSER", "default", "allkeys")
            if self.zookeeper:
                self.zookeeper.resume()

    def groups_of(self, seat):
        (_, owners), _ = self.await_settled(DEADLINE_S)
        return [group for group, (owner, _) in owners.items() if owner.rsplit("-", 1)[0] == seat.name]

    def lease_ends(self, topic, groups):
        """When the leases end, in ms, that Redis has of the topic's jobs in these groups: not settled, not given back."""
        scores = []
        for group in groups:
            for key in self.ask_redis(group, "KEYS", f"{TAGS[group]}{topic}/*:prepare"):
                scores += self.ask_redis(group, "ZRANGE", key, 0, -1, "WITHSCORES")[1::2]
        return [int(score) // LEASES_IN_A_MS + LEASES_SINCE_MS for score in scores]

    def close(self):
        statuses = {name: seat.close() for name, seat in self.seats.items()}
        assert not any(statuses.values()), f"{statuses}: " + "".join(seat.errors() for seat in self.seats.values())


class Rig:
    """Redis, ZooKeeper and nodes of one module of tests. Where something is to be `cut` off, each part is in a namespace of
    its own, if that can be done."""

    def __init__(self, folder, cut=True):
        self.folder = folder
        if why := redis_servers.why_not():
            pytest.skip(why)
        self.why_no_cut = netns.why_not() if cut else "all parts are on loopback"
        self.network = None if self.why_no_cut else netns.Network()
        self.parts = contextlib.ExitStack()
        if self.network:
            self.parts.callback(self.network.close)

    def place(self, name):
        return self.network.place(name) if self.network else LOOPBACK

    def keep(self, part):
        self.parts.callback(part.close)
        return part

    def single(self, name="redis", **options):
        return self.keep(redis_servers.RedisServer(self.folder / name, place=self.place(name), **options))

    def sentinels(self, **options):
        return self.keep(redis_servers.RedisSentinels(self.folder / "sentinels", self.place, **options))

    def cluster(self, **options):
        return self.keep(RedisCluster(self.folder / "cluster", self.place, **options))

    def zookeeper(self):
        if why := zookeeper_server.why_not():
            pytest.skip(why)
        return self.keep(zookeeper_server.ZooKeeperServer(self.folder / "zookeeper", self.place("zookeeper")))

    def world(self, shared_redis, name="nodes", **options):
        return self.keep(World(self.folder / name, shared_redis, place_of=self.place, **options))

    def close(self):
        self.parts.close()
