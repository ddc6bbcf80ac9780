"""The server program on a real Redis: how it starts, what it says of itself, and how it lives through trouble."""

import re
import signal
import subprocess
import threading
import time

import pytest
from certificates import Authority
from cluster_world import GROUPS
from conftest import BIN, DEADLINE_S, ENVIRONMENT, ROOT, Server, ack, doors_of, metric, reserve, run, submit
from programs import free_port, wait_for
from resp_wire import Wire

import redis_servers
from test_docs import metric_rows

DAY_MS = 86_400_000


class Start:
    """A start of tocsind that may never get ready."""

    def __init__(self, folder, *flags):
        doors = ["--http-listen", "127.0.0.1:0", "--resp-listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", BIN / "tocsind", "--data-dir", folder, *doors, *map(str, flags)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.said, self.log = [], []
        self.readers = [threading.Thread(target=lambda: self.said.extend(self.process.stdout), daemon=True),
                        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)]
        for reader in self.readers:
            reader.start()

    def await_log(self, pattern):
        return wait_for(lambda: re.search(pattern, "".join(self.log)), DEADLINE_S, pattern)

    def ready(self):
        return doors_of(self.log) is not None

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.end()

    def end(self):
        status = self.process.wait(DEADLINE_S)
        for reader in self.readers:
            reader.join(DEADLINE_S)
        return status


@pytest.fixture
def begin(tmp_path):
    starts = []

    def make(*flags):
        starts.append(Start(tmp_path / "data", *flags))
        return starts[-1]

    yield make
    for start in starts:
        if start.process.poll() is None:
            start.process.kill()
            start.process.wait(DEADLINE_S)


def test_it_waits_for_a_redis_that_comes_later(redis_single, begin):
    redis_single.stop()
    one = begin(*redis_single.flags())
    one.await_log(rf"waiting for Redis at {redis_single.address}: .*refused")
    assert not one.ready()
    redis_single.start()
    wait_for(one.ready, DEADLINE_S)
    assert f" store=redis redis={redis_single.address} prefix=tocsin shards=" in "".join(one.log)
    assert one.stop() == 0


def test_it_can_be_stopped_while_it_waits(redis_single, begin):
    redis_single.stop()
    one = begin(*redis_single.flags())
    one.await_log("waiting for Redis")
    assert one.stop() == 0
    assert "told to stop while waiting for Redis" in "".join(one.log)


def test_it_says_why_redis_does_not_let_it_in(tmp_path, begin):
    if why := redis_servers.why_not():
        pytest.skip(why)
    locked = redis_servers.RedisServer(tmp_path / "locked", password="right")
    try:
        flags = locked.flags()
        (locked.folder / "password").write_text("wrong\n")
        one = begin(*flags)
        one.await_log("waiting for Redis.*WRONGPASS")
        assert one.stop() == 0
        assert "wrong\n" not in "".join(one.log)
    finally:
        locked.close()


@pytest.mark.parametrize("text, says", [("", "holds no line"), ("a\nb\n", "more than one line")])
def test_a_password_file_holds_one_line(redis_single, begin, tmp_path, text, says):
    file = tmp_path / "secret"
    file.touch(0o600)
    file.write_text(text)
    one = begin(*redis_single.flags(), "--redis-password-file", file)
    assert one.end() == 2
    assert "redis.password_file: " in "".join(one.log) and says in "".join(one.log)


def test_a_password_file_that_others_can_read_is_refused(redis_single, begin, tmp_path):
    file = tmp_path / "secret"
    file.write_text("x\n")
    file.chmod(0o644)
    one = begin(*redis_single.flags(), "--redis-password-file", file)
    assert one.end() == 2
    assert "redis.password_file: " in "".join(one.log)


def test_a_redis_that_would_lose_jobs_is_refused_or_warned_of(tmp_path, begin):
    if why := redis_servers.why_not():
        pytest.skip(why)
    careless = redis_servers.RedisServer(tmp_path / "careless", ["appendonly no", "maxmemory-policy allkeys-lru"])
    try:
        one = begin(*careless.flags())
        assert one.end() == 2
        log = "".join(one.log)
        assert "appendonly" in log and "noeviction" in log and "redis.checks = warn" in log
        two = begin(*careless.flags(), "--redis-checks", "warn")
        wait_for(two.ready, DEADLINE_S)
        wait_for(lambda: "redis.checks: " in "".join(two.log), DEADLINE_S, "a warning")
        assert two.stop() == 0
    finally:
        careless.close()


