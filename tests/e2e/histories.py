"""What clients saw of a server that may die at any moment, and whether a queue that keeps its promises can explain it.

Every call is an interval: it took effect, if at all, between `began` and `ended` on the clients' common monotonic clock
(ns). An outcome of None is unknown: the connection was lost, and the call may have happened or not. What is certain is
judged strictly, and what the intervals leave open is judged for the server.

`check` returns the faults; tests/e2e/test_histories.py plants one of each kind.
"""

import collections
import dataclasses
import hashlib
from typing import NamedTuple, Optional

CLOCK_MS = 1_000_000  # ns in a ms


class Submit(NamedTuple):
    id: str
    began: int
    ended: int
    outcome: Optional[str]
    wall_ms: int  # when it began
    delay_ms: int
    due_ms: Optional[int]  # as answered
    max_attempts: int


class Delivery(NamedTuple):
    id: str
    began: int  # of the reserve
    ended: int
    token: str
    attempt: int
    due_ms: int
    wall_ms: int  # when it arrived
    lease_ms: int
    intact: bool  # the payload is the one that belongs to the id


class Settle(NamedTuple):
    id: str
    began: int
    ended: int
    outcome: Optional[str]
    kind: str  # ack or nack
    token: str
    wall_ms: int  # when it began
    delay_ms: Optional[int]  # of a nack; None: the back-off


class Cancel(NamedTuple):
    id: str
    began: int
    ended: int
    outcome: Optional[str]


class Kill(NamedTuple):
    began: int
    ended: int


class Fault(NamedTuple):
    kind: str
    id: str
    text: str


def payload_of(job_id):
    """Of 16 to 1500 bytes, so that records of all sizes are cut through."""
    digest = hashlib.sha256(job_id.encode()).hexdigest()
    return (f"{job_id}:{digest}" * 20)[: 16 + int(digest[:4], 16) % 1484]


@dataclasses.dataclass
class History:
    events: list = dataclasses.field(default_factory=list)
    kills: list = dataclasses.field(default_factory=list)
    dead: dict = dataclasses.field(default_factory=dict)  # at the end: id -> attempts used up
    clock_was_set: bool = False  # the server's wall clock: times of day mean nothing, only elapsed time counts


class Job:
    """The events of one id, and the questions that the rules ask about them."""

    def __init__(self, job_id, kills):
        self.id = job_id
        self.kills = kills
        self.submits, self.deliveries, self.settles, self.cancels = [], [], [], []
        self.lists = {Submit: self.submits, Delivery: self.deliveries, Settle: self.settles, Cancel: self.cancels}

    def sort(self):
        for events in self.lists.values():
            events.sort(key=lambda event: event.ended)

    def delivery_of(self, token):
        return next((delivery for delivery in self.deliveries if delivery.token == token), None)

    def settles_of(self, token, kind):
        return [settle for settle in self.settles if settle.token == token and settle.kind == kind]

    def ends(self):
        """Calls after which the job is certainly over."""
        for settle in self.settles:
            if (settle.kind, settle.outcome) in (("ack", "ok"), ("nack", "dead")):
                yield settle
        yield from (cancel for cancel in self.cancels if cancel.outcome == "cancelled")

    def possible_ends(self):
        yield from self.ends()
        yield from (settle for settle in self.settles if settle.outcome is None)
        yield from (cancel for cancel in self.cancels if cancel.outcome is None)

    def stored_since(self, instant):
        """Whether a further submit may have stored it again after this instant: an id is free after its job's end."""
        storing = [submit for submit in self.submits if submit.outcome in ("accepted", None)]
        return len(storing) > 1 and storing[-1].ended > instant

    def killed_between(self, first, last):
        return any(kill.ended >= first and kill.began <= last for kill in self.kills)

    def lease_may_have_ended(self, delivery, before):
        """Whether anything may have taken the job back from this delivery before that instant."""
        nacks = self.settles_of(delivery.token, "nack")
        return (
            # The server reads its clocks in whole milliseconds, so a lease may end up to one early.
            before - delivery.began >= (delivery.lease_ms - 1) * CLOCK_MS
            or self.killed_between(delivery.began, before)
            or any(nack.began <= before and nack.outcome != "stale" for nack in nacks)
        )

    def may_follow(self, first, second):
        """Whether one of two deliveries may have ended before the other began. Where both were under way at a time, the
        one that arrived first may have begun last: a node that stood still hands over what it claimed long ago."""
        if self.lease_may_have_ended(first, second.ended):
            return True
        return second.began <= first.ended and self.lease_may_have_ended(second, first.ended)


