"""The commands of the RESP door: what each replies in RESP2 and in RESP3, and what each refuses."""

import pytest

from conftest import Server
from resp_wire import Error, Simple, Wire

DAY = 86_400_000
SETTINGS = ["topic", "slots", "capacity_jobs", "capacity_bytes", "lease_ms", "max_attempts", "backoff_base_ms",
            "backoff_max_ms", "count_limit", "retention_ms", "paused", "alert_due_jobs", "alert_late_ms", "alert_stalled_ms",
            "alert_attempts", "alert_push_failures", "alert_dead_jobs", "alert_future_jobs", "alerts_off", "delivery"]


@pytest.fixture(scope="module")
def clocked(tmp_path_factory):
    """One server for all: each test has a topic of its own, and the clock only goes forward."""
    one = Server(tmp_path_factory.mktemp("resp") / "data", "--clock", "virtual", "--limits-payload-size", "64KiB",
                 "--limits-batch", "100")
    yield one
    assert one.stop() == 0, "".join(one.errors)


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def wire(request, clocked):
    with Wire(clocked, request.param) as one:
        yield one


@pytest.fixture
def topic(request):
    return request.node.name.replace("[", "-").replace("]", "")


def now(wire):
    return wire.call("CLOCK.ADVANCE", 0)


def take(wire, topic, *words):
    jobs = wire.call("JOB.RESERVE", topic, *words)
    assert len(jobs) == 1, jobs
    return jobs[0]


def status(reply, *words):
    """A status or an array of them, as simple strings."""
    got = reply if isinstance(reply, list) else [reply]
    assert all(type(one) is Simple for one in got), reply
    assert got == list(words)


def refuse(wire, code, *words, says=()):
    reply = wire.call(*words)
    assert isinstance(reply, Error), f"{words} was answered with {reply!r}"
    assert reply.code == code, reply
    for said in [says] if isinstance(says, str) else says:
        assert said.lower() in reply.message.lower(), reply
    assert wire.call("PING") == "PONG", "the connection goes on after an error"
    return reply.message


def test_submit(wire, topic):
    job_id, outcome, due_ms = wire.call("JOB.SUBMIT", topic, "hello", "ID", "a", "DELAY", 1000)
    assert (job_id, due_ms) == (b"a", now(wire) + 1000)
    status(outcome, "accepted")
    again = wire.call("JOB.SUBMIT", topic, "hello", "DELAY", 1000, "ID", "a")
    assert again == [b"a", "duplicate", due_ms]
    status(again[1], "duplicate")
    own, _, own_due = wire.call("job.submit", topic, b"\x00\xff\r\n\x80")
    assert own.startswith(b"j") and own_due == now(wire)
    assert wire.call("JOB.SUBMIT", topic, "", "at", now(wire) + DAY)[2] == now(wire) + DAY
    assert wire.call("JOB.SUBMIT", topic, "", "COUNT", 2, "TRIGGER", "COUNT")[2] is None
    assert wire.call("JOB.SUBMIT", topic, "", "TRIGGER", "either", "COUNT", 2, "DELAY", 5)[2] == now(wire) + 5


def test_submits_that_are_not_stored_are_errors(wire, topic):
    wire.call("JOB.SUBMIT", topic, "x", "ID", "a", "DELAY", 10)
    assert refuse(wire, "CONFLICT", "JOB.SUBMIT", topic, "y", "ID", "a").startswith("conflict: ")
    assert wire.call("JOB.SUBMIT", topic, "y", "ID", "a", "KEEP")[1] == "duplicate"
    assert wire.call("JOB.SUBMIT", topic, "y", "REPLACE", "ID", "a") == [b"a", "accepted", now(wire)]
    assert take(wire, topic)[2] == b"y"
    assert refuse(wire, "CONFLICT", "JOB.SUBMIT", topic, "z", "ID", "a", "REPLACE").startswith("in_flight: ")
    wire.call("TOPIC.SET", topic, "capacity_jobs", 1)
    assert refuse(wire, "OVERCAPACITY", "JOB.SUBMIT", topic, "z").startswith("over_capacity: ")


