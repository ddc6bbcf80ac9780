"""What users do with jobs and topics, on a virtual clock, written once and run through every door."""

import pytest

from certificates import Authority
from conftest import Server
from doors import DOORS, Refused
from resp_doors import RESP_DOORS

PLAIN_DOORS = DOORS | RESP_DOORS
ALL_DOORS = [*PLAIN_DOORS, "httpx-tls", "redis-py-tls"]
MINUTE = 60_000
DAY = 86_400_000


@pytest.fixture(scope="module")
def clocked(tmp_path_factory):
    """One server for all scenarios: each has a topic of its own, and the clock only goes forward."""
    one = Server(tmp_path_factory.mktemp("clocked") / "data", "--clock", "virtual")
    yield one
    assert one.stop() == 0, "".join(one.errors)


@pytest.fixture(scope="module")
def clocked_tls(tmp_path_factory):
    """The same, with TLS."""
    authority = Authority(tmp_path_factory.mktemp("authority") / "ca")
    certificate, key = authority.issue("server")
    tls = ["--tls-certificate", certificate, "--tls-key", key]
    one = Server(tmp_path_factory.mktemp("clocked_tls") / "data", "--clock", "virtual", *tls, ca=authority.ca)
    yield one
    assert one.stop() == 0, "".join(one.errors)


@pytest.fixture(scope="module", params=ALL_DOORS)
def door(request):
    name = request.param.removesuffix("-tls")
    one = PLAIN_DOORS[name](request.getfixturevalue("clocked" if name == request.param else "clocked_tls"))
    yield one
    one.close()


@pytest.fixture
def topic(request, door):
    """A topic of the scenario's own."""
    return request.node.name.replace("[", "-").replace("]", "")


def refuse(code, field, call, *arguments, **fields):
    with pytest.raises(Refused) as error:
        call(*arguments, **fields)
    assert error.value.code == code, error.value
    if field is not None:
        assert error.value.field == field, error.value
    return error.value.message


def take(door, topic, **fields):
    jobs = door.reserve(topic, **fields)
    assert len(jobs) == 1, jobs
    return jobs[0]


def figures(door, topic):
    return door.topic(topic)["figures"]


def test_a_job_comes_back_at_its_due_time_and_not_before(door, topic):
    job = door.submit(topic, payload="order 7: paid?", delay_ms=30 * MINUTE)
    assert job["outcome"] == "accepted"
    door.advance(30 * MINUTE - 1)
    assert door.reserve(topic) == []
    now = door.advance(1)
    delivered = take(door, topic)
    assert delivered["id"] == job["id"]
    assert delivered["due_ms"] == job["due_ms"] == now
    assert delivered["payload"] == "order 7: paid?"
    assert delivered["attempt"] == 1
    assert door.ack(topic, delivered["token"]) == ["ok"]
    assert door.ack(topic, delivered["token"]) == ["stale"]
    assert door.reserve(topic) == []


def test_a_moment_in_utc(door, topic):
    now = door.advance(0)
    door.submit(topic, id="later", due_ms=now + 7 * DAY)
    door.submit(topic, id="past", due_ms=now - DAY)
    assert take(door, topic)["id"] == "past"
    assert door.reserve(topic) == []
    assert door.get(topic, "later")["due_ms"] == now + 7 * DAY
    door.advance(7 * DAY)
    assert take(door, topic)["id"] == "later"


def test_everything_a_job_carries_comes_back(door, topic):
    headers = {"trace": "a=b c", "umlaut": "grün"}
    payload = 'line one\nline "two"\t\u4e2d\u6587 \U0001f514'
    door.submit(topic, id="an id/with %2F", key="a key", payload=payload, headers=headers, max_attempts=3)
    shown = door.get(topic, "an id/with %2F", key="a key")
    assert shown["state"] == "scheduled"
    assert shown["trigger"] == "time"
    job = take(door, topic)
    for field in ("id", "key", "payload", "headers", "max_attempts"):
        assert job[field] == shown[field]
    assert (job["payload"], job["headers"], job["max_attempts"]) == (payload, headers, 3)


def test_many_jobs_at_once(door, topic):
    jobs = [{"id": f"n{i}", "payload": str(i)} for i in range(20)]
    assert [job["outcome"] for job in door.submit_many(topic, jobs)] == ["accepted"] * 20
    delivered = []
    while len(delivered) < 20:
        delivered += door.reserve(topic, max=7)
    assert {job["id"]: job["payload"] for job in delivered} == {f"n{i}": str(i) for i in range(20)}
    assert door.ack(topic, *[job["token"] for job in delivered]) == ["ok"] * 20
    assert figures(door, topic)["acked"] == 20


