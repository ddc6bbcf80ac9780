"""Alerts without Prometheus: the server watches its rules, lists alerts, and posts them to a receiver as they fire and as
they are resolved. On both stores; times are those of a virtual clock, unless a node has to die."""

import os
import re
import shutil

import pytest
from alert_receiver import AlertReceiver
from conftest import DEADLINE_S, ROOT, ack, reserve, submit
from programs import wait_for
from resp_wire import Wire
from test_auth import bearer, create
from test_cli import NO, Cli
from test_disk_full import FLAGS as SMALL_DISK, fill

MINUTE = 60_000
HOUR = 60 * MINUTE
HOLD = MINUTE  # alerts.hold


@pytest.fixture
def receiver():
    one = AlertReceiver()
    yield one
    one.close()


class World:
    """A server that posts to the receiver."""

    def __init__(self, run, client, receiver, *flags):
        self.client = client
        self.server = run("--clock", "virtual", "--alerts-webhook-url", receiver.url, *flags)
        self.cli = Cli(self.server)

    def set(self, topic, **settings):
        self.client.put(self.server.topic(topic), json=settings).raise_for_status()

    def submit(self, topic="t", **job):
        return submit(self.client, self.server, topic, **job)

    def drain(self, topic="t"):
        while jobs := reserve(self.client, self.server, topic, max=100):
            ack(self.client, self.server, *jobs, topic=topic)

    def nack(self, topic="t", **fields):
        """Fails one job, which has to be due."""
        [job] = reserve(self.client, self.server, topic, max=1, wait_ms=5000)
        answer = self.client.post(self.server.topic(topic) + "/nack", json={"tokens": [job["token"]], **fields})
        answer.raise_for_status()
        return job["id"]

    def advance(self, ms):
        self.client.post(self.server.url + "/v1/clock/advance", json={"ms": ms}).raise_for_status()

    def listing(self):
        answer = self.client.get(self.server.url + "/v1/alerts")
        answer.raise_for_status()
        return answer.json()

    def alerts(self, rule):
        return [(each["state"], each["topic"]) for each in self.listing()["alerts"] if each["rule"] == rule]

    def await_alerts(self, rule, *expected, within_s=DEADLINE_S):
        wait_for(lambda: self.alerts(rule) == list(expected), within_s, lambda: f"{rule} {expected}, but {self.listing()['alerts']}")

    def look(self):
        """Returns when the server has looked at all that was there before. Shards publish their figures once a second."""
        seen = self.listing()["looks"]
        wait_for(lambda: self.listing()["looks"] >= seen + 4, DEADLINE_S, "four more looks")


@pytest.fixture(params=["embedded", "redis"])
def run(request, start):
    """Starts a server on one of the stores."""
    if request.param == "embedded":
        return lambda *flags: start("--shards", "2", *flags)
    node, redis = request.getfixturevalue("node"), request.getfixturevalue("redis_single")
    return lambda *flags: node("one", redis, *flags)


def test_a_backlog_fires_and_is_resolved(run, client, receiver):
    world = World(run, client, receiver)
    world.set("t", alert_due_jobs=3)
    world.set("same", alert_due_jobs=4)
    for topic in ("t", "same", "other"):
        for _ in range(4):
            world.submit(topic)
    world.await_alerts("backlog", ("pending", "t"))
    world.look()
    assert receiver.alerts("TocsinBacklog", "firing") == [], "it has to last for a minute of the server's clock"
    world.advance(HOLD)
    fired = receiver.await_alert("TocsinBacklog", "firing", topic="t", severity="warning")
    assert fired["annotations"]["summary"].startswith("4 due jobs of topic t wait, more than 3")
    [listed] = [each for each in world.listing()["alerts"] if each["rule"] == "backlog"]
    assert listed["fingerprint"] == fired["fingerprint"] and listed["labels"] == fired["labels"]
    assert (listed["state"], listed["value"], listed["threshold"], listed["ends_ms"]) == ("firing", 4, 3, None)
    world.drain()
    world.look()
    assert world.alerts("backlog") == [("firing", "t")], "it has to be gone for a minute"
    world.advance(HOLD)
    over = receiver.await_alert("TocsinBacklog", "resolved", topic="t")
    assert (over["fingerprint"], over["startsAt"]) == (fired["fingerprint"], fired["startsAt"])
    assert over["endsAt"] > over["startsAt"]
    assert world.alerts("backlog") == [("resolved", "t")]
    assert receiver.alerts("TocsinBacklog", "firing", topic="same") == receiver.alerts("TocsinBacklog", "firing", topic="other") == []
    world.advance(HOUR)
    world.await_alerts("backlog")