def test_msubmit(wire, topic):
    ids = wire.call("JOB.MSUBMIT", topic, "DELAY", 1000, "a", "b", b"\x00\r\n")
    assert len(set(ids)) == 3 and all(type(one) is bytes for one in ids)
    for job_id, payload in zip(ids, (b"a", b"b", b"\x00\r\n")):
        job = wire.map(wire.call("JOB.GET", topic, job_id))
        assert (job["payload"], job["due_ms"]) == (payload, now(wire) + 1000)
    at = wire.call("JOB.MSUBMIT", topic, "at", now(wire) + DAY, "DELAY")
    assert wire.map(wire.call("JOB.GET", topic, at[0]))["due_ms"] == now(wire) + DAY
    wire.call("TOPIC.SET", topic, "capacity_jobs", 6)
    replies = wire.call("JOB.MSUBMIT", topic, "DELAY", 0, *"abcde")
    refused = [one for one in replies if isinstance(one, Error)]
    assert len(replies) == 5 and len(refused) == 3
    assert all(one.startswith("OVERCAPACITY over_capacity: ") for one in refused)
    refuse(wire, "INVALID", "JOB.MSUBMIT", topic, "a", "b", "c", says="DELAY")
    assert now(wire) and wire.map(wire.call("TOPIC.GET", topic))["topic"] == topic.encode()


def test_reserve(wire, topic):
    assert wire.call("JOB.RESERVE", topic) == []
    headers = ["HEADER", "h", "1", "ATTEMPTS", 3, "HEADER", "i", "2"]
    wire.call("JOB.SUBMIT", topic, b"\x00\xff", "ID", "a", "KEY", "k", *headers)
    job_id, token, payload, attempt, max_attempts, due_ms, deadline_ms, key, headers = take(wire, topic, "LEASE", 500)
    assert (job_id, payload, attempt, max_attempts, key) == (b"a", b"\x00\xff", 1, 3, b"k")
    assert (due_ms, deadline_ms) == (now(wire), now(wire) + 500)
    assert wire.map(headers) == {"h": b"1", "i": b"2"}
    assert type(token) is bytes
    wire.call("JOB.MSUBMIT", topic, "DELAY", 0, *map(str, range(20)))
    jobs = []
    while len(jobs) < 20:
        found = wire.call("JOB.RESERVE", topic, "wait", 0, "max", 7)
        assert 1 <= len(found) <= 7
        jobs += found
    assert sorted(int(job[2]) for job in jobs) == list(range(20))
    assert all(job[7] is None and wire.map(job[8]) == {} for job in jobs)
    assert all(job[6] == now(wire) + 30_000 for job in jobs), "the topic's lease"


def test_a_reserve_that_waits_is_woken(wire, clocked, topic):
    wire.send("JOB.RESERVE", topic, "WAIT", 60_000)
    with Wire(clocked) as other:
        other.call("JOB.SUBMIT", topic, "x", "ID", "woken", "DELAY", 5000)
        other.call("CLOCK.ADVANCE", 5000)
    assert [job[0] for job in wire.read()] == [b"woken"]


def test_settle(wire, topic):
    wire.call("JOB.MSUBMIT", topic, "DELAY", 0, *"abcd")
    tokens = []
    while len(tokens) < 4:
        tokens += [job[1] for job in wire.call("JOB.RESERVE", topic, "MAX", 4)]
    status(wire.call("JOB.EXTEND", topic, *tokens, "LEASE", 60_000), "ok", "ok", "ok", "ok")
    status(wire.call("JOB.EXTEND", topic, tokens[0]), "ok")
    status(wire.call("JOB.ACK", topic, tokens[0], tokens[1], tokens[0]), "ok", "ok", "stale")
    status(wire.call("JOB.NACK", topic, tokens[2], tokens[1], "REASON", "no luck", "DELAY", 700), "ok", "stale")
    status(wire.call("JOB.EXTEND", topic, tokens[2], "lease", 5), "stale")
    [shown] = wire.call("JOB.LIST", topic, "STATE", "scheduled")[1]
    job = wire.map(shown)
    assert (job["reason"], job["due_ms"]) == (b"no luck", now(wire) + 700)
    wire.call("JOB.SUBMIT", topic, "p", "ID", "last", "ATTEMPTS", 1)
    status(wire.call("JOB.NACK", topic, take(wire, topic)[1]), "dead")
    assert wire.call("JOB.REDRIVE", topic) == 1
    assert wire.call("JOB.REDRIVE", topic) == 0