def test_order_within_a_key(door, topic):
    for i in range(5):
        door.submit(topic, id=f"o{i}", key="same", delay_ms=1000)
    door.advance(1000)
    assert [job["id"] for job in door.reserve(topic, max=5)] == [f"o{i}" for i in range(5)]


def test_submitting_again_is_safe(door, topic):
    first = door.submit(topic, id="once", payload="x", delay_ms=MINUTE)
    again = door.submit(topic, id="once", payload="x", delay_ms=MINUTE)
    assert (again["id"], again["due_ms"], again["outcome"]) == (first["id"], first["due_ms"], "duplicate")
    assert door.submit(topic, id="once", payload="y", delay_ms=MINUTE)["outcome"] == "conflict"
    assert door.submit(topic, id="once", payload="y", on_conflict="keep", delay_ms=MINUTE)["outcome"] == "duplicate"
    assert door.get(topic, "once")["payload"] == "x"
    assert door.submit(topic, id="once", payload="y", on_conflict="replace", delay_ms=5)["outcome"] == "accepted"
    door.advance(5)
    job = take(door, topic)
    assert job["payload"] == "y"
    assert door.submit(topic, id="once", payload="z", on_conflict="replace")["outcome"] == "in_flight"
    door.ack(topic, job["token"])
    door.advance(2 * MINUTE)
    assert door.reserve(topic) == []


def test_cancel_says_who_won(door, topic):
    door.submit(topic, id="a", delay_ms=MINUTE)
    door.submit(topic, id="b", key="k")
    assert door.cancel(topic, "a") == "cancelled"
    assert door.cancel(topic, "a") == "unknown"
    assert door.cancel(topic, "b") == "unknown", "without its key"
    job = take(door, topic)
    assert door.cancel(topic, "b", key="k") == "in_flight"
    door.ack(topic, job["token"])
    assert door.cancel(topic, "b", key="k") == "unknown"
    door.advance(2 * MINUTE)
    assert door.reserve(topic) == []


def test_finished_jobs_can_be_looked_up_while_they_are_retained(door, topic):
    door.set_topic(topic, retention_ms=10 * MINUTE)
    door.submit(topic, id="done")
    door.submit(topic, id="cancelled", delay_ms=MINUTE)
    door.ack(topic, take(door, topic)["token"])
    assert door.cancel(topic, "cancelled") == "cancelled"
    assert door.cancel(topic, "cancelled") == "cancelled", "repeated"
    assert door.cancel(topic, "done") == "finished"
    assert door.get(topic, "done")["state"] == "done"
    assert [job["id"] for job in door.list(topic, "done")] == ["done"]
    assert [job["id"] for job in door.list(topic, "cancelled")] == ["cancelled"]
    assert door.submit(topic, id="done")["outcome"] == "duplicate"
    door.advance(10 * MINUTE + 1000)
    refuse("not_found", "id", door.get, topic, "done")


def test_amend(door, topic):
    door.submit(topic, id="a", payload="old", delay_ms=MINUTE)
    now = door.advance(0)
    assert door.amend(topic, "a", payload="new")["outcome"] == "amended"
    assert door.amend(topic, "a", delay_ms=5 * MINUTE) == {"outcome": "amended", "due_ms": now + 5 * MINUTE}
    door.advance(5 * MINUTE - 1)
    assert door.reserve(topic) == []
    assert door.amend(topic, "a", due_ms=now + 6 * MINUTE, payload="newest")["due_ms"] == now + 6 * MINUTE
    door.advance(MINUTE + 1)
    job = take(door, topic)
    assert job["payload"] == "newest"
    assert door.amend(topic, "a", delay_ms=1) == {"outcome": "in_flight"}
    door.ack(topic, job["token"])
    assert door.amend(topic, "a", delay_ms=1) == {"outcome": "unknown"}


def test_fire(door, topic):
    door.submit(topic, id="a", delay_ms=DAY)
    assert door.fire(topic, "a") == "fired"
    job = take(door, topic)
    assert job["id"] == "a"
    assert door.fire(topic, "a") == "in_flight"
    door.ack(topic, job["token"])
    assert door.fire(topic, "a") == "unknown"


