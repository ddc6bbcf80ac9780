"""Find, count, move and mend any set of jobs: the same selector over HTTP, RESP and the command line."""

import contextlib
import json
import os
import pty
import subprocess

import pytest
import redis

from conftest import BIN, DEADLINE_S, ENVIRONMENT, now_ms, reserve, run
from programs import wait_for

HOUR_MS = 3_600_000


def tocsin(server, *words):
    done = run("tocsin", words[0], "--server", server.url, *words[1:])
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(server, *words):
    """Runs a command that asks: the ways to read its question, and to answer it and see how it ends."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([BIN / "tocsin", words[0], "--server", server.url, *words[1:]], stdin=follower, stdout=follower,
                               stderr=follower, env={**ENVIRONMENT, "TERM": "xterm"})
    os.close(follower)
    shown = []

    def read_until(end):
        with contextlib.suppress(OSError):  # how a terminal says that its last user is gone
            while not end("".join(shown)) and (part := os.read(leader, 4096)):
                shown.append(part.decode())
        return "".join(shown)

    def answer(text):
        os.write(leader, text.encode())
        said = read_until(lambda _: False)
        os.close(leader)
        return process.wait(DEADLINE_S), said

    return answer, lambda: read_until(lambda said: "?" in said)


def tocsin_json(server, *words):
    return [json.loads(line) for line in tocsin(server, *words, "--json").splitlines()]


@pytest.fixture(name="topic", params=["embedded", "redis"])
def _topic(request, start, client):
    """A server, and a client of its topic: dead letters of two reasons, and jobs of two customers that are due later."""
    if request.param == "redis":
        server = request.getfixturevalue("node")("one", request.getfixturevalue("redis_single"))
    else:
        server = start()
    return Topic(server, client)


class Topic:
    def __init__(self, server, client):
        self.server, self.client, self.url = server, client, server.topic("orders")
        self.base_ms = now_ms() // 60_000 * 60_000 + HOUR_MS
        dead = [{"id": f"dead-{i}", "payload": f"d{i}"} for i in range(30)]
        self.submit(dead)
        for job in reserve(client, server, "orders", max=30, wait_ms=DEADLINE_S * 1000):
            self.bury(job)
        while self.figures()["dead"] < 30:
            for job in reserve(client, server, "orders", max=30, wait_ms=1000):
                self.bury(job)
        self.submit([{"id": f"later-{i}", "key": f"key-{i % 3}", "due_ms": self.base_ms + i * 60_000,
                      "payload": json.dumps({"order": i}), "headers": {"customer": "ann" if i % 2 else "bob"}}
                     for i in range(20)])

    def submit(self, jobs):
        assert self.client.post(self.url + "/jobs", json={"jobs": jobs}).status_code == 201

    def bury(self, job):
        reason = "timed out: bank" if int(job["id"].removeprefix("dead-")) < 20 else "refused: card"
        body = {"tokens": [job["token"]], "dead": True, "reason": reason}
        assert self.client.post(self.url + "/nack", json=body).json()["results"][0]["outcome"] == "dead"

    def figures(self):
        return self.client.get(self.url).json()["figures"]

    def list(self, **query):
        """All pages."""
        jobs = []
        while True:
            page = self.client.get(self.url + "/jobs", params=query)
            assert page.status_code == 200, page.text
            jobs += page.json()["jobs"]
            if not (cursor := page.json().get("cursor")):
                return [job["id"] for job in jobs]
            query["cursor"] = cursor

    def tally(self, **query):
        answer = self.client.get(self.url + "/tally", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["total"], {group["value"]: group["count"] for group in answer.json()["groups"]}

    def operate(self, **body):
        answer = self.client.post(self.url + "/operations", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ended(self, **body):
        path = f"{self.url}/operations/{self.operate(**body)['id']}"
        wait_for(lambda: self.client.get(path).json()["state"] != "running", DEADLINE_S, "the end of the operation")
        report = self.client.get(path).json()
        assert report["state"] == "done", report
        return report["outcomes"]


def test_jobs_are_found_by_what_they_are(topic):
    timeouts = {f"dead-{i}" for i in range(20)}
    assert set(topic.list(reason="timed out")) == timeouts
    assert set(topic.list(reason="timed out", limit=7)) == timeouts
    assert topic.list(payload='"order": 7}') == ["later-7"]
    assert set(topic.list(header="customer=ann", state="scheduled")) == {f"later-{i}" for i in range(1, 20, 2)}
    assert set(topic.list(key="key-1")) == {f"later-{i}" for i in range(1, 20, 3)}
    assert set(topic.list(ids="dead-3,later-4,nobody")) >= {"dead-3"}
    assert set(topic.list(id_prefix="dead-1")) == {"dead-1"} | {f"dead-{i}" for i in range(10, 20)}
    assert len(topic.list(state="dead,scheduled")) == 50
    assert topic.list(state="ready") == []
    soon = {"due_from_ms": topic.base_ms, "due_to_ms": topic.base_ms + 5 * 60_000}
    assert topic.list(sort="due", limit=2, **soon) == [f"later-{i}" for i in range(5)]
    assert topic.list(sort="due", limit=3, state="scheduled") == [f"later-{i}" for i in range(20)]
    assert {f"dead-{i}" for i in range(30)} == set(topic.list(sort="created", limit=9, created_from_ms=1, state="dead"))
    cli = tocsin_json(topic.server, "list", "orders", "--reason", "refused", "--all")
    assert {job["id"] for job in cli} == {f"dead-{i}" for i in range(20, 30)}


def test_a_list_by_creation_is_in_order_and_keeps_its_place_while_jobs_change(topic):
    for i in range(12):
        topic.submit([{"id": f"one-{i}", "delay_ms": (20 - i) * HOUR_MS}])

    def page(cursor=None):
        query = {"id_prefix": "one-", "sort": "created", "limit": 4, **({"cursor": cursor} if cursor else {})}
        answer = topic.client.get(topic.url + "/jobs", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["jobs"], answer.json().get("cursor")

    def rest(cursor):
        jobs = []
        while cursor:
            some, cursor = page(cursor)
            jobs += some
        return jobs

    first, cursor = page()
    before = first + rest(cursor)
    created = [job["created_ms"] for job in before]
    assert created == sorted(created) and {job["id"] for job in before} == {f"one-{i}" for i in range(12)}
    listed, gone, moved = before[0]["id"], before[5]["id"], before[9]["id"]
    for one in (listed, gone):
        assert topic.client.delete(f"{topic.url}/jobs/{one}").json()["outcome"] == "cancelled"
    assert topic.client.patch(f"{topic.url}/jobs/{moved}", json={"delay_ms": 1000 * HOUR_MS}).status_code == 200
    topic.submit([{"id": "one-new", "delay_ms": HOUR_MS}])
    after = [job["id"] for job in rest(cursor)]
    assert after == [job["id"] for job in before[4:] if job["id"] != gone] + ["one-new"]


def test_jobs_that_wait_for_events_come_last(topic):
    topic.submit([{"id": f"waits-{i}", "trigger": "count", "count": 2} for i in range(5)])
    listed = topic.list(sort="due", limit=3, state="scheduled")
    assert listed[:20] == [f"later-{i}" for i in range(20)]
    assert sorted(listed[20:]) == [f"waits-{i}" for i in range(5)]


def test_jobs_are_counted_in_groups(topic):
    assert topic.tally(by="reason", state="dead") == (30, {"timed out: bank": 20, "refused: card": 10})
    assert topic.tally(by="state") == (50, {"dead": 30, "scheduled": 20})
    assert topic.tally(by_header="customer", state="scheduled") == (20, {"ann": 10, "bob": 10})
    total, minutes = topic.tally(by="minute", state="scheduled")
    assert (total, minutes) == (20, {str(topic.base_ms + i * 60_000): 1 for i in range(20)})
    assert "20  timed out: bank" in tocsin(topic.server, "tally", "orders", "--state", "dead", "--by", "reason")


def test_a_dry_run_counts_and_shows_samples(topic):
    report = topic.operate(action="cancel", where={"header": "customer=ann"}, dry_run=True)
    assert (report["matched"], len(report["samples"])) == (10, 5)
    assert {job["headers"]["customer"] for job in report["samples"]} == {"ann"}
    assert topic.figures()["scheduled"] == 20
    assert "10 jobs of 50 match" in tocsin(topic.server, "operate", "orders", "cancel", "--header", "customer=ann", "--dry-run")


def test_one_reason_is_redriven_at_a_rate(topic):
    began = now_ms()
    assert topic.ended(action="redrive", where={"reason": "timed out"}, rate=20) == {"redriven": 20}
    assert now_ms() - began >= 800, "20 jobs at 20 a second, with a tenth of a second ahead"
    assert (topic.figures()["dead"], topic.figures()["ready"]) == (10, 20)
    assert "redriven: 10" in tocsin(topic.server, "operate", "orders", "redrive", "--reason", "refused", "--yes")


def test_one_customers_jobs_are_cancelled(topic):
    assert topic.ended(action="cancel", where={"header": "customer=ann"}) == {"cancelled": 10}
    assert topic.list(header="customer=ann", state="scheduled") == []
    assert "cancelled: 10" in tocsin(topic.server, "operate", "orders", "cancel", "--header", "customer=bob", "--yes")
    assert topic.figures()["scheduled"] == 0


def test_ten_minutes_are_moved_by_an_hour_and_spread(topic):
    where = {"due_from_ms": topic.base_ms, "due_to_ms": topic.base_ms + 10 * 60_000}
    assert topic.ended(action="reschedule", where=where, shift_ms=HOUR_MS) == {"rescheduled": 10}
    _, minutes = topic.tally(by="minute", state="scheduled")
    expected = [10 + i for i in range(10)] + [60 + i for i in range(10)]
    assert sorted(int(minute) for minute in minutes) == [topic.base_ms + i * 60_000 for i in expected]
    where = {"due_from_ms": topic.base_ms + HOUR_MS}
    spread = {"to_ms": topic.base_ms + 2 * HOUR_MS, "over_ms": 600_000}
    assert topic.ended(action="reschedule", where=where, **spread) == {"rescheduled": 10}
    _, minutes = topic.tally(by="minute", due_from_ms=topic.base_ms + 2 * HOUR_MS)
    assert list(minutes.values()) == [1] * 10


def test_what_died_in_a_window_is_purged_or_given_more_attempts(topic):
    assert topic.ended(action="attempts", where={"id_prefix": "dead-2"}, max_attempts=77) == {"changed": 11}
    assert topic.client.get(topic.url + "/jobs/dead-25").json()["max_attempts"] == 77
    window = {"died_from_ms": now_ms() - HOUR_MS, "died_to_ms": now_ms() + 1000}
    assert topic.ended(action="purge", where=window) == {"purged": 30}
    assert topic.figures()["dead"] == 0


def test_a_job_that_has_changed_since_it_was_found_stays(topic):
    begun = topic.operate(action="purge", where={"state": ["dead"]}, rate=1)
    path = f"{topic.url}/operations/{begun['id']}"
    wait_for(lambda: topic.client.get(path).json()["matched"] >= 1, DEADLINE_S, "a job that was found")
    topic.client.post(topic.url + "/dead/redrive").raise_for_status()
    wait_for(lambda: topic.client.get(path).json()["state"] != "running", DEADLINE_S, "the end of the operation")
    outcomes = topic.client.get(path).json()["outcomes"]
    assert outcomes.pop("changed_meanwhile") == 1
    figures = topic.figures()
    assert (figures["dead"], figures["scheduled"] + outcomes.get("purged", 0)) == (0, 50)


def test_an_operation_is_stopped_and_listed(topic):
    begun = topic.operate(action="fire", all=True, rate=2)
    path = f"{topic.url}/operations/{begun['id']}"
    assert topic.client.delete(path).json() == {"outcome": "stopped"}
    wait_for(lambda: topic.client.get(path).json()["state"] == "stopped", DEADLINE_S, "the operation to stop")
    assert topic.figures()["ready"] < 20
    assert [each["id"] for each in topic.client.get(topic.url + "/operations").json()["operations"]] == [begun["id"]]
    assert "stopped" in tocsin(topic.server, "operations", "orders")


def test_no_more_jobs_are_changed_than_were_confirmed(topic):
    where = {"reason": "timed out"}
    assert topic.operate(action="purge", where=where, dry_run=True)["matched"] == 20
    begun = topic.operate(action="purge", where={}, all=True, matched_max=20)
    path = f"{topic.url}/operations/{begun['id']}"
    wait_for(lambda: topic.client.get(path).json()["state"] != "running", DEADLINE_S, "the end of the operation")
    failed = topic.client.get(path).json()
    assert (failed["state"], failed["outcomes"]) == ("failed", {"purged": 20}) and "matched_max" in failed["error"]
    assert topic.figures()["dead"] + topic.figures()["scheduled"] == 30
    left = topic.tally()[0]
    assert topic.ended(action="purge", all=True, matched_max=left) == {"purged": 30}


def test_the_command_changes_no_more_than_the_question_named(topic):
    bounded = run("tocsin", "operate", "--server", topic.server.url, "orders", "cancel", "--header", "customer=ann", "--yes",
                  "--matched-max", "4")
    assert bounded.returncode == 3 and "matched_max" in bounded.stderr
    assert topic.figures()["scheduled"] == 16
    answer, question = asked(topic.server, "operate", "orders", "cancel", "--header", "customer=ann")
    assert "cancel 6 jobs of orders?" in question()
    topic.submit([{"id": f"late-{i}", "delay_ms": HOUR_MS, "payload": "x", "headers": {"customer": "ann"}} for i in range(3)])
    status, said = answer("y\n")
    assert status == 3 and "matched_max" in said
    assert topic.figures()["scheduled"] == 13


def test_a_restart_gives_operations_other_ids(start, client):
    server = start()
    url = server.topic("orders")
    client.post(url + "/jobs", json={"jobs": [{"id": str(i), "delay_ms": HOUR_MS, "payload": "x"} for i in range(9)]}).raise_for_status()
    slow = {"action": "cancel", "all": True, "rate": 1}
    before = client.post(url + "/operations", json=slow).json()["id"]
    assert server.stop() == 0
    server = start()
    url = server.topic("orders")
    after = client.post(url + "/operations", json=slow).json()["id"]
    assert before != after
    for method in ("GET", "DELETE"):
        for unknown in (before, "1", after + "0"):
            answer = client.request(method, f"{url}/operations/{unknown}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert client.get(f"{url}/operations/{after}").json()["state"] == "running"


@pytest.mark.parametrize("body, field", [
    ({"action": "purge"}, "where"),
    ({"action": "purge", "where": {}}, "where"),
    ({"action": "purge", "where": {"reasons": "x"}}, "where.reasons"),
    ({"action": "purge", "where": {"state": "asleep"}}, "where.state"),
    ({"action": "explode", "all": True}, "action"),
    ({"action": "reschedule", "all": True}, "to_ms"),
    ({"action": "reschedule", "all": True, "to_ms": 1_790_000_000}, "to_ms"),
    ({"action": "cancel", "where": {"due_from_ms": 1_790_000_000}}, "due_from_ms"),
    ({"all": True}, "action"),
])
def test_a_bad_operation_is_refused(shared_server, client, body, field):
    client.put(shared_server.topic("refusals"), json={})
    answer = client.post(shared_server.topic("refusals") + "/operations", json=body)
    assert (answer.status_code, answer.json()["error"].get("field")) == (400, field), answer.text


def test_the_same_words_work_over_resp(start, client):
    topic = Topic(start(), client)
    resp = redis.Redis(port=topic.server.resp_port, decode_responses=True)
    _, jobs = resp.execute_command("JOB.LIST", "orders", "REASON", "refused", "LIMIT", 100)
    assert len(jobs) == 10
    tally = resp.execute_command("JOB.TALLY", "orders", "STATE", "dead", "BY", "reason")
    assert dict(zip(tally[::2], tally[1::2]))["total"] == 30
    begun = resp.execute_command("JOB.OPERATE", "orders", "redrive", "REASON", "refused")
    number = dict(zip(begun[::2], begun[1::2]))["id"]

    def state():
        shown = resp.execute_command("OPERATION.GET", "orders", number)
        return dict(zip(shown[::2], shown[1::2]))["state"]
    wait_for(lambda: state() == "done", DEADLINE_S, "the end of the operation")
    assert topic.figures()["ready"] == 10