def check_phantom(job):
    for delivery in job.deliveries:
        if not any(submit.began <= delivery.ended for submit in job.submits):
            yield "phantom", f"delivered as {delivery.token}, never submitted before"
        if not delivery.intact:
            yield "payload", f"delivered as {delivery.token} with another payload"


def check_early(job):
    asked = min((submit.began + submit.delay_ms * CLOCK_MS for submit in job.submits), default=0)
    for delivery in job.deliveries:
        if delivery.ended < asked:
            yield "early", f"arrived {(asked - delivery.ended) / CLOCK_MS} ms before its delay was over"
    for nack in job.settles:
        if nack.kind == "nack" and nack.outcome == "ok" and nack.delay_ms is not None:
            resting_until = nack.began + nack.delay_ms * CLOCK_MS
            if any(delivery.began > nack.ended and delivery.ended < resting_until for delivery in job.deliveries):
                yield "early", f"arrived before the delay of {nack} was over"


def check_times_of_day(job):
    for submit in job.submits:
        if submit.outcome == "accepted" and submit.due_ms < submit.wall_ms + submit.delay_ms:
            yield "early", f"due at {submit.due_ms}, asked for at {submit.wall_ms} with a delay of {submit.delay_ms}"
    known = {submit.due_ms for submit in job.submits if submit.due_ms is not None}
    asked = min((submit.wall_ms + submit.delay_ms for submit in job.submits), default=0)
    open_outcome = any(submit.outcome is None for submit in job.submits)
    for delivery in job.deliveries:
        if delivery.wall_ms < max(delivery.due_ms, asked):
            yield "early", f"arrived at {delivery.wall_ms}, due at {delivery.due_ms}, asked for {asked}"
        if delivery.attempt == 1 and known and not open_outcome and delivery.due_ms not in known:
            yield "early", f"delivered with due time {delivery.due_ms}, submitted with {sorted(known)}"
    for settle in job.settles:
        if settle.kind == "nack" and settle.outcome == "ok" and settle.delay_ms is not None:
            resting_until = settle.wall_ms + settle.delay_ms
            for delivery in job.deliveries:
                if delivery.began > settle.ended and delivery.wall_ms < resting_until:
                    yield "early", f"arrived at {delivery.wall_ms}, nacked until {resting_until}"


def check_over(job):
    """Nothing happens to a job that has ended, unless a submit stored it once more."""
    for end in job.ends():
        if job.stored_since(end.began):
            continue
        acked = job.delivery_of(end.token) if isinstance(end, Settle) else None
        for delivery in job.deliveries:
            # A reserve that overlaps the end may have been first; its attempt tells where the tokens differ, unless that was
            # of a time which was forgotten before the end, or of a job that had the id before.
            forgotten = job.killed_between(delivery.began, end.ended) or job.stored_since(delivery.began)
            further = acked and delivery.attempt > acked.attempt and not forgotten
            if delivery.began > end.ended or further:
                yield "after end", f"delivered as {delivery.token} after {end}"
    lives = sum(submit.outcome in ("accepted", None) for submit in job.submits)
    if sum(1 for _ in job.ends()) > lives:
        yield "after end", f"ended more often than the {lives} times it may have been stored: {list(job.ends())}"
    accepted = [submit for submit in job.submits if submit.outcome == "accepted"]
    for first, second in zip(accepted, accepted[1:]):
        if not any(end.began <= second.ended and end.ended >= first.began for end in job.possible_ends()):
            yield "accepted twice", f"nothing ended it between {first} and {second}"


def check_duplicates(job):
    for first, second in zip(job.deliveries, job.deliveries[1:]):
        if first.token == second.token:
            yield "duplicate", f"{first.token} was delivered twice"
        elif not job.may_follow(first, second) and not job.stored_since(first.began):
            yield "duplicate", f"{second.token} was delivered while {first.token} had its lease"


def check_settles(job):
    for settle in job.settles:
        delivery = job.delivery_of(settle.token)
        if settle.outcome == "stale" and not job.lease_may_have_ended(delivery, settle.ended):
            others = [other for other in job.settles if other.token == settle.token and other is not settle]
            if not any(other.began <= settle.ended for other in others):
                yield "stale", f"{settle.token} was refused within its lease"
        if settle.outcome == "dead" and delivery.attempt < max_attempts_of(job):
            yield "attempts", f"dead after attempt {delivery.attempt} of {max_attempts_of(job)}"
        if settle.kind == "nack" and settle.outcome == "ok":
            for later in [] if job.stored_since(settle.began) else job.deliveries:
                if later.began > settle.ended and later.attempt <= delivery.attempt:
                    yield "attempts", f"attempt {later.attempt} after attempt {delivery.attempt} was nacked"