def test_a_replica_and_a_node_of_a_cluster_are_no_single_server(tmp_path, begin):
    if why := redis_servers.why_not():
        pytest.skip(why)
    master = redis_servers.RedisServer(tmp_path / "master")
    replica = redis_servers.RedisServer(tmp_path / "replica", [f"replicaof {master.host} {master.port}"])
    clustered = redis_servers.RedisServer(tmp_path / "clustered", kind="node")
    try:
        one = begin(*replica.flags())
        assert one.end() == 2
        assert "redis.endpoints" in "".join(one.log) and "is a replica" in "".join(one.log)
        clustered.ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        two = begin(*clustered.flags())
        assert two.end() == 2
        assert "redis.mode = cluster" in "".join(two.log)
    finally:
        for server in (replica, master, clustered):
            server.close()


class TlsServer(redis_servers.RedisServer):
    """Tests ask it in the clear. A node is given the port that speaks TLS, and has to show a certificate there."""

    def __init__(self, folder, authority):
        self.authority, self.tls_port = authority, None
        self.certificate, self.key = authority.issue("redis")
        super().__init__(folder)

    def _configure(self):
        self.tls_port = free_port()
        self.lines = [f"tls-port {self.tls_port}", f"tls-cert-file {self.certificate}", f"tls-key-file {self.key}",
                      f"tls-ca-cert-file {self.authority.ca}", "tls-auth-clients yes"]
        super()._configure()

    def flags(self):
        return ["--store", "redis", "--redis-endpoints", f"{self.host}:{self.tls_port}", "--redis-tls", "true"]


@pytest.fixture
def redis_tls(tmp_path):
    if why := redis_servers.why_not():
        pytest.skip(why)
    one = TlsServer(tmp_path / "redis", Authority(tmp_path / "certificates"))
    yield one
    one.close()


def test_it_speaks_tls_and_shows_its_certificate(node, redis_tls, client):
    """With all its connections: for commands, for messages, and those of the members."""
    certificate, key = redis_tls.authority.issue("node")
    known = ("--redis-tls-ca-file", redis_tls.authority.ca)
    server = node("a", redis_tls, *known, "--redis-tls-cert-file", certificate, "--redis-tls-key-file", key)
    due_ms = submit(client, server, payload="x", delay_ms=100)["due_ms"]
    jobs = reserve(client, server, wait_ms=DEADLINE_S * 1000)
    assert [(job["payload"], job["due_ms"]) for job in jobs] == [("x", due_ms)]
    assert ack(client, server, *jobs) == ["ok"]
    cluster = client.get(server.url + "/v1/cluster").json()
    assert cluster["coordinator"]["connected"] and len(cluster["members"]) == 1
    lines = redis_tls.ask("CLIENT", "LIST").splitlines()
    ours = [line for line in lines if f"laddr={redis_tls.host}:{redis_tls.tls_port} " in line]
    assert len(ours) >= 4 and len(lines) == len(ours) + 1, "the one in the clear is the question itself"


def test_neither_side_of_tls_does_without_a_certificate_that_it_knows(redis_tls, begin):
    nameless = begin(*redis_tls.flags(), "--redis-tls-ca-file", redis_tls.authority.ca)
    nameless.await_log("waiting for Redis at ")
    assert not nameless.ready()
    assert nameless.stop() == 0
    wary = begin(*redis_tls.flags())
    wary.await_log(r"waiting for Redis.*certificate verify failed")
    assert wary.stop() == 0


def test_the_command_calls_a_redis_cluster_well_whose_replicas_are_not_used(node, redis_cluster):
    server = node("a", redis_cluster)
    wait_for(lambda: run("tocsin", "cluster", "--server", server.url).returncode == 0, DEADLINE_S, "all is well")
    shown = run("tocsin", "cluster", "--server", server.url).stdout
    assert shown.count("replica") == 3 and shown.count("not in use") == 3, shown


def test_it_is_not_ready_while_redis_is_away_and_who_waits_is_served_afterwards(node, redis_single, client):
    server = node("a", redis_single, "--redis-timeout", "1s")
    submit(client, server, payload="late", delay_ms=1500)
    jobs = []
    waiter = threading.Thread(target=lambda: jobs.extend(reserve(client, server, wait_ms=DEADLINE_S * 1000)))
    waiter.start()
    redis_single.pause()
    answer = wait_for(lambda: (found := client.get(server.url + "/readyz")).status_code != 200 and found, DEADLINE_S)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "unavailable" and redis_single.address in answer.json()["error"]["message"]
    refused = client.post(server.topic("t") + "/jobs", json={"payload": "x"})
    assert refused.status_code == 503 and refused.json()["error"]["code"] == "unavailable"
    assert client.get(server.url + "/healthz").status_code == 200
    cluster = client.get(server.url + "/v1/cluster").json()
    assert not cluster["servers"][0]["connected"]
    assert waiter.is_alive()
    redis_single.resume()
    wait_for(lambda: client.get(server.url + "/readyz").status_code == 200, DEADLINE_S)
    waiter.join(DEADLINE_S)
    assert [job["payload"] for job in jobs] == ["late"]
    assert ack(client, server, *jobs) == ["ok"]