def test_cancel_amend_fire(wire, topic):
    for job_id, *key in (["a"], ["b"], ["c", "KEY", "k"]):
        wire.call("JOB.SUBMIT", topic, "p", "ID", job_id, *key, "DELAY", DAY)
    status(wire.call("JOB.CANCEL", topic, "a"), "cancelled")
    status(wire.call("JOB.CANCEL", topic, "a"), "unknown")
    status(wire.call("JOB.CANCEL", topic, "c"), "unknown")
    status(wire.call("JOB.CANCEL", topic, "c", "key", "k"), "cancelled")
    assert wire.call("JOB.AMEND", topic, "b", "PAYLOAD", b"new\x00") == [Simple("amended"), None]
    assert wire.call("JOB.AMEND", topic, "b", "DELAY", 50) == ["amended", now(wire) + 50]
    assert wire.call("JOB.AMEND", topic, "b", "PAYLOAD", "newer", "AT", now(wire) + 70) == ["amended", now(wire) + 70]
    assert wire.call("JOB.AMEND", topic, "nobody", "DELAY", 1) == ["unknown", None]
    assert wire.call("JOB.FIRE", topic, "nobody") == ["unknown", None]
    fired = wire.call("JOB.FIRE", topic, "b")
    status(fired[0], "fired")
    assert fired[1] == now(wire)
    assert take(wire, topic)[2] == b"newer"
    assert wire.call("JOB.FIRE", topic, "b") == ["in_flight", None]
    assert wire.call("JOB.AMEND", topic, "b", "DELAY", 1) == ["in_flight", None]
    status(wire.call("JOB.CANCEL", topic, "b"), "in_flight")


def test_finished_jobs(wire, topic):
    wire.call("TOPIC.SET", topic, "retention_ms", 1000)
    wire.call("JOB.SUBMIT", topic, "p", "ID", "a")
    wire.call("JOB.ACK", topic, take(wire, topic)[1])
    status(wire.call("JOB.CANCEL", topic, "a"), "finished")
    assert wire.call("JOB.FIRE", topic, "a") == ["finished", None]
    assert wire.call("JOB.AMEND", topic, "a", "DELAY", 1) == ["finished", None]
    assert wire.map(wire.call("JOB.GET", topic, "a"))["state"] == b"done"
    wire.call("CLOCK.ADVANCE", 3000)
    assert wire.call("JOB.GET", topic, "a") is None


def test_count(wire, topic):
    wire.call("JOB.SUBMIT", topic, "p", "ID", "g", "KEY", "k", "TRIGGER", "count", "COUNT", 5)
    assert wire.map(wire.call("JOB.GET", topic, "g", "KEY", "k"))["due_ms"] is None
    for words, outcome, left in [
        (["e1"], "counted", 4),
        (["e1"], "repeated", 4),
        (["e2", "BY", 3], "counted", 1),
        (["e3"], "fired", 0),
        (["e4"], "not_counted", 0),
    ]:
        reply = wire.call("JOB.COUNT", topic, "g", *words, "KEY", "k")
        status(reply[0], outcome)
        assert reply[1] == left
    assert wire.call("JOB.COUNT", topic, "g", "e1") == ["unknown", 0], "without its key"