def test_due_jobs_that_nobody_takes_are_late_and_stall(run, client, receiver):
    world = World(run, client, receiver, "--alerts-late", "30s")
    world.set("t", alert_stalled_ms=10 * MINUTE)
    world.set("paused", alert_stalled_ms=10 * MINUTE, paused=True)
    for topic in ("t", "paused"):
        world.submit(topic)
    world.look()
    world.advance(31_000)
    world.await_alerts("late", ("pending", "t"))
    world.advance(HOLD)
    receiver.await_alert("TocsinLate", "firing", topic="t")
    assert world.alerts("stalled") == []
    world.advance(10 * MINUTE)
    receiver.await_alert("TocsinStalled", "firing", topic="t")
    assert {each["topic"] for each in world.listing()["alerts"]} == {"t"}
    world.drain()
    receiver.await_alert("TocsinStalled", "resolved", topic="t")
    world.look()
    world.advance(HOLD)
    receiver.await_alert("TocsinLate", "resolved", topic="t")


def test_thresholds_of_the_node_and_of_topics(run, client, receiver):
    world = World(run, client, receiver, "--alerts-dead-jobs", "1")
    world.set("own", alert_dead_jobs=2, max_attempts=1)
    world.set("off", alerts_off=True, max_attempts=1)
    world.set("t", max_attempts=1)
    for topic in ("t", "own", "off"):
        for _ in range(2):
            world.submit(topic)
            world.nack(topic)
    receiver.await_alert("TocsinDeadLetters", "firing", topic="t")
    world.look()
    assert world.alerts("dead_letters") == [("firing", "t")]
    world.set("own", alert_dead_jobs=0)
    receiver.await_alert("TocsinDeadLetters", "firing", topic="own")
    world.cli("dead", "purge", "t", "--yes")
    receiver.await_alert("TocsinDeadLetters", "resolved", topic="t")
    client.delete(world.server.topic("own")).raise_for_status()
    receiver.await_alert("TocsinDeadLetters", "resolved", topic="own")


def test_a_job_that_fails_again_and_again(run, client, receiver):
    world = World(run, client, receiver, "--alerts-attempts", "3")
    world.set("patient", alert_attempts=4)
    for topic in ("t", "patient"):
        world.submit(topic)
        for _ in range(2):
            world.nack(topic, delay_ms=0)
    world.look()
    assert world.alerts("job_failures") == []
    failed = world.nack("t", delay_ms=10 * MINUTE)
    world.nack("patient", delay_ms=10 * MINUTE)
    fired = receiver.await_alert("TocsinJobFailures", "firing", topic="t")
    assert fired["annotations"]["summary"] == f"failed attempts of job {failed} of topic t: 3"
    world.look()
    assert world.alerts("job_failures") == [("firing", "t")]
    world.advance(9 * MINUTE)
    world.look()
    assert world.alerts("job_failures") == [("firing", "t")], "it waits for its next attempt"
    world.advance(MINUTE)
    world.drain("t")
    receiver.await_alert("TocsinJobFailures", "resolved", topic="t")


def test_a_job_that_dies_does_not_end_the_alert_of_one_that_goes_on(run, client, receiver):
    world = World(run, client, receiver, "--alerts-attempts", "3")
    lasting = world.submit()["id"]
    for _ in range(2):
        world.nack(delay_ms=0)
    assert world.nack(delay_ms=10 * HOUR) == lasting
    world.submit(max_attempts=5)
    for _ in range(5):
        world.nack(delay_ms=0)
    world.advance(10 * MINUTE)  # the dead one is named no more
    world.look()
    [alert] = [each for each in world.listing()["alerts"] if each["rule"] == "job_failures"]
    assert (alert["state"], alert["value"]) == ("firing", 3) and lasting in alert["summary"]
    client.delete(f"{world.server.topic('t')}/jobs/{lasting}").raise_for_status()
    receiver.await_alert("TocsinJobFailures", "resolved", topic="t")


def test_a_lease_that_runs_out_is_a_failure_too(run, client, receiver):
    world = World(run, client, receiver, "--alerts-attempts", "1")
    world.submit()
    [job] = reserve(client, world.server, max=1, lease_ms=1000)
    world.advance(2000)
    fired = receiver.await_alert("TocsinJobFailures", "firing", topic="t")
    assert fired["annotations"]["summary"] == f"failed attempts of job {job['id']} of topic t: 1"


