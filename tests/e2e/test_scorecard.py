"""What an operator asks at three in the morning, each in one request or one command: over HTTP and the command line, on both stores."""

import time

import httpx
import pytest

import redis_servers
from conftest import DEADLINE_S, Server, now_ms, reserve
from programs import wait_for
from test_cli import Cli

MINUTE = 60_000
HOUR = 60 * MINUTE
BATCH = 1000
BANK, CARD = "timed out: bank", "refused: card"
MANY, RATE = 1000, 500
REDRIVE_S = (1.9, 3.5)  # 1,000 jobs at 500 a second, on a machine that does other things too


@pytest.fixture(scope="module", name="server", params=["embedded", "redis"])
def _server(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scorecard")
    if request.param == "redis" and (why := redis_servers.why_not()):
        pytest.skip(why)
    behind = redis_servers.RedisServer(folder / "redis") if request.param == "redis" else None
    one = Server(folder / "data", *(behind.flags() if behind else []))
    yield one
    status = one.stop()
    if behind:
        behind.close()
    assert status == 0, "".join(one.errors)


class HttpDoor:
    """Each answer is that of one request; an operation is then asked for until it is over."""

    def __init__(self, server, topic):
        self.client, self.url = httpx.Client(timeout=DEADLINE_S), server.topic(topic)

    def get(self, path, **query):
        answer = self.client.get(self.url + path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def find(self, **where):
        page = self.get("/jobs", limit=1000, **{name: ",".join(value) if isinstance(value, list) else value for name, value in where.items()})
        assert "cursor" not in page, "one request does not show them all"
        return page["jobs"]

    def tally(self, **query):
        return self.get("/tally", **query)

    def operate(self, action, where, **how):
        began = time.monotonic()
        answer = self.client.post(self.url + "/operations", json={"action": action, "where": where, **how})
        assert answer.status_code == 200, answer.text
        reports = [answer.json()]

        def over():
            reports.append(self.get(f"/operations/{reports[0]['id']}"))
            if rate := how.get("rate"):
                assert sum(reports[-1]["outcomes"].values()) <= rate * (time.monotonic() - began) + 1, "faster than the rate"
            return reports[-1]["state"] != "running"

        wait_for(over, DEADLINE_S, "the end of the operation")
        return reports[-1]

    def load(self):
        return self.get("/load")

    def leases(self, **query):
        return self.get("/leases", **query)["leases"]


class CommandLine:
    """Each answer is that of one command."""

    def __init__(self, server, topic):
        self.cli, self.topic = Cli(server), topic

    @staticmethod
    def flags(fields):
        words = []
        for name, value in fields.items():
            flag = "--" + name.removesuffix("_ms").replace("_", "-")
            moment = name.endswith("_ms") and name != "shift_ms"
            for each in value if isinstance(value, list) else [value]:
                words += [flag, f"@{each}" if moment else f"{each}ms" if name == "shift_ms" else each]
        return words

    def find(self, **where):
        return self.cli.lines("list", self.topic, "--all", *self.flags(where))

    def tally(self, **query):
        return self.cli.one("tally", self.topic, *self.flags(query))

    def operate(self, action, where, **how):
        return self.cli.one("operate", self.topic, action, "--yes", *self.flags(where), *self.flags(how))

    def load(self):
        return self.cli.one("load", self.topic)

    def leases(self, **query):
        return self.cli.lines("leases", self.topic, *self.flags(query))


class Topic:
    """A topic of a test's own, and the door through which it is asked."""

    def __init__(self, server, client, door, name):
        self.server, self.client, self.name, self.url = server, client, name, server.topic(name)
        self.ask = {"http": HttpDoor, "cli": CommandLine}[door](server, name)

    def submit(self, jobs):
        for at in range(0, len(jobs), BATCH):
            answer = self.client.post(self.url + "/jobs", json={"jobs": jobs[at : at + BATCH]})
            assert answer.status_code == 201, answer.text

    def reserve(self, count, **fields):
        jobs = []
        while len(jobs) < count:
            jobs += reserve(self.client, self.server, self.name, max=count - len(jobs), wait_ms=DEADLINE_S * 1000, **fields)
        return jobs

    def bury(self, reason, ids):
        """Makes dead letters of new jobs with these ids."""
        self.submit([{"id": each, "payload": f"payload of {each}"} for each in ids])
        tokens = [job["token"] for job in self.reserve(len(ids), lease_ms=HOUR)]
        body = {"tokens": tokens, "dead": True, "reason": reason}
        answer = self.client.post(self.url + "/nack", json=body).json()
        assert {result["outcome"] for result in answer["results"]} == {"dead"}

    def states(self):
        groups = self.client.get(self.url + "/tally", params={"by": "state"}).json()["groups"]
        return {group["value"]: group["count"] for group in groups}


@pytest.fixture(name="topic", params=["http", "cli"])
def _topic(request, server, client):
    return Topic(server, client, request.param, request.node.originalname[5:] + "-" + request.param)


def ids(jobs):
    found = [job["id"] for job in jobs]
    assert len(found) == len(set(found)), "a job is there twice"
    return set(found)


def names(prefix, *numbers):
    return {f"{prefix}-{i}" for i in range(*numbers)}


def groups(tally):
    found = {group["value"]: group["count"] for group in tally["groups"]}
    assert tally["total"] == sum(found.values()) + tally["others"]
    return found


def test_find_by_reason(topic):
    topic.bury(BANK, names("bank", 40))
    topic.bury(CARD, names("card", 15))
    topic.submit([{"id": "later", "payload": BANK, "delay_ms": HOUR}])
    found = topic.ask.find(reason="timed out")
    assert ids(found) == names("bank", 40)
    assert {(job["state"], job["reason"]) for job in found} == {("dead", BANK)}
    assert ids(topic.ask.find(reason=CARD)) == names("card", 15)
    assert topic.ask.find(reason="no such reason") == []


def test_count_by_reason(topic):
    topic.bury(BANK, names("bank", 40))
    topic.bury(CARD, names("card", 15))
    topic.submit([{"id": "later", "delay_ms": HOUR}])
    assert groups(topic.ask.tally(by="reason", state="dead")) == {BANK: 40, CARD: 15}
    assert groups(topic.ask.tally(by="reason")) == {BANK: 40, CARD: 15, "": 1}


def test_redrive_one_reason_at_500_a_second(topic):
    topic.bury(BANK, names("bank", MANY))
    topic.bury(CARD, names("card", 200))
    report = topic.ask.operate("redrive", {"reason": "timed out"}, rate=RATE)
    assert (report["state"], report["matched"], report["outcomes"]) == ("done", MANY, {"redriven": MANY})
    took_s = (report["ended_ms"] - report["started_ms"]) / 1000
    assert REDRIVE_S[0] <= took_s <= REDRIVE_S[1], f"{MANY} jobs at {RATE} a second took {took_s} s"
    assert topic.states() == {"scheduled": MANY, "dead": 200}
    again = topic.reserve(MANY)
    assert ids(again) == names("bank", MANY) and {job["attempt"] for job in again} == {1}
    assert ids(HttpDoor(topic.server, topic.name).find(state="dead")) == names("card", 200)


def test_redrive_what_died_in_a_window(topic):
    died = {}
    for group in ("before", "inside", "after"):
        topic.bury(BANK, names(group, 20))
        died[group] = [job["died_ms"] for job in HttpDoor(topic.server, topic.name).find(id_prefix=group)]
        wait_for(lambda: now_ms() > max(died[group]) + 1, what="the next millisecond")
    window = {"died_from_ms": min(died["inside"]), "died_to_ms": max(died["inside"]) + 1}
    assert topic.ask.operate("redrive", window)["outcomes"] == {"redriven": 20}
    assert topic.states() == {"dead": 40, "scheduled": 20}
    assert ids(topic.reserve(20)) == names("inside", 20)


def test_find_by_payload_or_header(topic):
    topic.submit([{"id": f"order-{i}", "delay_ms": HOUR, "payload": f'{{"order": {4700 + i}, "for": "ann"}}',
                   "headers": {"customer": "ann" if i % 3 else "bob", "number": str(i)}} for i in range(30)])
    topic.submit([{"id": "bare", "delay_ms": HOUR, "payload": "customer=ann"}])
    assert ids(topic.ask.find(payload='"order": 4711,')) == {"order-11"}
    assert ids(topic.ask.find(payload="customer=ann")) == {"bare"}
    assert ids(topic.ask.find(header="customer=bob")) == {f"order-{i}" for i in range(0, 30, 3)}
    assert ids(topic.ask.find(header="customer=bob", payload=": 4709,")) == {"order-9"}
    assert ids(topic.ask.find(header="number")) == names("order", 30)
    assert topic.ask.find(header="customer=an") == [] == topic.ask.find(payload="4731")


def test_cancel_one_customers_jobs(topic):
    ann, bob = {"headers": {"customer": "ann"}}, {"headers": {"customer": "bob"}}
    topic.submit([{"id": f"ann-held-{i}", **ann} for i in range(2)])
    held = topic.reserve(2, lease_ms=HOUR)
    topic.submit([{"id": f"ann-{i}", "delay_ms": HOUR, **ann} for i in range(30)])
    topic.submit([{"id": f"bob-{i}", "delay_ms": HOUR, **bob} for i in range(20)])
    report = topic.ask.operate("cancel", {"header": "customer=ann", "state": ["scheduled", "leased"]})
    assert (report["matched"], report["outcomes"]) == (32, {"cancelled": 30, "in_flight": 2})
    assert topic.states() == {"scheduled": 20, "leased": 2}
    assert ids(HttpDoor(topic.server, topic.name).find(state="scheduled")) == names("bob", 20)
    # Who has a job already may still finish it.
    answer = topic.client.post(topic.url + "/ack", json={"tokens": [job["token"] for job in held]}).json()
    assert [result["outcome"] for result in answer["results"]] == ["ok", "ok"]
    assert topic.ask.operate("cancel", {"header": "customer=ann"})["outcomes"] == {}


def test_what_fires_in_the_next_hour(topic):
    # Far enough from the ends of the hour that a slow test sees the same.
    start = now_ms() // MINUTE * MINUTE
    soon = {"first": start + 5 * MINUTE, "second": start + 20 * MINUTE + 1, "third": start + 20 * MINUTE + 2, "last": start + 50 * MINUTE}
    topic.submit([{"id": name, "due_ms": due} for name, due in soon.items()])
    topic.submit([{"id": f"later-{i}", "due_ms": start + 2 * HOUR} for i in range(7)])
    topic.bury(BANK, ["dead"])
    topic.submit([{"id": "now"}])
    load = topic.ask.load()
    assert (load["total"], load["due"], load["step_ms"]) == (4, 1, MINUTE)
    due = {load["from_ms"] + i * MINUTE: jobs for i, jobs in enumerate(load["jobs"]) if jobs}
    assert due == {start + 5 * MINUTE: 1, start + 20 * MINUTE: 2, start + 50 * MINUTE: 1}
    found = topic.ask.find(sort="due", state="scheduled", due_to_ms=start + HOUR)
    assert [job["id"] for job in found] == ["now", *soon]


def test_move_ten_minutes_by_an_hour(topic):
    base = now_ms() // MINUTE * MINUTE + 3 * HOUR
    topic.submit([{"id": f"job-{i}", "due_ms": base + i * MINUTE // 2, "payload": str(i)} for i in range(60)])
    minutes = {"due_from_ms": base + 10 * MINUTE, "due_to_ms": base + 20 * MINUTE}
    report = topic.ask.operate("reschedule", minutes, shift_ms=HOUR)
    assert (report["matched"], report["outcomes"]) == (20, {"rescheduled": 20})
    moved = {i: HOUR if 20 <= i < 40 else 0 for i in range(60)}
    found = HttpDoor(topic.server, topic.name).find()
    assert {job["id"]: job["due_ms"] for job in found} == {f"job-{i}": base + i * MINUTE // 2 + more for i, more in moved.items()}
    assert {job["id"]: job["payload"] for job in found} == {f"job-{i}": str(i) for i in range(60)}
    assert topic.ask.find(**minutes) == []


def test_who_holds_leases(topic):
    topic.submit([{"id": f"job-{i}"} for i in range(7)])
    topic.submit([{"id": "later", "delay_ms": HOUR}])
    before = now_ms()
    held = {name: ids(topic.reserve(count, lease_ms=HOUR, consumer=name)) for name, count in {"mill-1": 4, "mill-2": 2}.items()}
    found = topic.ask.leases()
    assert ids(found) == held["mill-1"] | held["mill-2"]
    for lease in found:
        assert (lease["topic"], lease["attempt"], lease["extensions"]) == (topic.name, 1, 0) and lease["id"] in held[lease["holder"]]
        assert before - 1 <= lease["leased_ms"] <= now_ms() + 1
        assert lease["lease_deadline_ms"] >= lease["leased_ms"] + HOUR - 1000
    assert ids(topic.ask.leases(holder="mill-2")) == held["mill-2"]
    assert topic.ask.leases(holder="mill-3") == []
