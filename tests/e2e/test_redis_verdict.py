"""The verdict on a load: what a failover of Redis excuses, and what it does not."""

import types

import pytest
from cluster_load import Window, judge, losses, or_later, slot_of
from histories import History
from test_histories import ack, at, cancel, deliver, submit
from torture_clients import Producer
from torture_wires import known

WINDOW = Window(at(9000), at(12_000))
LATER = Window(at(20_000), at(21_000))

EXCUSED = {
    "a job that was accepted shortly before": ("lost", [submit(9500, 9501)]),
    "an ack that was forgotten": (
        "after end", [submit(0, 1), deliver(2, 3), ack(9800, 9801), deliver(12_500, 12_501, "b", 1), ack(12_502, 12_503, "b")],
    ),
    "a cancel that was forgotten": (
        "after end", [submit(0, 1, delay_ms=9700), cancel(9600, 9601), deliver(12_500, 12_501, due=9700), ack(12_502, 12_503)],
    ),
}


@pytest.mark.parametrize("name", EXCUSED)
def test_what_was_answered_within_the_window_may_be_undone(name):
    kind, events = EXCUSED[name]
    faults, undone = judge(History(events), [WINDOW])
    assert faults == []
    assert kind in {fault.kind for fault in undone}, "and is counted"
    assert kind in {fault.kind for fault in judge(History(events), [])[0]}, "without a failover nothing excuses it"


def test_a_window_of_some_slots_excuses_nothing_of_the_others():
    [there, *_, elsewhere] = sorted(map(str, range(100)), key=slot_of)
    window = WINDOW._replace(slots=frozenset({slot_of(there)}))
    history = History([submit(9500, 9501, job=there), submit(9500, 9501, job=elsewhere)])
    faults, undone = judge(history, [window])
    assert [(fault.kind, fault.id) for fault in faults] == [("lost", elsewhere)]
    assert [(fault.kind, fault.id) for fault in undone] == [("lost", there)]
    assert losses(history, undone, [window]) == {window: history.events[:1]}


def test_if_replicas_had_what_was_answered_only_claims_may_be_forgotten():
    window = WINDOW._replace(lost_max=0, claims_only=True)
    for kind, events in EXCUSED.values():
        faults, undone = judge(History(events), [window])
        assert kind in {fault.kind for fault in faults} and undone == []
    claimed_again = [submit(0, 1), deliver(9500, 9501), deliver(9600, 9601, "b", 1), ack(9602, 9603, "b")]
    assert judge(History(claimed_again), [window]) == ([], [])
    assert "duplicate" in {fault.kind for fault in judge(History(claimed_again), [])[0]}


def test_what_is_refused_of_a_batch_was_not_done():
    class Full:
        def submit(self, jobs):
            return [{"outcome": known(outcome)} for outcome in ("accepted", "storage_full", "unavailable")]

    fleet = types.SimpleNamespace(wire=lambda number: Full(), stored=0, delay_max_ms=1)
    producer = Producer(fleet, 0, 0)
    jobs = [{**producer.new_job(), "delay_ms": 0} for _ in range(3)]
    producer.submit(jobs)
    assert [(event.id, event.outcome) for event in producer.events] == [(jobs[0]["id"], "accepted"), (jobs[2]["id"], None)]


NOT_EXCUSED = {
    "a job that was accepted long before": ("lost", [submit(8000, 8001)]),
    "a job that was accepted after it": ("lost", [submit(12_100, 12_101)]),
    "an ack long before": (
        "after end", [submit(0, 1), deliver(2, 3), ack(8000, 8001), deliver(12_500, 12_501, "b", 2), ack(12_502, 12_503, "b")],
    ),
    "before its due time": (
        "early", [submit(9500, 9501, delay_ms=900), deliver(9600, 9601, due=10_400), ack(12_500, 12_501)],
    ),
    "never submitted": ("phantom", [deliver(10_000, 10_001), ack(10_002, 10_003)]),
}


@pytest.mark.parametrize("name", NOT_EXCUSED)
def test_nothing_else_is_excused(name):
    kind, events = NOT_EXCUSED[name]
    faults, _ = judge(History(events), [WINDOW])
    assert kind in {fault.kind for fault in faults}


def test_a_submit_without_an_answer_may_be_carried_out_when_a_node_goes_on():
    events = [submit(0, 10, None), submit(11, 12), deliver(13, 14, due=11), ack(15, 16), deliver(50, 51, "b", 1, 40)]
    assert "after end" in {fault.kind for fault in judge(History(events), [])[0]}, "it was over when the call was given up"
    assert "after end" not in {fault.kind for fault in judge(History([or_later(event) for event in events]), [])[0]}


def test_each_loss_is_counted_for_the_window_that_explains_it():
    events = [submit(9500, 9501), submit(20_500, 20_501, job="other"), submit(13_000, 13_001, job="well")]
    events += [deliver(13_002, 13_003, job="well"), ack(13_004, 13_005, job="well")]
    history = History(events)
    _, undone = judge(history, [WINDOW, LATER])
    assert losses(history, undone, [WINDOW, LATER]) == {WINDOW: events[:1], LATER: events[1:2]}