def test_get_is_what_http_shows(wire, clocked, client, topic):
    wire.call("TOPIC.SET", topic, "backoff_base_ms", 0)
    trigger = ["TRIGGER", "either", "COUNT", 2, "DELAY", 0]
    wire.call("JOB.SUBMIT", topic, "text", "ID", "a", "KEY", "k", "HEADER", "h", "v", *trigger)
    for leave in ("as it is", "leased", "nacked"):
        if leave == "leased":
            token = take(wire, topic)[1]
        if leave == "nacked":
            wire.call("JOB.NACK", topic, token, "REASON", "so", "DELAY", 9)
        job = wire.map(wire.call("JOB.GET", topic, "a", "KEY", "k"))
        job["headers"] = {name: value.decode() for name, value in wire.map(job["headers"]).items()}
        shown = client.get(clocked.topic(topic) + "/jobs/a?key=k").json()
        assert {name: text(value) for name, value in job.items()} == shown, leave
    assert wire.call("JOB.GET", topic, "a") is None
    binary = wire.call("JOB.SUBMIT", topic, b"\xff\x00")[0]
    job = wire.map(wire.call("JOB.GET", topic, binary))
    assert job["payload"] == b"\xff\x00" and "payload_base64" not in job


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def test_list(wire, topic):
    for i in range(5):
        wire.call("JOB.SUBMIT", topic, f"p{i}", "ID", f"s{i}", "DELAY", DAY)
    seen, cursor = [], []
    while cursor != [None]:
        reply = wire.call("JOB.LIST", topic, "limit", 2, *(["CURSOR", cursor[0]] if cursor else []))
        cursor, jobs = [reply[0]], reply[1]
        assert len(jobs) <= 2
        seen += [(job["id"], job["payload"]) for job in map(wire.map, jobs)]
    assert sorted(seen) == [(b"s%d" % i, b"p%d" % i) for i in range(5)]
    wire.call("JOB.SUBMIT", topic, "", "ID", "l")
    take(wire, topic)
    cursor, [leased] = wire.call("JOB.LIST", topic, "STATE", "leased")
    assert cursor is None
    assert wire.map(leased)["lease_deadline_ms"] == now(wire) + 30_000
    assert wire.call("JOB.LIST", topic, "STATE", "dead") == [None, []]


def check_settings(wire, reply, **expected):
    settings = wire.map(reply)
    assert list(settings)[: len(SETTINGS)] == SETTINGS
    paused = wire.boolean(settings["paused"])
    assert {**settings, "paused": paused}.items() >= expected.items(), settings
    return settings


def test_topics(wire, clocked, client, topic):
    check_settings(wire, wire.call("TOPIC.SET", topic), slots=8, max_attempts=16, lease_ms=30_000, paused=False)
    check_settings(wire, wire.call("topic.set", topic, "LEASE_MS", 5000, "paused", "true"), lease_ms=5000, paused=True)
    check_settings(wire, wire.call("TOPIC.RESUME", topic), lease_ms=5000, paused=False)
    check_settings(wire, wire.call("TOPIC.PAUSE", topic), paused=True)
    check_settings(wire, wire.call("TOPIC.SET", topic, "paused", "false"), paused=False)
    wire.call("JOB.SUBMIT", topic, "p")
    take(wire, topic)
    shown = check_settings(wire, wire.call("TOPIC.GET", topic), lease_ms=5000)
    figures = wire.map(shown["figures"])
    lateness = {name: wire.double(value) if name != "count" else value
                for name, value in wire.map(shown["lateness_ms"]).items()}
    by_http = client.get(clocked.topic(topic)).json()
    assert figures == by_http["figures"]
    assert lateness == pytest.approx(by_http["lateness_ms"], abs=0.001)
    shown["delivery"] = {name: text(value) for name, value in wire.map(shown["delivery"]).items()}
    assert {name: text(shown[name]) for name in SETTINGS} == {name: by_http[name] for name in SETTINGS}
    topics = [wire.map(one) for one in wire.call("TOPIC.LIST")]
    assert [wire.map(one["figures"]) for one in topics if one["topic"] == topic.encode()] == [figures]
    assert [one["topic"] for one in topics] == sorted(one["topic"] for one in topics)


