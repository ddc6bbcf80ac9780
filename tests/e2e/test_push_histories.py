"""The checker of pushed topics: a sound history passes, and each kind of planted fault is found."""

import pytest
from push_histories import MS, Arrival, History, Job, Letter, Outage, check, lateness, p99

TIMEOUT_MS = 1000
DUE_MS = 1_800_000_000_000


def job(attempts=3, accepted=True):
    return Job("j", DUE_MS, attempts, accepted)


def came(at, token="a", attempt=1, said=1, due=0, intact=True):
    """At so many ms after the due time; confirmed `said` ms later, None: never."""
    confirmed = None if said is None else (DUE_MS + at + said) * MS
    return Arrival("j", token, attempt, DUE_MS + due, (DUE_MS + at) * MS, confirmed, intact)


def outage(who, began, ended):
    return Outage(who, (DUE_MS + began) * MS, (DUE_MS + ended) * MS)


def faults(one, *arrivals, outages=(), dead=None):
    letters = {} if dead is None else {"j": dead}
    return {fault.kind for fault in check(History({"j": one} if one else {}, list(arrivals), TIMEOUT_MS, list(outages), letters))}


GIVEN_UP = Letter(3, "the receiver answered 500")
SOUND = {
    "once": [job(), came(1)],
    "again after no answer": [job(), came(1, said=None), came(1200, "b", 2)],
    "again after an answer too late": [job(), came(1, said=1100), came(1050, "b", 2)],
    "its submit was not answered": [job(accepted=False)],
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_history_has_no_fault(name):
    assert faults(*SOUND[name]) == set()


def test_deaths_explain():
    assert faults(job(), came(1, said=None), outages=[outage("receiver", 2, 900)]) == set(), "it may have said so"
    twice = [came(1), came(3000, "b")]
    assert faults(job(), *twice, outages=[outage("server", 2, 2000)]) == set(), "the server forgot, and the attempt with it"
    again = [came(1), came(3000, "b", 2)]
    assert faults(job(), *again, outages=[outage("receiver", 2, 2000)]) == set(), "its word was lost"
    sent_anew = [came(1, said=None), came(5, "a")]
    assert faults(job(), *sent_anew, outages=[outage("receiver", 2, 4)]) == set(), "a kept connection was closed"
    assert faults(job(), came(1, said=0), came(90), outages=[outage("receiver", 0, 99)]) == set(), "a producer began anew"


def test_a_dead_letter_is_an_end():
    refused = [came(1, said=None), came(100, "b", 2, None), came(200, "c", 3, None)]
    assert faults(job(), *refused, dead=GIVEN_UP) == set()
    assert faults(job(), dead=GIVEN_UP) == set(), "nobody was there to see it"


PLANTED = {
    "never came": ("lost", [job()]),
    "done and never confirmed": ("lost", [job(), came(1, said=None)]),
    "before its time": ("early", [job(), came(-1)]),
    "before the time it was submitted for": ("early", [job(), came(1, due=-5)]),
    "after it was confirmed": ("duplicate", [job(), came(1), came(500, "b", 2)]),
    "one delivery twice": ("duplicate", [job(), came(1, said=None), came(500)]),
    "an attempt that did not count": ("attempts", [job(), came(1, said=None), came(1200, "b", 1)]),
    "an attempt too many": ("attempts", [job(1), came(1, said=None), came(1200, "b", 2)]),
    "more deliveries than attempts": (
        "attempts", [job(2), came(1, said=None), came(1100, "b", 2, None), came(2200, "c", 2)],
    ),
    "never submitted": ("phantom", [None, came(1)]),
    "another payload": ("payload", [job(), came(1, intact=False)]),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name):
    kind, events = PLANTED[name]
    assert kind in faults(*events)


def test_deaths_do_not_explain_everything():
    long_before = [outage("server", -9000, -8000), outage("receiver", -9000, -8000)]
    long_after = [outage("server", 3000, 4000), outage("receiver", 3000, 4000)]
    assert faults(job(), came(1), came(5000, "b", 2), outages=long_before + long_after) == {"duplicate"}
    assert faults(job(), came(1), came(5000), outages=long_before + long_after) == {"duplicate"}
    assert faults(job(), came(1, said=None), outages=long_before + long_after) == {"lost"}
    assert faults(job(), outages=[outage("server", 0, 9), outage("receiver", 0, 9)]) == {"lost"}
    twice = [came(1, said=None), came(1200, "b", 1)]
    assert faults(job(), *twice, outages=[outage("receiver", 2, 900)]) == {"attempts"}
    assert faults(job(), came(1, said=None), came(500), outages=[outage("server", 2, 400)]) == {"duplicate"}


@pytest.mark.parametrize("letter, kind", [(Letter(2, "why"), "attempts"), (Letter(4, "why"), "attempts"), (Letter(3, ""), "reason")])
def test_a_wrong_dead_letter_is_found(letter, kind):
    assert faults(job(), dead=letter) == {kind}


def test_a_dead_letter_that_was_confirmed_or_never_submitted_is_found():
    assert faults(job(), came(1), dead=GIVEN_UP) == {"duplicate"}
    assert faults(None, dead=GIVEN_UP) == {"phantom"}


def test_lateness_is_that_of_first_arrivals_within_the_window():
    jobs = {str(n): Job(str(n), DUE_MS + n, 3) for n in range(300)}
    arrivals = [Arrival(str(n), f"t{n}", 1, DUE_MS + n, (DUE_MS + n + 2 + (n % 100 == 7) * 50) * MS, None) for n in range(300)]
    arrivals.append(arrivals[0]._replace(token="late", at_ns=(DUE_MS + 9000) * MS))
    pairs = lateness(History(jobs, arrivals, TIMEOUT_MS), DUE_MS * MS, (DUE_MS + 200) * MS)
    late = sorted((at_ns - due_ns) // MS for due_ns, at_ns in pairs)
    assert late == [2] * 198 + [52] * 2
    assert p99(late) == 52
