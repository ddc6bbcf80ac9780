"""The checker itself: a sound history passes, and each kind of planted fault is found."""

import pytest
from histories import CLOCK_MS, Cancel, Delivery, History, Kill, Settle, Submit, causes, check, payload_of

LEASE_MS = 1000
WALL_MS = 1_800_000_000_000


def at(ms):
    return ms * CLOCK_MS


def submit(began, ended, outcome="accepted", delay_ms=0, max_attempts=16, job="j"):
    due_ms = WALL_MS + began + delay_ms if outcome in ("accepted", "duplicate") else None
    return Submit(job, at(began), at(ended), outcome, WALL_MS + began, delay_ms, due_ms, max_attempts)


def deliver(began, ended, token="a", attempt=1, due=0, intact=True, job="j"):
    return Delivery(job, at(began), at(ended), token, attempt, WALL_MS + due, WALL_MS + ended, LEASE_MS, intact)


def ack(began, ended, token="a", outcome="ok", job="j"):
    return Settle(job, at(began), at(ended), outcome, "ack", token, WALL_MS + began, None)


def nack(began, ended, token="a", outcome="ok", delay_ms=0, job="j"):
    return Settle(job, at(began), at(ended), outcome, "nack", token, WALL_MS + began, delay_ms)


def cancel(began, ended, outcome="cancelled", job="j"):
    return Cancel(job, at(began), at(ended), outcome)


def faults(*events, kills=(), dead=None):
    found = check(History(list(events), [Kill(at(began), at(ended)) for began, ended in kills], dead or {}))
    return [fault.kind for fault in found]