def test_purge_and_drop(wire, topic):
    wire.call("JOB.MSUBMIT", topic, "DELAY", DAY, *"abc")
    for _ in range(2):
        wire.call("JOB.SUBMIT", topic, "d", "ATTEMPTS", 1)
        wire.call("JOB.NACK", topic, take(wire, topic)[1])
    assert wire.call("TOPIC.PURGE", topic, "dead") == 2
    assert wire.call("TOPIC.PURGE", topic) == 3
    assert wire.call("TOPIC.PURGE", topic) == 0
    status(wire.call("TOPIC.DROP", topic), "OK")
    refuse(wire, "NOTOPIC", "TOPIC.DROP", topic, says=topic)


def test_the_clock(wire, server):
    before = now(wire)
    assert wire.call("CLOCK.ADVANCE", DAY) == before + DAY
    refuse(wire, "INVALID", "CLOCK.ADVANCE", -1, says="ms")
    with Wire(server, wire.protocol) as real:
        refuse(real, "ERR", "CLOCK.ADVANCE", 1, says="virtual")


@pytest.mark.parametrize("words", [
    ["JOB.REDRIVE"], ["JOB.LIST"], ["TOPIC.GET"], ["TOPIC.PAUSE"], ["TOPIC.RESUME"], ["TOPIC.PURGE"], ["TOPIC.DROP"],
    ["TOPIC.PURGE", "DEAD"], ["JOB.GET", "x"], ["JOB.CANCEL", "x"], ["JOB.FIRE", "x"], ["JOB.AMEND", "x", "DELAY", 1],
    ["JOB.COUNT", "x", "e"], ["JOB.ACK", "AAABAAAAAAAAAAEAAAAAAQAA"], ["JOB.NACK", "AAABAAAAAAAAAAEAAAAAAQAA"],
    ["JOB.EXTEND", "AAABAAAAAAAAAAEAAAAAAQAA"],
], ids=lambda words: " ".join(map(str, words[:2])))
def test_unknown_topics(wire, words):
    refuse(wire, "NOTOPIC", words[0], "no-such-topic", *words[1:], says="no-such-topic")