def test_a_minute_to_come_that_holds_more_than_was_ever_drained(run, client, receiver):
    world = World(run, client, receiver)
    world.set("t", alert_future_jobs=3)
    for _ in range(4):
        for _ in range(5):
            world.submit()
        world.drain()
        world.advance(MINUTE)
        world.look()  # or the next five might be counted in the same minute
    now = client.get(world.server.url + "/v1/stats").json()["now_ms"]
    minute = (now + 3 * HOUR) // MINUTE * MINUTE
    for i in range(5):
        world.submit(due_ms=minute + i)
    world.look()
    assert world.alerts("future_load") == [], "it has drained five jobs in a minute before"
    extra = world.submit(due_ms=minute + MINUTE - 1)
    fired = receiver.await_alert("TocsinFutureLoad", "firing", topic="t")
    assert fired["annotations"]["summary"].startswith("6 jobs of topic t become due in the minute ")
    assert fired["annotations"]["summary"].endswith("the most that it ever drained in a minute is 5")
    client.patch(f"{world.server.topic('t')}/jobs/{extra['id']}", json={"delay_ms": 5 * HOUR}).raise_for_status()
    receiver.await_alert("TocsinFutureLoad", "resolved", topic="t")


def test_alerts_are_listed_over_http_resp_and_the_command_line(start, client, receiver, tmp_path):
    world = World(lambda *flags: start(*flags), client, receiver, "--alerts-dead-jobs", "1", "--node-name", "n1")
    assert world.cli("alerts").stdout == "no alert fires, and none did within the hour\n"
    world.set("t", max_attempts=1)
    for _ in range(2):
        world.submit()
        world.nack()
    receiver.await_alert("TocsinDeadLetters", "firing", topic="t")
    done = world.cli("alerts", status=NO)
    assert done.stdout.split()[:6] == ["STATE", "RULE", "SEVERITY", "ABOUT", "WHEN", "SUMMARY"]
    assert re.search(r"^firing +dead_letters +warning +t +for \S+ +topic t has 2 dead letters", done.stdout, re.MULTILINE)
    line = world.cli.one("alerts", status=NO)
    assert line == world.listing()["alerts"][0]
    assert line["labels"] == {"alertname": "TocsinDeadLetters", "instance": "n1", "severity": "warning", "topic": "t"}
    wire = Wire(world.server)
    answer = wire.call("ALERT.LIST")
    assert answer[0] == b"alerts" and b"TocsinDeadLetters" in answer[1][0][answer[1][0].index(b"labels") + 1]
    wire.close()
    world.cli("dead", "purge", "t", "--yes")
    world.await_alerts("dead_letters", ("resolved", "t"))
    assert re.search(r"^resolved +dead_letters", world.cli("alerts").stdout, re.MULTILINE)


def test_a_token_with_a_prefix_sees_the_alerts_of_its_topics(start, client, receiver, tmp_path):
    tokens = tmp_path / "tokens"
    admin = create(tokens, "--scope", "admin", name="admin")
    tenant = create(tokens, "--scope", "observe", "--topic-prefix", "a-", name="tenant")
    server = start("--auth-token-file", tokens, "--alerts-dead-jobs", "1", "--alerts-nearly-full", "1", "--alerts-hold", "0s")
    for topic in ("a-1", "b-1"):
        client.put(server.topic(topic), json={"max_attempts": 1}, headers=bearer(admin)).raise_for_status()
        for _ in range(2):
            client.post(server.topic(topic) + "/jobs", json={"payload": "x"}, headers=bearer(admin)).raise_for_status()
            [job] = client.post(server.topic(topic) + "/reserve", json={"wait_ms": 5000}, headers=bearer(admin)).json()["jobs"]
            client.post(server.topic(topic) + "/nack", json={"tokens": [job["token"]]}, headers=bearer(admin)).raise_for_status()

    def about(token):
        alerts = client.get(server.url + "/v1/alerts", headers=bearer(token)).json()["alerts"]
        return {each["topic"] or each["rule"] for each in alerts if each["state"] == "firing"}

    wait_for(lambda: about(admin) == {"a-1", "b-1", "disk_nearly_full"}, DEADLINE_S, lambda: f"{about(admin)}")
    assert about(tenant) == {"a-1"}
    assert client.get(server.url + "/v1/alerts").status_code == 401