SOUND = {
    "a whole life": [submit(0, 1), deliver(2, 3), ack(4, 5)],
    "cancelled": [submit(0, 1, delay_ms=500), cancel(2, 3)],
    "a lease ran out": [submit(0, 1), deliver(2, 3), deliver(1001, 1010, "b", 2), ack(1011, 1012, "b")],
    "an ack after the lease": [
        submit(0, 1), deliver(2, 3), deliver(1001, 1010, "b", 2), ack(1011, 1012, "a", "stale"), ack(1011, 1013, "b"),
    ],
    "nacked": [submit(0, 1), deliver(2, 3), nack(4, 5), deliver(6, 7, "b", 2), ack(8, 9, "b")],
    "resubmitted without knowing": [submit(0, 1, None), submit(5, 6, "duplicate"), deliver(7, 8), ack(9, 10)],
    "stored again after its end": [
        submit(0, 1, None), deliver(2, 3), ack(4, 5), submit(6, 7), deliver(8, 9, "b", 1, 6), ack(10, 11, "b"),
    ],
    "a reserve that overlaps the ack, and was first": [
        submit(0, 1), deliver(2, 3), nack(3, 4), ack(8, 9, "b"), deliver(4, 10, "b", 2),
    ],
    "delivered before its submit was answered": [submit(0, 10), deliver(2, 3), ack(4, 5)],
    "handed over late by a node that stood still": [
        submit(0, 1), deliver(1100, 1110, "b", 2), deliver(2, 1200, "a", 1), ack(1201, 1202, "a", "stale"),
        ack(1201, 1203, "b"),
    ],
    "never known to be stored": [submit(0, 1, None)],
    "dead": [submit(0, 1, max_attempts=1), deliver(2, 3), nack(4, 5, outcome="dead")],
    "stored again after a second attempt": [
        submit(0, 1), deliver(2, 3), nack(4, 5), deliver(6, 7, "b", 2), ack(8, 9, "b"),
        submit(10, 11), deliver(12, 13, "c"), ack(14, 15, "c"),
    ],
    "a cancel that comes too late": [submit(0, 1), deliver(2, 3), ack(4, 5), cancel(6, 7, "unknown")],
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_history_passes(name):
    assert faults(*SOUND[name], dead={"j": 1} if name == "dead" else None) == []


def test_a_restart_gives_back_what_was_leased():
    events = [submit(0, 1), deliver(2, 3), deliver(20, 30, "b"), ack(31, 32, "a", "stale"), ack(31, 32, "b")]
    assert faults(*events, kills=[(10, 11)]) == []
    assert "duplicate" in faults(*events)
    assert "stale" in faults(*events)


def test_an_attempt_may_be_forgotten_with_what_ended_the_one_before():
    events = [submit(0, 1), deliver(2, 3), deliver(1100, 1101, "b", 2), deliver(1300, 1301, "c"), ack(1302, 1303, "c")]
    assert faults(*events, kills=[(1200, 1201)]) == []
    assert "after end" in faults(*events)


def test_an_ack_without_an_answer_may_have_happened_or_not():
    assert faults(submit(0, 1), deliver(2, 3), ack(4, 5, outcome=None), kills=[(4, 5)]) == []
    again = [submit(0, 1), deliver(2, 3), ack(4, 5, outcome=None), deliver(8, 9, "b"), ack(10, 11, "b")]
    assert faults(*again, kills=[(4, 5)]) == []


PLANTED = {
    "lost, never delivered": ("lost", [submit(0, 1)]),
    "lost after its delivery": ("lost", [submit(0, 1), deliver(2, 3)]),
    "lost after it was stored again": ("lost", [submit(0, 1), deliver(2, 3), ack(4, 5), submit(6, 7)]),
    "a cancel finds nothing": ("lost", [submit(0, 1, delay_ms=99), cancel(2, 3, "unknown"), cancel(4, 5)]),
    "before its due time": ("early", [submit(0, 1, delay_ms=50), deliver(2, 3, due=50), ack(4, 5)]),
    "a due time that came nearer": ("early", [submit(0, 1, delay_ms=50), deliver(2, 3, due=3), ack(4, 5)]),
    "another due time": ("early", [submit(0, 1), deliver(2, 3, due=1), ack(4, 5)]),
    "before a nack's delay": (
        "early", [submit(0, 1), deliver(2, 3), nack(4, 5, delay_ms=50), deliver(6, 7, "b", 2), ack(8, 9, "b")],
    ),
    "within its lease": ("duplicate", [submit(0, 1), deliver(2, 3), deliver(900, 901, "b", 2), ack(902, 903, "b")]),
    "within its lease, though the reserves overlap": (
        "duplicate", [submit(0, 1), deliver(2, 30), deliver(3, 40, "b", 1), ack(50, 51), ack(50, 51, "b", "stale")],
    ),
    "one token twice": ("duplicate", [submit(0, 1), deliver(2, 3), deliver(4, 5), ack(6, 7)]),
    "after its ack": ("after end", [submit(0, 1), deliver(2, 3), ack(4, 5), deliver(2000, 2001, "b", 2)]),
    "after its ack, in a reserve that had begun before": (
        "after end", [submit(0, 1), deliver(2, 3), ack(4, 5), deliver(3, 2001, "b", 2)],
    ),
    "after its cancel": ("after end", [submit(0, 1, delay_ms=9), cancel(2, 3), deliver(10, 11, due=9), ack(12, 13)]),
    "after it was dead": (
        "after end",
        [submit(0, 1, max_attempts=1), deliver(2, 3), nack(4, 5, outcome="dead"), deliver(6, 7, "b"), ack(8, 9, "b")],
    ),
    "acked and cancelled": ("after end", [submit(0, 1), deliver(2, 3), ack(4, 5), cancel(4, 6)]),
    "accepted though it was stored": (
        "accepted twice",
        [submit(0, 1), submit(2, 3), deliver(4, 5), deliver(4, 6, "b", 1, 2), ack(7, 8), ack(7, 8, "b")],
    ),
    "never submitted": ("phantom", [deliver(2, 3), ack(4, 5)]),
    "submitted later": ("phantom", [deliver(2, 3), ack(4, 5), submit(6, 7, None)]),
    "another payload": ("payload", [submit(0, 1), deliver(2, 3, intact=False), ack(4, 5)]),
    "one attempt too many": (
        "attempts", [submit(0, 1, max_attempts=1), deliver(2, 3), deliver(1002, 1003, "b", 2), ack(1004, 1005, "b")],
    ),
    "a nack that used up no attempt": (
        "attempts", [submit(0, 1), deliver(2, 3), nack(4, 5), deliver(6, 7, "b", 1), ack(8, 9, "b")],
    ),
    "dead with attempts left": ("attempts", [submit(0, 1), deliver(2, 3), nack(4, 5, outcome="dead")]),
    "stale within its lease": (
        "stale", [submit(0, 1), deliver(2, 3), ack(4, 5, outcome="stale"), ack(6, 7, outcome=None)],
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name):
    kind, events = PLANTED[name]
    assert kind in faults(*events)
    elsewhere = [event._replace(id="k") for event in SOUND["a whole life"]]
    assert kind in faults(*elsewhere, *events), "the sound jobs beside it hide nothing"


def test_delays_are_judged_by_elapsed_time_where_the_clock_was_set():
    def found(delivered):
        events = [submit(0, 1, delay_ms=50), deliver(delivered, delivered + 1, due=-3_600_000), ack(90, 91)]
        return [fault.kind for fault in check(History(events, clock_was_set=True))]

    assert found(40) == ["early"]
    assert found(60) == []


AGAIN = {
    "nacked": [submit(0, 1), deliver(2, 3), nack(4, 5), deliver(6, 7, "b", 2), ack(8, 9, "b")],
    "a nack without an answer": [submit(0, 1), deliver(2, 3), nack(4, 5, outcome=None), deliver(6, 7, "b", 2)],
    "lease ended": [submit(0, 1), deliver(2, 3), deliver(1002, 1010, "b", 2), ack(1011, 1012, "b")],
    "lease ended, its ack has no answer": [submit(0, 1), deliver(2, 3), ack(4, 5, outcome=None), deliver(1002, 1010, "b", 2)],
    "submitted again": SOUND["stored again after its end"],
    "a fault of the store": [submit(0, 1), deliver(2, 3), deliver(600, 601, "b", 1), ack(602, 603, "b")],
    "unexplained": [submit(0, 1), deliver(2, 3), deliver(20, 21, "b", 2)],
}


@pytest.mark.parametrize("cause", AGAIN)
def test_each_further_delivery_has_a_cause(cause):
    kills = [Kill(at(500), at(510))] if cause == "a fault of the store" else []
    assert causes(History(AGAIN[cause], kills)) == {cause: 1}


def test_a_dead_job_that_nobody_submitted_is_found():
    assert faults(dead={"j": 1}) == ["phantom"]


def test_payloads_differ_in_content_and_size():
    payloads = {payload_of(f"p{i}") for i in range(200)}
    assert len(payloads) == 200
    assert min(map(len, payloads)) >= 16 and max(map(len, payloads)) <= 1500
    assert len({len(payload) for payload in payloads}) > 100