# A command, its code, and what its message must hold: the name of what is at fault, the limit, or the nearest word.
REFUSED = [
    (["JOB.SUBMIT", "t", "p", "DELAY", "soon"], "INVALID", ["DELAY", "soon"]),
    (["JOB.SUBMIT", "t", "p", "DELAY", "1.5"], "INVALID", ["DELAY"]),
    (["JOB.SUBMIT", "t", "p", "DELAY", ""], "INVALID", ["DELAY"]),
    (["JOB.SUBMIT", "t", "p", "DELAY", " 5"], "INVALID", ["DELAY"]),
    (["JOB.SUBMIT", "t", "p", "DELAY", "99999999999999999999"], "INVALID", ["DELAY"]),
    (["JOB.SUBMIT", "t", "p", "DELAY", -1], "INVALID", ["DELAY", "315619200000"]),
    (["JOB.SUBMIT", "t", "p", "DELAY", 315_619_200_001], "INVALID", ["DELAY", "315619200000"]),
    (["JOB.SUBMIT", "t", "p", "AT", -1], "INVALID", ["AT"]),
    (["JOB.SUBMIT", "t", "p", "DELAY", 1, "AT", 1], "INVALID", ["DELAY", "AT"]),
    (["JOB.SUBMIT", "t", "p", "DELAY", 1, "DELAY", 1], "INVALID", ["DELAY"]),
    (["JOB.SUBMIT", "t", "p", "REPLACE", "KEEP"], "INVALID", ["REPLACE", "KEEP"]),
    (["JOB.SUBMIT", "t", "p", "DEALY", 1], "INVALID", ["DEALY", "DELAY"]),
    (["JOB.SUBMIT", "t", "p", "DELAY"], "INVALID", ["DELAY"]),
    (["JOB.SUBMIT", "t", "p", "HEADER", "name"], "INVALID", ["HEADER"]),
    (["JOB.SUBMIT", "t", "p", "HEADER", "h", "1", "HEADER", "h", "2"], "INVALID", ["HEADER", "h", "twice"]),
    (["JOB.SUBMIT", "t", "p", "HEADER", "h", b"\xff"], "INVALID", ["UTF-8"]),  # HTTP could not show it
    (["JOB.SUBMIT", "t", "p", "HEADER", b"\xff", "v"], "INVALID", ["UTF-8"]),
    (["JOB.SUBMIT", "t", "p", "COUNT", 0], "INVALID", ["COUNT", "100000"]),
    (["JOB.SUBMIT", "t", "p", "ATTEMPTS", 1001], "INVALID", ["ATTEMPTS", "1000"]),
    (["JOB.SUBMIT", "t", "p", "TRIGGER", "cuont"], "INVALID", ["cuont", "count"]),
    (["JOB.SUBMIT", "t", "p", "TRIGGER", "either"], "INVALID", ["DELAY"]),
    (["JOB.SUBMIT", "t", "p", "ID", ""], "INVALID", ["id"]),
    (["JOB.SUBMIT", "t", "p", "ID", "i" * 257], "INVALID", ["256"]),
    (["JOB.SUBMIT", "t", "p", "ID", b"a\x01"], "INVALID", ["control"]),
    (["JOB.SUBMIT", "t", "p", "ID", b"\xff"], "INVALID", ["UTF-8"]),
    (["JOB.SUBMIT", "with space", "p"], "INVALID", ["topic"]),
    (["JOB.SUBMIT", "", "p"], "INVALID", ["topic"]),
    (["JOB.SUBMIT", "t", "p" * 65_537], "TOOLARGE", ["65536"]),
    (["JOB.SUBMIT", "t", "p", "HEADER", "h", "v" * 8193], "TOOLARGE", ["8192"]),
    (["JOB.SUBMIT", "t", "p", *[word for i in range(33) for word in ("HEADER", f"h{i}", "v")]], "TOOLARGE", ["32"]),
    (["JOB.MSUBMIT", "t", "DELAY", 0, *["p"] * 101], "INVALID", ["100"]),
    (["JOB.MSUBMIT", "t", "DELAY", "x", "p"], "INVALID", ["DELAY"]),
    (["JOB.MSUBMIT", "t", "DELAY", 0, "p", "q" * 65_537], "TOOLARGE", ["65536"]),
    (["JOB.RESERVE", "t", "MAX", 0], "INVALID", ["MAX", "100"]),
    (["JOB.RESERVE", "t", "MAX", 101], "INVALID", ["MAX", "100"]),
    (["JOB.RESERVE", "t", "WAIT", 60_001], "INVALID", ["WAIT", "60000"]),
    (["JOB.RESERVE", "t", "LEASE", 0], "INVALID", ["LEASE", "43200000"]),
    (["JOB.RESERVE", "t", "LEAS", 1], "INVALID", ["LEAS", "LEASE"]),
    (["JOB.ACK", "t", "nonsense"], "INVALID", ["token"]),
    (["JOB.ACK", "t", *["AAABAAAAAAAAAAEAAAAAAQAA"] * 101], "INVALID", ["100"]),
    (["JOB.NACK", "t", "AAABAAAAAAAAAAEAAAAAAQAA", "DELAY", -1], "INVALID", ["DELAY"]),
    (["JOB.NACK", "t", "DELAY", 1], "INVALID", ["token"]),
    (["JOB.EXTEND", "t", "AAABAAAAAAAAAAEAAAAAAQAA", "LEASE", 43_200_001], "INVALID", ["LEASE", "43200000"]),
    (["JOB.CANCEL", "t", "x", "KYE", "k"], "INVALID", ["KYE", "KEY"]),
    (["JOB.AMEND", "t", "x"], "INVALID", ["DELAY"]),
    (["JOB.AMEND", "t", "x", "PAYLOAD", "p" * 65_537], "TOOLARGE", ["65536"]),
    (["JOB.COUNT", "t", "x", "e", "BY", 0], "INVALID", ["BY", "100000"]),
    (["JOB.COUNT", "t", "x", ""], "INVALID", ["event"]),
    (["JOB.LIST", "t", "STATE", "lost"], "INVALID", ["STATE"]),
    (["JOB.LIST", "t", "LIMIT", 1001], "INVALID", ["LIMIT"]),
    (["JOB.LIST", "t", "CURSOR", "nonsense"], "INVALID", ["CURSOR"]),
    (["TOPIC.SET", "t", "slots", 3], "INVALID", ["slots"]),
    (["TOPIC.SET", "t", "leas_ms", 3], "INVALID", ["leas_ms", "lease_ms"]),
    (["TOPIC.SET", "t", "lease_ms"], "INVALID", ["lease_ms"]),
    (["TOPIC.SET", "t", "lease_ms", "x"], "INVALID", ["lease_ms"]),
    (["TOPIC.SET", "t", "lease_ms", 5, "lease_ms", 6], "INVALID", ["lease_ms"]),
    (["TOPIC.SET", "t", "paused", "maybe"], "INVALID", ["paused", "true"]),
    (["TOPIC.SET", "t", "slots", 16], "CONFLICT", ["slots"]),
    (["TOPIC.PURGE", "t", "DAED"], "INVALID", ["DAED", "DEAD"]),
    (["HELLO", 4], "INVALID", ["2", "3"]),
    (["HELLO", 3, "SETNAME"], "INVALID", ["SETNAME"]),
    (["SELECT", 1], "INVALID", ["0"]),
    (["CLIENT", "KILL"], "INVALID", ["KILL"]),
    (["COMMAND", "NONSENSE"], "INVALID", ["NONSENSE"]),
]