def test_a_receiver_that_fails_is_tried_again_and_holds_up_nothing(start, client, receiver):
    world = World(lambda *flags: start(*flags), client, receiver, "--alerts-dead-jobs", "1", "--alerts-repeat", "10m")
    receiver.status = 500
    world.set("t", max_attempts=1)
    for _ in range(2):
        world.submit()
        world.nack()
    wait_for(lambda: len(receiver.bodies) >= 2, DEADLINE_S, "a second try")
    wait_for(lambda: any("alert_post_failed state=begin" in line for line in world.server.errors), DEADLINE_S, "a line of the log")
    assert "secret" not in "".join(world.server.errors), "the path of the receiver"
    world.look()
    receiver.status = 200
    wait_for(lambda: 'tocsin_alert_posts_total{outcome="confirmed"} 1' in client.get(world.server.url + "/metrics").text, DEADLINE_S, "a post that was taken")
    posts = len(receiver.bodies)
    world.look()
    assert len(receiver.bodies) == posts, "once"
    assert 'tocsin_alerts_firing{rule="dead_letters"} 1' in client.get(world.server.url + "/metrics").text
    world.advance(10 * MINUTE)
    wait_for(lambda: len(receiver.bodies) > posts, DEADLINE_S, "a repeated post")


def test_posts_are_signed(start, client, receiver, tmp_path):
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "pager").write_text("a secret that is long enough for everybody")
    (secrets / "pager").chmod(0o600)
    flags = ["--secrets-dir", secrets, "--alerts-webhook-secret", "pager", "--alerts-dead-jobs", "1"]
    world = World(lambda *more: start(*more, *flags), client, receiver)
    world.set("t", max_attempts=1)
    for _ in range(2):
        world.submit()
        world.nack()
    receiver.await_alert("TocsinDeadLetters", "firing")
    assert receiver.headers[0]["webhook-signature"].startswith("v1,")


def test_settings_of_alerts_outlive_a_restart_and_have_limits(run, client, receiver):
    world = World(run, client, receiver)
    own = {"alert_due_jobs": 1, "alert_late_ms": 2, "alert_stalled_ms": 3, "alert_attempts": 4, "alert_dead_jobs": 5, "alert_future_jobs": 6, "alerts_off": True}
    world.set("t", **own)
    answer = client.put(world.server.topic("t"), json={"alert_attempts": 1_000_001})
    assert answer.status_code == 400 and answer.json()["error"]["field"] == "alert_attempts"
    assert world.server.stop() == 0
    again = World(run, client, receiver)
    shown = client.get(again.server.topic("t")).json()
    assert own.items() <= shown.items()


def test_the_documents_have_the_rules(start, client):
    server = start()
    text = (ROOT / "docs/operations.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `(Tocsin\w+)` \| (\w+) \| (\S+) \| (\S+) \| (yes|no) \| (.+) \|$", text, re.MULTILINE)
    rules = client.get(server.url + "/v1/alerts").json()["rules"]

    def code(name):
        return f"`{name}`" if name else "-"

    assert [row[:5] for row in rows] == [(r["rule"], r["alertname"], r["severity"], code(r["option"]), code(r["setting"])) for r in rules]
    prometheus = expressions_of_prometheus()
    for rule, alertname, *_, shown in rows:
        names = set(re.findall(r"`(\w+)`", shown))
        assert names <= prometheus.keys(), rule
        assert (alertname in names) == (alertname in prometheus), rule


def expressions_of_prometheus():
    rules = (ROOT / "deploy/prometheus/rules.yml").read_text().split("- alert: ")[1:]
    return {rule.split(maxsplit=1)[0]: rule for rule in rules}


def test_prometheus_has_the_same_thresholds_and_severities(start, client):
    server = start()
    rules = {each["rule"]: each for each in client.get(server.url + "/v1/alerts").json()["rules"]}
    prometheus = expressions_of_prometheus()

    def says(rule, condition):
        text = prometheus[rules[rule]["alertname"]]
        assert condition.format(rules[rule]["threshold"]) in " ".join(text.split()), rule
        assert f"severity: {rules[rule]['severity']}" in text, rule

    says("backlog", "> {:.0f} for: 1m")
    rules["late"]["threshold"] /= 1000
    says("late", "tocsin_jobs_oldest_due_seconds) > {:.0f} ")
    rules["stalled"]["threshold"] /= MINUTE
    says("stalled", "rate(tocsin_jobs_delivered_total[{:.0f}m])) == 0")
    says("push_failures", ">= {:.0f} ")
    says("dead_letters", "> {:.0f} ")
    for rule in ("topic_nearly_full", "memory_nearly_full", "disk_nearly_full"):
        rules[rule]["threshold"] /= 100
    says("topic_nearly_full", ">= {} * max by (topic) (tocsin_topic_capacity_jobs)")
    says("memory_nearly_full", ">= {} * tocsin_memory_limit_bytes")
    rules["disk_nearly_full"]["threshold"] = round(1 - rules["disk_nearly_full"]["threshold"], 3)
    says("disk_nearly_full", "<= {} * tocsin_disk_size_bytes")