def max_attempts_of(job):
    return max((submit.max_attempts for submit in job.submits), default=0)


def check_attempts(job):
    limit = max_attempts_of(job)
    lives = sum(submit.outcome in ("accepted", None) for submit in job.submits)
    for delivery in job.deliveries:
        if delivery.attempt > limit:
            yield "attempts", f"attempt {delivery.attempt} of {limit}"
    counted = [delivery for delivery in job.deliveries if not job.killed_between(delivery.began, delivery.ended)]
    if len(counted) > lives * limit + len(job.kills):
        yield "attempts", f"{len(counted)} deliveries for {limit} attempts and {len(job.kills)} restarts"


def check_cancels(job):
    for cancel in job.cancels:
        if cancel.outcome not in ("unknown", "finished"):
            continue
        was_stored = any(submit.outcome == "accepted" and submit.ended < cancel.began for submit in job.submits)
        if was_stored and not any(end.began <= cancel.ended for end in job.possible_ends() if end is not cancel):
            if cancel.outcome == "unknown" or job.id not in job.dead:
                yield "lost", f"a cancel answered {cancel.outcome}, and nothing had ended it: {cancel}"


def check_lost(job):
    accepted = [submit for submit in job.submits if submit.outcome == "accepted"]
    if accepted and job.id not in job.dead:
        if not any(end.ended > accepted[-1].began for end in job.possible_ends()):
            yield "lost", f"accepted, {len(job.deliveries)} deliveries, no end: {accepted[-1]}"


RULES = [
    check_phantom,
    check_early,
    check_times_of_day,
    check_over,
    check_duplicates,
    check_settles,
    check_attempts,
    check_cancels,
    check_lost,
]


def check(history):
    """All faults. The history ends when the server had nothing scheduled and nothing leased any more."""
    jobs = {}
    for event in history.events:
        job = jobs.setdefault(event.id, Job(event.id, history.kills))
        job.lists[type(event)].append(event)
    faults = []
    rules = [rule for rule in RULES if not (history.clock_was_set and rule is check_times_of_day)]
    for job in jobs.values():
        job.sort()
        job.dead = history.dead
        faults += [Fault(kind, job.id, text) for rule in rules for kind, text in rule(job)]
    faults += [
        Fault("phantom", job_id, "dead, and never submitted") for job_id in history.dead if job_id not in jobs
    ]
    return faults


def causes(history):
    """Why jobs were delivered again: cause -> how often. Of what `check` finds nothing wrong with."""
    jobs = {}
    for event in history.events:
        job = jobs.setdefault(event.id, Job(event.id, history.kills))
        job.lists[type(event)].append(event)
    count = collections.Counter()
    for job in jobs.values():
        job.sort()
        count.update(cause(job, first, second) for first, second in zip(job.deliveries, job.deliveries[1:]))
    return count


def cause(job, first, second):
    """The most certain one of those that may have brought a job back after its first delivery."""
    nacks = [nack for nack in job.settles_of(first.token, "nack") if nack.began <= second.ended and nack.outcome != "stale"]
    if any(nack.outcome is not None for nack in nacks):
        return "nacked"
    if job.stored_since(first.began):
        return "submitted again"
    if job.killed_between(first.began, second.ended):
        return "a fault of the store"
    if second.ended - first.began >= first.lease_ms * CLOCK_MS:
        acks = job.settles_of(first.token, "ack")
        return "lease ended, its ack has no answer" if any(ack.outcome is None for ack in acks) else "lease ended"
    if nacks:
        return "a nack without an answer"
    return "a reserve that was answered late" if job.may_follow(first, second) else "unexplained"


def figures(history):
    """Counts that show whether a run met what it is about."""
    count = collections.Counter()
    delivered = collections.Counter()
    for event in history.events:
        if isinstance(event, Submit):
            count[f"submit {event.outcome or 'without answer'}"] += 1
        elif isinstance(event, Delivery):
            count["delivered"] += 1
            delivered[event.id] += 1
        elif isinstance(event, Settle):
            count[f"{event.kind} {event.outcome or 'without answer'}"] += 1
        else:
            count[f"cancel {event.outcome or 'without answer'}"] += 1
    count["jobs delivered more than once"] = sum(times > 1 for times in delivered.values())
    count["dead at the end"] = len(history.dead)
    count["kills"] = len(history.kills)
    return dict(sorted(count.items()))