def test_count_trigger(door, topic):
    door.submit(topic, id="group", trigger="count", count=3)
    assert door.get(topic, "group")["due_ms"] is None
    assert door.count(topic, "group", "ann") == {"outcome": "counted", "left": 2}
    assert door.count(topic, "group", "ann") == {"outcome": "repeated", "left": 2}
    door.advance(DAY)
    assert door.reserve(topic) == []
    assert door.count(topic, "group", "bob", by=2) == {"outcome": "fired", "left": 0}
    assert door.count(topic, "group", "eve")["outcome"] == "not_counted"
    job = take(door, topic)
    door.ack(topic, job["token"])
    assert door.count(topic, "group", "eve")["outcome"] == "unknown"


def test_count_or_time_whichever_comes_first(door, topic):
    door.submit(topic, id="votes", trigger="either", count=2, delay_ms=MINUTE)
    door.submit(topic, id="quiet", trigger="either", count=2, delay_ms=MINUTE)
    door.count(topic, "votes", "1")
    door.count(topic, "votes", "2")
    assert take(door, topic)["id"] == "votes"
    door.advance(MINUTE)
    assert take(door, topic)["id"] == "quiet"
    assert door.reserve(topic) == []


def test_nack_backs_off_and_ends_as_a_dead_letter(door, topic):
    door.set_topic(topic, max_attempts=3, backoff_base_ms=1000, backoff_max_ms=1000)
    door.submit(topic, id="a", payload="p")
    job = take(door, topic)
    assert door.nack(topic, job["token"], reason="no answer") == ["ok"]
    assert door.nack(topic, job["token"]) == ["stale"]
    assert door.get(topic, "a")["reason"] == "no answer"
    assert door.reserve(topic) == []
    door.advance(1250)  # the back-off and a jitter of up to a quarter
    job = take(door, topic)
    assert job["attempt"] == 2
    assert door.nack(topic, job["token"], delay_ms=0) == ["ok"]
    job = take(door, topic)
    assert door.nack(topic, job["token"], reason="the last straw") == ["dead"]
    dead = door.list(topic, "dead")
    assert [(job["id"], job["reason"], job["attempt"]) for job in dead] == [("a", "the last straw", 3)]
    assert door.cancel(topic, "a") == "finished"
    assert door.redrive(topic) == 1
    job = take(door, topic)
    assert (job["attempt"], job["payload"]) == (1, "p")
    door.ack(topic, job["token"])
    assert door.redrive(topic) == 0


def test_dead_letters_can_be_purged(door, topic):
    for i in range(3):
        door.submit(topic, max_attempts=1)
        door.nack(topic, take(door, topic)["token"])
    assert len(door.list(topic, "dead")) == 3
    assert door.purge_dead(topic) == 3
    assert door.list(topic, "dead") == []
    assert figures(door, topic)["purged"] == 3


def test_a_lease_that_runs_out_gives_the_job_to_another(door, topic):
    door.set_topic(topic, backoff_base_ms=0, backoff_max_ms=0)
    door.submit(topic, id="a")
    job = take(door, topic, lease_ms=1000)
    assert job["lease_deadline_ms"] == door.advance(0) + 1000
    door.advance(999)
    assert door.reserve(topic) == []
    assert door.extend(topic, job["token"], lease_ms=1000) == ["ok"]
    door.advance(999)
    assert door.reserve(topic) == []
    door.advance(1)
    again = take(door, topic)
    assert again["attempt"] == 2
    assert door.ack(topic, job["token"]) == ["stale"]
    assert door.extend(topic, job["token"]) == ["stale"]
    assert door.ack(topic, again["token"]) == ["ok"]
    assert figures(door, topic)["expired"] == 1


def test_list_shows_every_job_once(door, topic):
    for i in range(5):
        door.submit(topic, id=f"s{i}", delay_ms=DAY)
    door.submit(topic, id="leased")
    take(door, topic)
    assert sorted(job["id"] for job in door.list(topic, page=2)) == [f"s{i}" for i in range(5)]
    leased = door.list(topic, "leased")
    assert [job["id"] for job in leased] == ["leased"]
    assert leased[0]["lease_deadline_ms"] > door.advance(0)