def test_it_is_ready_while_one_master_of_several_is_away(node, redis_cluster, client):
    """All nodes would say no at once, and a load balancer would have nobody left for the jobs of the other masters."""
    server = node("a", redis_cluster, "--redis-timeout", "1s")
    assert client.put(server.topic("t"), json={"slots": 16}).status_code == 201
    for one in redis_cluster.nodes:
        one.ask("CONFIG", "SET", "cluster-require-full-coverage", "no")
    away = [redis_cluster.nodes[0], redis_cluster.nodes[3]]  # a master and its replica
    for one in away:
        one.pause()
    wait_for(lambda: "cannot look for due jobs" in "".join(server.errors), DEADLINE_S, "a node that knows")
    answers = {}

    def both_seen():
        answer = client.post(server.topic("t") + "/jobs", json={"key": f"key-{len(answers)}", "payload": "x"})
        answers[len(answers)] = answer.status_code
        return {201, 503} <= set(answers.values())

    wait_for(both_seen, DEADLINE_S, "jobs that are taken and jobs that are not")
    assert client.get(server.url + "/readyz").status_code == 200
    for one in away:
        one.resume()
    wait_for(lambda: "looks for due jobs again" in "".join(server.errors), DEADLINE_S, "the end of the trouble")
    assert set(answers.values()) == {201, 503}