def test_a_node_that_is_killed_is_missed_until_it_is_back(node, redis_single, client, receiver):
    flags = ["--session-timeout", "1s", "--alerts-node-silent", "2s", "--alerts-hold", "1s", "--alerts-webhook-url", receiver.url]
    nodes = {name: node(name, redis_single, *flags) for name in ("a", "b", "c")}

    def members(server):
        return {each["id"].rsplit("-", 1)[0] for each in client.get(server.url + "/v1/cluster").json()["members"]}

    for server in nodes.values():
        wait_for(lambda s=server: members(s) == {"a", "b", "c"}, DEADLINE_S, "three members")
    nodes["b"].kill()
    fired = receiver.await_alert("TocsinNodeSilent", "firing", severity="critical")
    assert fired["labels"]["node"].startswith("b-") and "instance" not in fired["labels"]

    def seen_by(server):
        return [each["state"] for each in client.get(server.url + "/v1/alerts").json()["alerts"] if each["rule"] == "node_silent"]

    for name in ("a", "c"):
        wait_for(lambda n=name: seen_by(nodes[n]) == ["firing"], DEADLINE_S, f"{name} lists it")
    assert len(receiver.alerts("TocsinNodeSilent", "firing")) == 1, "one of the two posts it"
    node("b", redis_single, *flags, listen=f"127.0.0.1:{nodes['b'].port}")
    over = receiver.await_alert("TocsinNodeSilent", "resolved")
    assert over["fingerprint"] == fired["fingerprint"]


def test_a_topic_of_many_nodes_is_posted_once(node, redis_single, client, receiver):
    flags = ["--alerts-hold", "1s", "--alerts-webhook-url", receiver.url]
    nodes = [node(name, redis_single, *flags) for name in ("a", "b")]
    topics = [f"t{i}" for i in range(12)]
    for topic in topics:
        client.put(nodes[0].topic(topic), json={"alert_due_jobs": 1}).raise_for_status()
        for _ in range(2):
            submit(client, nodes[0], topic)
    for topic in topics:
        receiver.await_alert("TocsinBacklog", "firing", topic=topic)

    def listed(server):
        alerts = client.get(server.url + "/v1/alerts").json()["alerts"]
        return sorted(each["topic"] for each in alerts if each["rule"] == "backlog" and each["state"] == "firing")

    for server in nodes:
        wait_for(lambda s=server: listed(s) == sorted(topics), DEADLINE_S, lambda s=server: f"{topics}, but {listed(s)}")
    posted = [alert["labels"]["topic"] for alert in receiver.alerts("TocsinBacklog", "firing")]
    assert sorted(posted) == sorted(topics), "each by the owner of its first group"


def test_a_redis_that_is_away_is_told(node, redis_single, client, receiver):
    server = node("a", redis_single, "--alerts-hold", "1s", "--alerts-webhook-url", receiver.url)
    wait_for(lambda: client.get(server.url + "/v1/cluster").json()["members"], DEADLINE_S, "a member")
    redis_single.pause()
    fired = receiver.await_alert("TocsinStoreAway", "firing", instance="a", severity="critical")
    redis_single.resume()
    assert receiver.await_alert("TocsinStoreAway", "resolved")["fingerprint"] == fired["fingerprint"]


def test_pushes_that_fail_in_a_row(run, client, receiver, tmp_path):
    target = AlertReceiver()
    target.take, target.status = lambda *_: None, 500
    world = World(run, client, receiver, "--alerts-push-failures", "3", "--webhook-allow", "127.0.0.0/8")

    def await_it(status):
        def told():
            world.advance(1000)  # to the next attempt
            return receiver.alerts("TocsinPushFailsInARow", status, topic="t")

        return wait_for(told, DEADLINE_S, lambda: f"{status}, but {''.join(world.server.errors)}", between_s=0.2)[0]

    try:
        world.set("t", delivery={"sink": "webhook", "url": target.url}, backoff_base_ms=1000, backoff_max_ms=1000)
        world.submit()
        fired = await_it("firing")
        assert fired["annotations"]["summary"].startswith("pushes of topic t fail: ")
        target.status = 200
        assert await_it("resolved")["fingerprint"] == fired["fingerprint"]
    finally:
        target.close()


