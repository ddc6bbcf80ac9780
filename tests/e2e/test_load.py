"""How many jobs become due when: exact counts over HTTP, RESP and the command line, on both stores."""

import pytest
import redis_servers
from conftest import ack, reserve, submit
from resp_wire import Wire
from test_auth import bearer, create
from test_cli import NO, USAGE, Cli

MINUTE = 60_000
HOUR = 60 * MINUTE
START = 1_800_000_000_000  # of a virtual clock; a whole minute


class World:
    """A server with a virtual clock on one of the stores, which can be started again."""

    def __init__(self, start, client, *flags):
        self.start, self.client, self.flags = start, client, [*flags, "--clock", "virtual"]
        self.server = start(*self.flags)

    def restart(self):
        assert self.server.stop() == 0
        self.server = self.start(*self.flags)

    def get(self, path, **query):
        answer = self.client.get(self.server.url + path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def steps(self, topic=None, steps=4, step=HOUR, start=START):
        load = self.get(f"/v1/topics/{topic}/load" if topic else "/v1/load", **{"from": start, "to": start + steps * step, "step": step})
        assert (load["from_ms"], load["to_ms"], load["step_ms"]) == (start, start + steps * step, step)
        assert load["total"] == sum(load["jobs"])
        return load["due"], load["jobs"]

    def submit(self, topic="t", **job):
        return submit(self.client, self.server, topic, payload="x", **job)

    def advance(self, ms):
        assert self.client.post(self.server.url + "/v1/clock/advance", json={"ms": ms}).status_code == 200

    def nack(self, job, **fields):
        answer = self.client.post(self.server.topic("t") + "/nack", json={"tokens": [job["token"]], **fields})
        assert answer.status_code == 200, answer.text


@pytest.fixture(params=["embedded", "redis"])
def world(request, start, client, tmp_path):
    if request.param == "embedded":
        yield World(start, client, "--shards", "2")
        return
    if why := redis_servers.why_not():
        pytest.skip(why)
    behind = redis_servers.RedisServer(tmp_path / "redis")
    one = World(start, client, *behind.flags(), "--node-name", "one")
    yield one
    one.server.stop()
    behind.close()


def test_the_counts_follow_every_job(world):
    for number in range(20):
        world.submit(id=f"j{number}", delay_ms=90 * MINUTE)
    world.submit(id="absolute", due_ms=START + 2 * HOUR)
    world.submit(id="counts", trigger="count", count=3)
    assert world.steps("t") == (0, [0, 20, 1, 0])
    # Cancel, reschedule, fire.
    topic = world.server.topic("t")
    assert world.client.delete(topic + "/jobs/j0").status_code == 200
    assert world.client.patch(topic + "/jobs/j1", json={"delay_ms": 3 * HOUR}).status_code == 200
    assert world.client.patch(topic + "/jobs/j2", json={"due_ms": START + HOUR - 1}).status_code == 200
    assert world.client.post(topic + "/jobs/j3/fire").status_code == 200
    assert world.steps("t") == (1, [1, 16, 1, 1])
    # A job that a consumer has is in no step, nor one that is done; a retry is in the step of its next attempt.
    [job] = reserve(world.client, world.server, max=1)
    assert world.steps("t") == (0, [1, 16, 1, 1])
    world.nack(job, delay_ms=150 * MINUTE)
    assert world.steps("t") == (0, [1, 16, 2, 1])
    world.advance(HOUR)
    assert world.steps("t") == (1, [0, 16, 2, 1])
    assert ack(world.client, world.server, *reserve(world.client, world.server, max=10)) == ["ok"]
    assert world.steps("t") == (0, [0, 16, 2, 1])
    world.restart()
    assert world.steps("t") == (0, [0, 16, 2, 1])
    assert world.steps() == (0, [0, 16, 2, 1])
    assert world.client.post(world.server.topic("t") + "/purge").json() == {"purged": 20}
    assert world.steps("t") == (0, [0, 0, 0, 0])


def test_the_boundaries_are_exact(world):
    for due in (START + 5 * MINUTE - 1, START + 5 * MINUTE, START + 6 * MINUTE - 1, START + 6 * MINUTE):
        world.submit(due_ms=due)
    assert world.steps("t", steps=8, step=MINUTE) == (0, [0, 0, 0, 0, 1, 2, 1, 0])
    day = world.steps("t", steps=1440, step=MINUTE)[1]
    assert day[4:7] == [1, 2, 1] and sum(day) == 4
    assert world.steps("t", steps=3, step=2 * MINUTE, start=START + 5 * MINUTE) == (0, [3, 0, 0])
    # The defaults: an hour from now, by the minute.
    load = world.get("/v1/topics/t/load")
    assert (load["from_ms"], load["to_ms"], load["step_ms"], load["total"]) == (START, START + HOUR, MINUTE, 4)
    # From in the middle of a minute, and to in the middle of a step.
    load = world.get("/v1/topics/t/load", **{"from": START + 6 * MINUTE - 1, "to": START + 6 * MINUTE + 1, "step": 2 * MINUTE})
    assert (load["from_ms"], load["to_ms"], load["jobs"]) == (START + 5 * MINUTE, START + 7 * MINUTE, [3])


def test_all_topics_and_the_largest(world):
    for number in range(12):
        for _ in range(number):
            world.submit(f"topic-{number:02}", delay_ms=90 * MINUTE)
    world.submit("late", due_ms=START + 3 * HOUR)
    assert world.steps() == (0, [0, 66, 0, 1])
    load = world.get("/v1/load", **{"from": START, "to": START + 4 * HOUR, "step": HOUR, "by": "topic"})
    assert load["jobs"] == [0, 66, 0, 1]
    assert [(one["topic"], one["total"]) for one in load["topics"]] == [(f"topic-{n:02}", n) for n in range(11, 1, -1)]
    assert load["topics"][0] == {"topic": "topic-11", "due": 0, "total": 11, "jobs": [0, 11, 0, 0]}
    assert world.client.delete(world.server.topic("topic-11")).status_code == 200
    assert world.steps() == (0, [0, 55, 0, 1])


def test_what_cannot_be_counted_is_refused_with_the_field(world):
    world.submit(delay_ms=MINUTE)

    def refused(**query):
        answer = world.client.get(world.server.topic("t") + "/load", params=query)
        assert answer.status_code == 400, answer.text
        return answer.json()["error"]["field"]

    assert refused(step=1000) == "step"
    assert refused(step=90_000) == "step"
    assert refused(**{"from": START, "to": START}) == "to"
    assert refused(**{"from": START, "to": START + 10_001 * MINUTE}) == "step"
    assert refused(to="soon") == "to"
    assert refused(by="topic") == "by"
    assert world.client.get(world.server.topic("none") + "/load").status_code == 404
    load = world.get("/v1/load", **{"from": START, "to": START + 10_000 * MINUTE})
    assert len(load["jobs"]) == 10_000 and load["total"] == 1


def test_over_resp(world):
    for _ in range(3):
        world.submit(delay_ms=90_000)
    with Wire(world.server, protocol=3) as wire:
        load = wire.call("TOPIC.LOAD", "t", "FROM", START, "TO", START + 3 * MINUTE, "STEP", MINUTE)
        assert load[b"jobs"] == [0, 3, 0]
        load = wire.call("LOAD", "TO", START + 3 * MINUTE, "BY", "topic")
        assert load[b"total"] == 3
        assert [one[b"topic"] for one in load[b"topics"]] == [b"t"]
        assert wire.call("LOAD", "STEP", 1).code == "INVALID"


def test_the_command_draws_it(world):
    cli = Cli(world.server)
    for number in range(40):
        world.submit("orders", delay_ms=20 * MINUTE if number < 30 else 40 * MINUTE)
    world.submit("mail", delay_ms=40 * MINUTE)
    lines = cli("load", "orders").stdout.splitlines()
    assert lines[0].startswith("orders: 40 jobs due from ") and lines[0].endswith("in steps of 1m; due now: 0")
    assert len(lines) == 61
    assert [line.split()[1:] for line in lines[1:] if "#" in line] == [["30", "#" * 40], ["10", "#" * 13]]
    # All topics; a day is drawn in steps of half an hour.
    lines = cli("load", "--next", "24h", "--by", "topic").stdout.splitlines()
    assert lines[0].startswith("all topics: 41 jobs due from ") and "in steps of 30m" in lines[0]
    assert [line.split()[1] for line in lines[1:49] if "#" in line] == ["30", "11"]
    assert [line.split()[:3] for line in lines[50:]] == [["TOPIC", "JOBS", "DUE"], ["orders", "40", "0"], ["mail", "1", "0"]]
    # Times as people write them, and JSON as the server sends it.
    load = cli.one("load", "orders", "--from", f"@{START + 20 * MINUTE}", "--to", f"@{START + HOUR}", "--step", "20m")
    assert load["jobs"] == [30, 10]
    assert cli("load", "none", status=NO).stderr
    assert "--by is for all topics" in cli("load", "orders", "--by", "topic", status=USAGE).stderr
    assert "contradict" in cli("load", "--to", f"@{START + HOUR}", "--next", "1h", status=USAGE).stderr
    assert "whole minutes" in cli("load", "--step", "90s", status=USAGE).stderr


def test_a_token_sees_the_topics_of_its_prefix(start, client, tmp_path):
    tokens = {name: create(tmp_path / "tokens", *flags, name=name) for name, flags in {
        "all": ["--scope", "submit", "--scope", "observe"],
        "shop": ["--scope", "observe", "--topic-prefix", "shop."]}.items()}
    server = start("--clock", "virtual", "--auth-token-file", tmp_path / "tokens")
    for topic in ("shop.a", "shop.b", "bank.c"):
        answer = client.post(server.topic(topic) + "/jobs", json={"delay_ms": 90_000, "payload": "x"}, headers=bearer(tokens["all"]))
        assert answer.status_code == 201, answer.text

    def load(name, path="/v1/load", **query):
        return client.get(server.url + path, params=query, headers=bearer(tokens[name]))

    assert load("all").json()["total"] == 3
    assert load("shop").json()["total"] == 2
    assert [one["topic"] for one in load("shop", by="topic").json()["topics"]] == ["shop.a", "shop.b"]
    assert load("shop", "/v1/topics/bank.c/load").status_code == 403
    assert load("shop", "/v1/topics/shop.a/load").json()["jobs"][1] == 1
