"""The servers that other tests stand on: Redis in its three shapes, ZooKeeper, and networks that can be cut."""

import pytest
import redis
from programs import NotReady
from redis_cluster import RedisCluster
from redis_servers import RedisSentinels, RedisServer
from zookeeper_server import ZooKeeperServer

SLOT_OF_A = 15_495


def test_a_server_keeps_its_port_and_data(redis_single):
    port = redis_single.port
    redis_single.ask("SET", "k", "v")
    for end in (redis_single.stop, redis_single.kill):
        redis_single.ask("BGREWRITEAOF")
        end()
        with pytest.raises(redis.ConnectionError):
            redis_single.ask("PING")
        redis_single.start()
        assert redis_single.port == port
        assert redis_single.ask("GET", "k") == "v"


def test_a_paused_server_does_not_answer(redis_single):
    redis_single.pause()
    assert not redis_single.awake
    with pytest.raises(redis.TimeoutError):
        redis_single.ask("PING", timeout_s=0.1)
    redis_single.resume()
    assert redis_single.ask("PING") == "PONG"


def test_a_start_that_fails_shows_why(tmp_path):
    with pytest.raises(NotReady, match="Bad directive"):
        RedisServer(tmp_path / "redis", ["no-such-directive yes"])


def test_sentinels_follow_a_master_that_is_killed(redis_sentinels):
    old = redis_sentinels.master()
    old.ask("SET", "k", "v")
    redis_sentinels.wait_until_in_step()
    old.kill()
    new = redis_sentinels.wait_for_new_master(old)
    assert new.ask("GET", "k") == "v"
    old.start()
    redis_sentinels.wait_until_in_step()
    assert not old.is_master()


def test_a_cluster_promotes_a_replica_and_moves_a_slot(redis_cluster):
    old = redis_cluster.master_of(SLOT_OF_A)
    for i in range(3):
        old.ask("SET", f"{{a}}{i}", "v")
    redis_cluster.wait_until_in_step()
    old.kill()
    new = redis_cluster.wait_for_new_master(SLOT_OF_A, old)
    redis_cluster.wait_until_ok()
    old.start()
    redis_cluster.wait_until_ok()

    to = redis_cluster.nodes[0]
    source = redis_cluster.begin_migration(SLOT_OF_A, to)
    assert source is new
    assert redis_cluster.move_keys(SLOT_OF_A, source, to, 1) == 1
    with pytest.raises(redis.ResponseError, match="TRYAGAIN|MOVED|ASK"):
        source.ask("MGET", "{a}0", "{a}1", "{a}2")
    assert redis_cluster.move_keys(SLOT_OF_A, source, to, 10) == 2
    redis_cluster.end_migration(SLOT_OF_A, source, to)
    redis_cluster.wait_until_ok()
    assert redis_cluster.master_of(SLOT_OF_A) is to
    assert to.ask("MGET", "{a}0", "{a}1", "{a}2") == ["v", "v", "v"]


def test_zookeeper_keeps_its_port(zookeeper):
    assert "Mode: standalone" in zookeeper.ask("srvr")
    port = zookeeper.port
    zookeeper.kill()
    zookeeper.start()
    assert zookeeper.port == port
    zookeeper.pause()
    zookeeper.resume()
    assert zookeeper.ask("ruok") == "imok"


def test_a_pulled_cable_cuts_one_server_off(network, tmp_path):
    near, far = (RedisServer(tmp_path / name, place=network.place(name)) for name in ("near", "far"))
    try:
        network.place("far").cut()
        with pytest.raises((redis.TimeoutError, redis.ConnectionError)):
            far.ask("PING", timeout_s=0.5)
        assert near.ask("PING") == "PONG"
        network.place("far").heal()
        assert far.ask("PING", timeout_s=10) == "PONG"
    finally:
        near.close()
        far.close()


def test_sentinels_follow_when_the_master_is_cut_off(network, tmp_path):
    sentinels = RedisSentinels(tmp_path / "sentinels", network.place)
    try:
        old = sentinels.master()
        network.place("server0").cut()
        new = sentinels.wait_for_new_master(old)
        assert new.ask("SET", "k", "v") == "OK"
        network.place("server0").heal()
        sentinels.wait_until_in_step()
        assert not old.is_master()
    finally:
        sentinels.close()


def test_a_cluster_promotes_when_a_master_is_cut_off(network, tmp_path):
    cluster = RedisCluster(tmp_path / "cluster", network.place)
    try:
        old = cluster.master_of(SLOT_OF_A)
        network.place("node2").cut()
        assert cluster.wait_for_new_master(SLOT_OF_A, old) is cluster.nodes[5]
        network.place("node2").heal()
        cluster.wait_until_ok()
        assert not old.is_master()
    finally:
        cluster.close()


def test_zookeeper_in_a_namespace(network, tmp_path):
    server = ZooKeeperServer(tmp_path / "zookeeper", network.place("zookeeper"))
    try:
        network.place("zookeeper").cut()
        with pytest.raises(OSError):
            server.ask("ruok", timeout_s=0.5)
        network.place("zookeeper").heal()
        assert server.ask("ruok", timeout_s=10) == "imok"
    finally:
        server.close()