def test_a_topic_that_is_nearly_full(run, client, receiver):
    world = World(run, client, receiver)
    for topic, jobs in (("t", 9), ("half", 5)):
        world.set(topic, capacity_jobs=10)
        for _ in range(jobs):
            world.submit(topic, delay_ms=HOUR)
    world.await_alerts("topic_nearly_full", ("pending", "t"))
    world.advance(HOLD)
    fired = receiver.await_alert("TocsinTopicNearlyFull", "firing", topic="t")
    assert fired["annotations"]["summary"] == "topic t is at 90.0 % of its capacity"
    world.cli("topic", "purge", "t", "--yes")
    world.look()
    world.advance(HOLD)
    receiver.await_alert("TocsinTopicNearlyFull", "resolved", topic="t")


def test_memory_that_is_nearly_full(start, client, receiver):
    world = World(lambda *flags: start(*flags), client, receiver, "--memory-limit", "64MiB", "--shards", "1")
    payload = "x" * (1 << 20)
    status = 201
    while status == 201:
        status = client.post(world.server.topic("t") + "/jobs", json={"payload": payload, "delay_ms": HOUR}).status_code
    assert status == 429
    world.await_alerts("memory_nearly_full", ("pending", None))
    world.advance(HOLD)
    receiver.await_alert("TocsinMemory", "firing", severity="warning")
    world.cli("topic", "purge", "t", "--yes")
    world.look()
    world.advance(HOLD)
    receiver.await_alert("TocsinMemory", "resolved")


def test_a_disk_that_is_full(small_disk, start, client, receiver):
    server = start("--alerts-webhook-url", receiver.url, *SMALL_DISK, folder=small_disk / "data")
    fill(client, server)
    fired = receiver.await_alert("TocsinDiskFull", "firing", severity="critical")
    Cli(server)("topic", "purge", "t", "--yes")

    def accepted():
        return client.post(server.topic("t") + "/jobs", json={"payload": "again"}).status_code == 201

    wait_for(accepted, DEADLINE_S, "room again")
    assert receiver.await_alert("TocsinDiskFull", "resolved")["fingerprint"] == fired["fingerprint"]


def test_a_disk_that_is_nearly_full(small_disk, start, client, receiver):
    server = start("--alerts-webhook-url", receiver.url, "--alerts-hold", "0s", "--alerts-nearly-full", "70", *SMALL_DISK, folder=small_disk / "data")
    assert receiver.alerts("TocsinDiskNearlyFull", "firing") == []
    filler = small_disk / "of another program"
    size = shutil.disk_usage(small_disk)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size.free - size.total // 5)
    fired = receiver.await_alert("TocsinDiskNearlyFull", "firing", severity="warning")
    assert fired["annotations"]["summary"].endswith(" % of the disk of the data folder are used")
    assert client.post(server.topic("t") + "/jobs", json={"payload": "x"}).status_code == 201, "it is not full"
    filler.unlink()
    assert receiver.await_alert("TocsinDiskNearlyFull", "resolved")["fingerprint"] == fired["fingerprint"]


def test_thousands_of_alerts_are_all_posted_and_all_resolved(start, client, receiver):
    world = World(lambda *flags: start(*flags), client, receiver)
    topics = [f"t{i:04}" for i in range(600)]
    for topic in topics:
        world.set(topic, alert_due_jobs=1)
        client.post(world.server.topic(topic) + "/jobs", json={"jobs": [{"payload": "x"}] * 2}).raise_for_status()
    world.look()
    world.advance(HOLD)

    def told(status):
        return sorted(each["labels"]["topic"] for each in receiver.alerts("TocsinBacklog", status))

    wait_for(lambda: told("firing") == topics, DEADLINE_S, lambda: f"{len(told('firing'))} fire")
    for topic in topics:
        client.delete(world.server.topic(topic)).raise_for_status()
    world.look()
    world.advance(HOLD)
    wait_for(lambda: told("resolved") == topics, DEADLINE_S, lambda: f"{len(told('resolved'))} are resolved")
    assert max(len(body["alerts"]) for body in receiver.bodies) == 500