def test_topic_settings(door, topic):
    made = door.set_topic(topic, slots=4, lease_ms=5000, max_attempts=7, count_limit=9)
    assert (made["slots"], made["lease_ms"], made["max_attempts"], made["count_limit"]) == (4, 5000, 7, 9)
    changed = door.set_topic(topic, backoff_base_ms=10, backoff_max_ms=20, retention_ms=30, capacity_bytes=1 << 20)
    assert (changed["slots"], changed["lease_ms"], changed["backoff_max_ms"]) == (4, 5000, 20)
    assert changed["capacity_bytes"] == 1 << 20
    shown = door.topic(topic)
    assert {name: shown[name] for name in changed} == changed
    assert topic in [one["topic"] for one in door.topics()]
    refuse("conflict", "slots", door.set_topic, topic, slots=8)
    refuse("invalid_argument", "slots", door.set_topic, topic, slots=3)
    assert "43200000" in refuse("invalid_argument", "lease_ms", door.set_topic, topic, lease_ms=43_200_001)
    refuse("invalid_argument", "max_attempts", door.set_topic, topic, max_attempts=1001)
    assert door.topic(topic)["lease_ms"] == 5000, "a refused change changes nothing"


def test_pause_and_resume(door, topic):
    door.submit(topic)
    assert door.pause(topic)["paused"] is True
    assert door.reserve(topic) == []
    assert door.submit(topic)["outcome"] == "accepted"
    assert door.resume(topic)["paused"] is False
    assert len(door.reserve(topic, max=5)) >= 1


def test_capacity(door, topic):
    door.set_topic(topic, capacity_jobs=2)
    assert door.submit(topic, id="a")["outcome"] == "accepted"
    assert door.submit(topic, id="b", delay_ms=DAY)["outcome"] == "accepted"
    assert door.submit(topic, id="c")["outcome"] == "over_capacity"
    door.ack(topic, take(door, topic)["token"])
    assert door.submit(topic, id="c", delay_ms=DAY)["outcome"] == "accepted"
    assert door.cancel(topic, "b") == "cancelled"


def test_purge_leaves_what_is_leased(door, topic):
    for i in range(4):
        door.submit(topic, delay_ms=DAY)
    door.submit(topic, id="leased")
    job = take(door, topic)
    assert door.purge(topic) == 4
    assert door.list(topic) == []
    assert door.ack(topic, job["token"]) == ["ok"]


def test_drop(door, topic):
    door.submit(topic, id="gone")
    assert door.drop(topic) == "dropped"
    refuse("topic_not_found", "topic", door.drop, topic)
    refuse("topic_not_found", "topic", door.topic, topic)
    refuse("topic_not_found", "topic", door.get, topic, "gone")
    assert door.reserve(topic) == []


def test_unknown_topics_are_named(door, topic):
    for call in (door.pause, door.resume, door.purge, door.redrive, door.purge_dead, door.topic, door.list):
        assert topic in refuse("topic_not_found", "topic", call, topic)
    for call in (door.cancel, door.fire):
        refuse("topic_not_found", "topic", call, topic, "x")
    refuse("topic_not_found", "topic", door.amend, topic, "x", delay_ms=1)
    refuse("topic_not_found", "topic", door.count, topic, "x", "e")
    refuse("invalid_argument", "topic", door.submit, "with space")
    refuse("invalid_argument", "topic", door.reserve, "with space")


def test_the_figures_balance(door, topic):
    for i in range(6):
        door.submit(topic, id=f"f{i}", max_attempts=1)
    jobs = door.reserve(topic, max=3)
    while len(jobs) < 3:
        jobs += door.reserve(topic, max=3 - len(jobs))
    door.ack(topic, jobs[0]["token"])
    door.nack(topic, jobs[1]["token"])
    scheduled = door.list(topic)
    door.cancel(topic, scheduled[0]["id"])
    mine = figures(door, topic)
    expected = dict(accepted=6, delivered=3, acked=1, dead=1, leased=1, cancelled=1, scheduled=2, died=1)
    assert {name: mine[name] for name in expected} == expected
    stats = door.stats()
    assert stats["conservation"]["difference"] == 0
    assert stats["conservation"]["in"] == stats["totals"]["recovered"] + stats["totals"]["accepted"]
    assert stats["topics"] == len(door.topics())
    assert stats["version"][0].isdigit()
    cluster = door.cluster()
    assert [member["id"] for member in cluster["members"] if member["self"]] == [cluster["node"]]
    assert sum(member["groups"] for member in cluster["members"]) == len(cluster["groups"]) == 64