def test_a_redis_without_the_replicas_that_it_needs_takes_nothing_until_they_are_there(node, redis_single, client):
    """min-replicas-to-write, with which a master that is cut off stops taking what its successor would never see."""
    server = node("a", redis_single)
    submit(client, server, id="before", payload="x", delay_ms=300)
    redis_single.ask("CONFIG", "SET", "min-replicas-to-write", "1")
    refused = client.post(server.topic("t") + "/jobs", json={"payload": "y"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable"), refused.text
    assert "NOREPLICAS" in refused.json()["error"]["message"]
    jobs = []
    waiter = threading.Thread(target=lambda: jobs.extend(reserve(client, server, wait_ms=DEADLINE_S * 1000)))
    waiter.start()
    wait_for(lambda: "NOREPLICAS" in "".join(server.errors), DEADLINE_S, "a node that says why nothing is delivered")
    assert waiter.is_alive() and server.process.poll() is None
    redis_single.ask("CONFIG", "SET", "min-replicas-to-write", "0")
    waiter.join(DEADLINE_S)
    assert [job["id"] for job in jobs] == ["before"]
    assert ack(client, server, *jobs) == ["ok"]
    submit(client, server, payload="z")


def test_a_redis_at_maxmemory_refuses_submits_and_delivers(node, redis_single, client):
    server = node("a", redis_single)
    for number in range(4):
        submit(client, server, id=str(number), key="k", payload="x", delay_ms=DAY_MS if number == 3 else 0)
    redis_single.ask("CONFIG", "SET", "maxmemory", "1")
    refused = client.post(server.topic("t") + "/jobs", json={"payload": "y"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (507, "storage_full"), refused.text

    first, second, third = reserve(client, server, max=3, lease_ms=1000)
    assert ack(client, server, first) == ["ok"]
    nacked = client.post(server.topic("t") + "/nack", json={"tokens": [second["token"]], "delay_ms": 0}).json()
    assert nacked["results"][0]["outcome"] == "ok"
    cancelled = client.delete(server.topic("t") + "/jobs/3", params={"key": "k"}).json()
    assert cancelled["outcome"] == "cancelled"
    again = []
    while len(again) < 2:  # the other one when its lease has ended
        again += reserve(client, server, max=2, wait_ms=DEADLINE_S * 1000)
    assert sorted((job["id"], job["attempt"]) for job in again) == [(second["id"], 2), (third["id"], 2)]
    assert ack(client, server, *again) == ["ok", "ok"]
    assert client.get(server.url + "/readyz").status_code == 200

    redis_single.ask("CONFIG", "SET", "maxmemory", "0")
    submit(client, server, payload="z")
    assert [job["payload"] for job in reserve(client, server, wait_ms=DEADLINE_S * 1000)] == ["z"]


def test_it_serves_while_zookeeper_is_away_and_joins_in_redis(node, redis_single, zookeeper, client):
    zookeeper.kill()
    server = node("a", redis_single, zookeeper=zookeeper)
    submit(client, server, payload="x")
    [job] = reserve(client, server, wait_ms=DEADLINE_S * 1000)
    assert ack(client, server, job) == ["ok"]
    submit(client, server, payload="leased")
    [leased] = reserve(client, server, wait_ms=DEADLINE_S * 1000, lease_ms=1000)
    [again] = reserve(client, server, wait_ms=DEADLINE_S * 1000)
    assert (again["id"], again["attempt"]) == (leased["id"], 2)
    assert "no node is registered with zookeeper: the members are those in redis" in "".join(server.errors)
    assert metric(client, server, "tocsin_owned_groups") == metric(client, server, "tocsin_takeovers_total") == GROUPS
    zookeeper.start()
    wait_for(lambda: "the members are those in zookeeper again" in "".join(server.errors), DEADLINE_S)
    assert metric(client, server, "tocsin_owned_groups") == GROUPS


def test_a_virtual_clock_moves_jobs_in_redis_too(node, redis_single, client):
    server = node("a", redis_single, "--clock", "virtual")
    submit(client, server, payload="a month later", delay_ms=30 * DAY_MS)
    assert reserve(client, server) == []
    assert client.post(server.url + "/v1/clock/advance", json={"ms": 30 * DAY_MS}).status_code == 200
    assert [job["payload"] for job in reserve(client, server)] == ["a month later"]


def test_every_metric_of_a_node_on_redis_is_explained_and_no_other(node, redis_single, client):
    server = node("a", redis_single)
    submit(client, server, payload="x")
    ack(client, server, *reserve(client, server))
    limited = {"capacity_jobs": 9, "capacity_bytes": 1000, "paused": True}
    client.put(server.topic("limited"), json=limited).raise_for_status()
    submit(client, server, "limited", payload="due, and it stays so")
    with Wire(server) as wire:
        wire.call("TOPIC.GET", "limited")
        wire.call("TOPIC.GET", "absent")  # errors that never happened have no series
        wire.call("JOB.OPERATE", "limited", "attempts", "ALL", "ATTEMPTS", 3)
    rows = metric_rows((ROOT / "docs/metrics.md").read_text())
    # No journal here and no disk, no alert, no outbox, no TLS, and no topic that pushes. What push holds is counted all the same.
    absent = ("tocsin_journal_", "tocsin_memory_", "tocsin_disk_", "tocsin_alert", "tocsin_outbox_", "tocsin_tls_", "tocsin_push_")
    others = [row for row in rows if row[0].startswith(absent)]
    others = [row for row in others if row[0] != "tocsin_push_memory_bytes"]

    def unlike():
        """Those that are explained or served and not both. The shards publish their figures every second."""
        served = re.findall(r"^# TYPE (\w+) (\w+)$", client.get(server.url + "/metrics").text, re.MULTILINE)
        return sorted(set(rows) - set(others) ^ set(served))

    end = time.monotonic() + DEADLINE_S
    while unlike() and time.monotonic() < end:
        pass
    assert unlike() == []


def test_the_age_of_the_oldest_due_job_is_known_while_there_is_one(node, redis_single, client):
    server = node("a", redis_single)

    def oldest_s():
        found = re.search(r'^tocsin_jobs_oldest_due_seconds\{topic="t"\} (\S+)$', client.get(server.url + "/metrics").text, re.M)
        return float(found[1]) if found else None

    submit(client, server, payload="in an hour", delay_ms=3_600_000)
    submit(client, server, payload="first")
    submitted = time.monotonic()
    wait_for(lambda: (oldest_s() or 0) > 1, DEADLINE_S, "an age")
    assert oldest_s() <= time.monotonic() - submitted + 0.1
    ack(client, server, *reserve(client, server))
    wait_for(lambda: oldest_s() is None, DEADLINE_S, "no job that is due")


def test_both_nodes_go_on_when_one_drops_a_topic(node, redis_single, client):
    one, other = node("a", redis_single), node("b", redis_single)
    client.put(one.topic("t"), json={"lease_ms": 5000})
    wait_for(lambda: client.get(other.topic("t")).status_code == 200, DEADLINE_S)
    jobs = []
    waiter = threading.Thread(target=lambda: jobs.extend(reserve(client, other, wait_ms=DEADLINE_S * 1000)))
    waiter.start()
    assert client.delete(one.topic("t")).status_code == 200
    wait_for(lambda: client.get(other.topic("t")).status_code == 404, DEADLINE_S)
    assert waiter.is_alive()
    submit(client, one, payload="again")
    waiter.join(DEADLINE_S)
    assert [job["payload"] for job in jobs] == ["again"]


def test_two_servers_may_have_the_same_name(node, redis_single, client):
    one = node("same", redis_single)
    other = Server(redis_single.folder / "other", *redis_single.flags(), "--node-name", "same")
    try:
        members = wait_for(lambda: len(found := client.get(one.url + "/v1/cluster").json()["members"]) == 2 and found,
                           DEADLINE_S)
        assert len({member["id"] for member in members}) == 2
    finally:
        assert other.stop() == 0
