"""What a receiver saw of a topic that is pushed to it while something was broken, and whether a server that keeps its
promises can explain it: nothing lost, nothing early, no duplicate without a cause, no attempt beyond the maximum.

All instants are ns of the wall clock, which the receivers, the brokers and the server of a test have in common. What is
certain is judged strictly, and what the record leaves open is judged for the server.

`check` returns the faults; tests/e2e/test_push_histories.py plants one of each kind.
"""

import collections
import dataclasses
from typing import NamedTuple, Optional

from histories import Fault

MS = 1_000_000
# Between what a receiver has said and its settlement in the store: a death within it may make the server forget.
SETTLE_NS = 1000 * MS


class Job(NamedTuple):
    id: str
    due_ms: int
    max_attempts: int
    accepted: bool = True  # False: the answer to its submit was lost


class Arrival(NamedTuple):
    """One delivery, as the receiver's own record has it."""

    id: str
    token: str
    attempt: int
    due_ms: int
    at_ns: int
    confirmed_ns: Optional[int]  # when the receiver had said that it has it; None: never. A broker's is at_ns.
    intact: bool = True


class Outage(NamedTuple):
    """`who`: "server" or "receiver". From before it was killed, stopped or blocked until it served again."""

    who: str
    began_ns: int
    ended_ns: int


class Letter(NamedTuple):
    attempts: int
    reason: str


@dataclasses.dataclass
class History:
    """Of one topic, after nothing of it was scheduled or leased any more."""

    jobs: dict  # id -> Job
    arrivals: list
    timeout_ms: int  # of the delivery
    outages: list = dataclasses.field(default_factory=list)
    dead: dict = dataclasses.field(default_factory=dict)  # id -> Letter

    def deaths(self, who=None):
        return [outage for outage in self.outages if who in (None, outage.who)]


def may_be_unheard(history, arrival):
    """Whether the server may not know that the receiver has it: it was said too late or never, or one of the two died."""
    if arrival.confirmed_ns is None:
        return True
    if arrival.confirmed_ns - arrival.at_ns > history.timeout_ms * MS * 9 // 10:
        return True
    until = arrival.confirmed_ns + SETTLE_NS
    return any(outage.began_ns <= until and outage.ended_ns >= arrival.at_ns for outage in history.outages)


def may_be_confirmed(history, arrival):
    """Whether the receiver may have said so: it has, or it died before that could be written down."""
    if arrival.confirmed_ns is not None:
        return True
    until = arrival.at_ns + history.timeout_ms * MS
    return any(arrival.at_ns <= outage.ended_ns and outage.began_ns <= until for outage in history.deaths("receiver"))


def check_phantom(history, job_id, job, arrivals):
    if job is None:
        yield "phantom", f"arrived as {arrivals[0].token}, never submitted" if arrivals else "dead, and never submitted"
    for arrival in arrivals:
        if not arrival.intact:
            yield "payload", f"arrived as {arrival.token} with another payload"


def check_lost(history, job_id, job, arrivals):
    if job is None or not job.accepted or job_id in history.dead:
        return
    if not arrivals:
        yield "lost", "accepted, never arrived, and no dead letter"
    elif not any(may_be_confirmed(history, arrival) for arrival in arrivals):
        yield "lost", f"gone from the store, and never confirmed: {arrivals}"


def check_early(history, job_id, job, arrivals):
    for arrival in arrivals:
        if arrival.at_ns < arrival.due_ms * MS:
            yield "early", f"{arrival} came {arrival.due_ms - arrival.at_ns / MS:.3f} ms early"
        if job is not None and job.accepted and (arrival.due_ms < job.due_ms or arrival.at_ns < job.due_ms * MS):
            yield "early", f"{arrival}, submitted for {job.due_ms}"


def may_be_sent_anew(history, first, second):
    """Whether the receiver was away while this delivery was under way: a request on a kept connection that is closed without
    a byte is sent once more, and a producer of Kafka begins anew after messages have timed out."""
    until = second.at_ns if first.confirmed_ns is None else min(second.at_ns, first.confirmed_ns + SETTLE_NS)
    return any(outage.began_ns <= until and outage.ended_ns >= first.at_ns for outage in history.deaths("receiver"))


def check_duplicates(history, job_id, job, arrivals):
    for first, second in zip(arrivals, arrivals[1:]):
        died = [one for one in history.deaths("server") if first.at_ns <= one.ended_ns and one.began_ns <= second.at_ns]
        if first.token == second.token:
            if not may_be_sent_anew(history, first, second):
                yield "duplicate", f"one delivery came twice: {first}, {second}"
        elif not may_be_unheard(history, first):
            yield "duplicate", f"{second} after {first} was confirmed"
        elif second.attempt <= first.attempt and not died:
            yield "attempts", f"{second} after {first}: the attempt was not counted"


def check_attempts(history, job_id, job, arrivals):
    if job is None:
        return
    for arrival in arrivals:
        if not 1 <= arrival.attempt <= job.max_attempts:
            yield "attempts", f"{arrival}: the maximum is {job.max_attempts}"
    allowed = job.max_attempts + len(history.deaths("server"))
    deliveries = len({arrival.token for arrival in arrivals})
    if deliveries > allowed:
        yield "attempts", f"{deliveries} deliveries, {allowed} allowed: {arrivals}"


def check_dead(history, job_id, job, arrivals):
    letter = history.dead.get(job_id)
    if letter is None or job is None:
        return
    if letter.attempts != job.max_attempts:
        yield "attempts", f"dead after {letter.attempts} attempts of {job.max_attempts}: {letter.reason}"
    if not letter.reason:
        yield "reason", "dead without a reason"
    confirmed = [arrival for arrival in arrivals if not may_be_unheard(history, arrival)]
    if confirmed:
        yield "duplicate", f"dead, though it was confirmed: {confirmed}"


RULES = [check_phantom, check_lost, check_early, check_duplicates, check_attempts, check_dead]


def check(history):
    """All faults."""
    arrivals = collections.defaultdict(list)
    for arrival in history.arrivals:
        arrivals[arrival.id].append(arrival)
    faults = []
    for job_id in {**history.jobs, **arrivals, **history.dead}:
        mine = sorted(arrivals[job_id], key=lambda arrival: (arrival.at_ns, arrival.attempt))
        job = history.jobs.get(job_id)
        faults += [Fault(kind, job_id, text) for rule in RULES for kind, text in rule(history, job_id, job, mine)]
    return faults


def figures(history):
    """Counts that show whether a run met what it is about."""
    times = collections.Counter(arrival.id for arrival in history.arrivals)
    return {
        "jobs": len(history.jobs),
        "arrived": len(times),
        "arrivals": len(history.arrivals),
        "more than once": sum(count > 1 for count in times.values()),
        "most attempts": max((arrival.attempt for arrival in history.arrivals), default=0),
        "dead": len(history.dead),
    }


def lateness(history, from_ns, to_ns):
    """(due, first arrival) in ns, for each job that was due within."""
    first = {}
    for arrival in history.arrivals:
        first[arrival.id] = min(arrival.at_ns, first.get(arrival.id, arrival.at_ns))
    due = {job.id: job.due_ms * MS for job in history.jobs.values() if from_ns <= job.due_ms * MS < to_ns}
    return [(due_ns, first[job_id]) for job_id, due_ns in due.items() if job_id in first]


def p99(sorted_values):
    assert len(sorted_values) >= 100, f"{len(sorted_values)} values have no p99"
    return sorted_values[len(sorted_values) * 99 // 100]