@pytest.mark.parametrize("words,code,says", REFUSED, ids=[" ".join(map(repr, row[0]))[:60] for row in REFUSED])
def test_refused(clocked, words, code, says):
    with Wire(clocked) as wire:
        wire.call("TOPIC.SET", "t")
        before = wire.call("TOPIC.GET", "t")
        refuse(wire, code, *words, says=says)
        assert wire.call("TOPIC.GET", "t") == before, "what is refused does nothing"


SHORTEST = {
    "JOB.SUBMIT": 2, "JOB.MSUBMIT": 4, "JOB.RESERVE": 1, "JOB.ACK": 2, "JOB.NACK": 2, "JOB.EXTEND": 2, "JOB.CANCEL": 2,
    "JOB.AMEND": 2, "JOB.FIRE": 2, "JOB.COUNT": 3, "JOB.GET": 2, "JOB.LIST": 1, "JOB.REDRIVE": 1, "DEAD.REDRIVE": 2,
    "DEAD.REMOVE": 2, "LEASE.LIST": 1, "LEASE.REVOKE": 2, "TOPIC.SET": 1,
    "TOPIC.GET": 1, "TOPIC.PAUSE": 1, "TOPIC.RESUME": 1, "TOPIC.PURGE": 1, "TOPIC.DROP": 1, "CLOCK.ADVANCE": 1,
    "AUTH": 1, "CLIENT": 1, "SELECT": 1,
}
LONGEST = {"JOB.REDRIVE": 1, "TOPIC.GET": 1, "TOPIC.PAUSE": 1, "TOPIC.RESUME": 1, "TOPIC.PURGE": 2,
           "TOPIC.DROP": 1, "CLOCK.ADVANCE": 1, "PING": 1, "AUTH": 2, "SELECT": 1, "RESET": 0, "NODES": 0}


@pytest.mark.parametrize("name", SHORTEST | LONGEST)
def test_wrong_numbers_of_arguments(clocked, name):
    with Wire(clocked) as wire:
        for count in range(SHORTEST.get(name, 0)):
            assert "argument" in refuse(wire, "INVALID", name, *["1"] * count, says=name)
        if name in LONGEST:
            assert "argument" in refuse(wire, "INVALID", name, *["1"] * (LONGEST[name] + 1), says=name)
