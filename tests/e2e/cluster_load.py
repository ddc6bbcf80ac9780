"""Producers and consumers on many nodes, who go to another node when theirs does not answer, and the verdict on what they
saw.

With nothing but nodes failing, every rule of histories.py holds as it stands. A Redis that fails over may lose what its
replicas had not received, and forget leases and settlements of that time: such a time is a window. What was answered
within a window counts as unknown; the rest is judged as strictly as ever, and what was lost is counted.
"""

import collections
import math
import random
import time
import zlib
from typing import NamedTuple, Optional

import histories
from cluster_world import PREFIX, poll
from conftest import DEADLINE_S
from histories import CLOCK_MS, Delivery, History, Submit
from torture_clients import BATCHES, SETTINGS, Fleet
from torture_wires import HttpWire, Lost, Refused, RespWire

CALL_S = 3  # longer than any reserve waits; then the node counts as lost
SLOTS = 16
DRAIN_S = 60
FIGURES_S = 15
LATER = 1 << 62  # ns


def slot_of(job_id):
    """Of a job of a load, which has no key."""
    return zlib.crc32(job_id.encode()) % SLOTS


class Window(NamedTuple):
    """Between these instants Redis may have forgotten what it answered of jobs in these slots."""

    began: int
    ended: int
    lost_max: float = math.inf  # jobs
    slots: Optional[frozenset] = None  # None: all
    claims_only: bool = False  # replicas had whatever else was answered (redis.wait_replicas)

    def concerns(self, job_id):
        return self.slots is None or slot_of(job_id) in self.slots


class Roaming:
    """One client's connection to any of the nodes."""

    def __init__(self, fleet, kind, seed):
        self.fleet, self.kind = fleet, kind
        self.random = random.Random(seed)
        self.wire = None

    def call(self, name, *arguments, **fields):
        if self.wire is None:
            seat = self.random.choice(list(self.fleet.world.seats.values()))
            self.wire = self.kind(seat.server, self.fleet.topic, CALL_S)
        try:
            return getattr(self.wire, name)(*arguments, **fields)
        except (Refused, Lost):
            self.close()
            self.fleet.stopped.wait(0.01)  # all nodes may be down
            raise

    def submit(self, jobs):
        return self.call("submit", jobs)

    def cancel(self, job_id):
        return self.call("cancel", job_id)

    def reserve(self, **fields):
        return self.call("reserve", **fields)

    def settle(self, kind, tokens, **fields):
        return self.call("settle", kind, tokens, **fields)

    def abandon_reserve(self, **fields):
        self.call("abandon_reserve", **fields)

    def close(self):
        if self.wire is not None:
            self.wire.close()
        self.wire = None


class RoamingFleet(Fleet):
    delay_max_ms = 1000
    drain_lease_ms = 4000

    def __init__(self, world, topic, seed, producers, consumers):
        self.world, self.topic = world, topic
        self.draw = random.Random(seed)
        super().__init__(None, self.draw.random(), producers, consumers)

    def wire(self, number):
        return Roaming(self, (HttpWire, RespWire)[number % 2], self.draw.random())

    def await_server(self):
        """Another node may serve."""


class Load:
    """A fleet on a topic of its own, from start to verdict."""

    count = 0

    def __init__(self, world, seed, producers=4, consumers=4):
        Load.count += 1
        self.world, self.topic = world, f"load-{Load.count}"
        world.await_topic(self.topic, slots=SLOTS, **SETTINGS)
        self.fleet = RoamingFleet(world, self.topic, seed, producers, consumers)
        self.windows = []
        self.again = collections.Counter()  # after the verdict: why jobs were delivered again -> how often

    def __enter__(self):
        self.fleet.start()
        return self

    def __exit__(self, kind, error, trace):
        self.fleet.stop()

    def run_for(self, events):
        """Until the consumers saw so many more deliveries and settlements."""
        before = self.seen()
        try:
            poll(lambda: self.fleet.errors or self.seen() >= before + events, DEADLINE_S, f"{events} events under load")
        except AssertionError as error:
            figures = {seat.name: seat.call("GET", f"/topics/{self.topic}")["figures"] for seat in self.world.serving()}
            raise AssertionError(f"{error}; Redis holds {self.left()} jobs to deliver, the nodes say {figures}") from error
        assert not self.fleet.errors, self.fleet.errors

    def seen(self):
        return sum(len(client.events) for client in self.fleet.clients if client not in self.fleet.producers)

    def window(self, began, ended, lost_max=math.inf, slots=None, claims_only=False):
        self.windows.append(Window(began, ended, lost_max, slots, claims_only))

    def slots_on(self, server):
        """The slots of the topic that live on this master."""
        keys = server.ask("KEYS", f"{{{PREFIX}.*}}{self.topic}/*:meta")
        return frozenset(int(key.rsplit("/", 1)[1].split(":")[0]) for key in keys)

    @property
    def one_turn(self):
        """So many jobs may Redis accept in one turn of its loop, before anything of them has left for its replicas: each
        producer has one call under way."""
        return len(self.fleet.producers) * max(BATCHES)

    def left(self):
        """How many jobs of the topic Redis still has to deliver, read past all nodes."""
        # The scheduled ones before and after: a lease that ends in between moves its job past the reader.
        before, leased, counting, after = (self.held(part) for part in ("store", "prepare", "count", "store"))
        return max(before, after) + leased + counting

    def held(self, part):
        held = 0
        for server in self.world.masters():
            for key in server.ask("KEYS", f"{{{PREFIX}.*}}{self.topic}/*:{part}"):
                held += server.ask("ZCARD", key)
        return held

    def drain(self):
        self.fleet.stop_producing()
        poll(lambda: self.fleet.errors or self.left() == 0, DRAIN_S, "the end of all jobs")
        self.fleet.stop()
        assert not self.fleet.errors, self.fleet.errors

    def dead(self):
        dead, cursor = {}, None
        while True:
            query = "state=dead&limit=500" + (f"&cursor={cursor}" if cursor else "")
            page = self.world.call("GET", f"/topics/{self.topic}/jobs?{query}")
            dead |= {job["id"]: job["attempt"] for job in page["jobs"]}
            cursor = page.get("cursor")
            if cursor is None:
                return dead

    def check_figures(self):
        """Every node comes to show what Redis holds: nothing, or what a node that had stood still submitted late."""

        def agreed():
            left = self.left()
            figures = [seat.call("GET", f"/topics/{self.topic}")["figures"] for seat in self.world.serving()]
            return all(one["scheduled"] + one["leased"] == left for one in figures)

        poll(agreed, FIGURES_S, "figures of the nodes that are those of Redis")

    def verdict(self):
        """Drains, judges, and prints what was met and lost; how many jobs were accepted, and how many of them lost."""
        self.drain()
        history = History([or_later(event) for event in self.fleet.events()], [], self.dead())
        faults, undone = judge(history, self.windows)
        accepted, lost = report(history, undone, self.windows)
        for part, concerning in parts(history, self.windows):
            self.again.update(histories.causes(History(part.events, concerning)))
        print(f"  delivered again: {dict(self.again)}")
        assert not faults, f"{len(faults)} faults:\n" + "\n".join(map(str, faults[:20]))
        too_many = [window for window, jobs in lost.items() if len(jobs) > window.lost_max]
        assert not too_many, f"more was lost than a failover explains: {too_many}"
        self.check_figures()
        return accepted, sum(map(len, lost.values()))


def or_later(event):
    """A call without an answer may still lie before a node that stands still, and be carried out when that goes on."""
    unknown = not isinstance(event, Delivery) and event.outcome is None
    return event._replace(ended=LATER) if unknown else event


def judge(history, windows):
    """What nothing explains, and what only the windows do."""
    faults, undone = [], []
    for part, concerning in parts(history, windows):
        of_part = judge_part(part, concerning)
        faults += of_part[0]
        undone += of_part[1]
    return faults, undone


def parts(history, windows):
    """The histories of jobs that the same windows concern, each with those."""
    found = {}

    def part_of(job_id):
        concerning = tuple(window for window in windows if window.concerns(job_id))
        return found.setdefault(concerning, History([], history.kills, {}))

    for event in history.events:
        part_of(event.id).events.append(event)
    for job_id, attempts in history.dead.items():
        part_of(job_id).dead[job_id] = attempts
    return [(part, list(concerning)) for concerning, part in found.items()]


def judge_part(history, windows):
    strict = histories.check(History(history.events, windows, history.dead))
    if not windows:
        return strict, []
    faults = histories.check(excuse(history, windows))
    found = {(fault.kind, fault.id) for fault in faults}
    return faults, [fault for fault in strict if (fault.kind, fault.id) not in found]


def excuse(history, windows):
    """The same history, where what was answered within a window is not known to have happened."""

    forgetting = [window for window in windows if not window.claims_only]

    def forgotten(event):
        return any(event.ended >= window.began and event.began <= window.ended for window in forgetting)

    events = [
        event._replace(outcome=None) if not isinstance(event, Delivery) and forgotten(event) else event
        for event in history.events
    ]
    return History(events, windows, history.dead)


def report(history, undone, windows):
    """Prints it; how many jobs were accepted, and the submits that each window lost."""
    figures = histories.figures(History(history.events, [], history.dead))
    accepted = figures.get("submit accepted", 0)
    print(f"  {figures}")
    lost = losses(history, undone, windows)
    if windows:
        kinds = collections.Counter(fault.kind for fault in undone)
        count = sum(map(len, lost.values()))
        print(f"  lost to failovers: {count} of {accepted} accepted; all that was undone: {dict(kinds)}")
    for window, submits in lost.items():
        ages = [(submit.ended - window.began) / CLOCK_MS for submit in submits]
        if ages:
            print(f"  {len(ages)} of them were acknowledged {min(ages):.0f} to {max(ages):.0f} ms after all replicas had all "
                  f"that was acknowledged before")
    return accepted, lost


def losses(history, undone, windows):
    """window -> the submits that nothing but it explains the loss of: the last one of each job that was accepted."""
    ids = {fault.id for fault in undone if fault.kind == "lost"}
    last = {}
    for event in sorted(history.events, key=lambda event: event.ended):
        if isinstance(event, Submit) and event.outcome == "accepted" and event.id in ids:
            last[event.id] = event
    lost = {window: [] for window in windows}
    for submit in last.values():
        concerning = [window for window in windows if window.concerns(submit.id)]
        lost[max((window for window in concerning if window.began <= submit.ended), default=concerning[0])].append(submit)
    return lost


def seed_of(environment_value):
    seed = int(environment_value) if environment_value else random.SystemRandom().randrange(1 << 32)
    print(f"\nseed {seed}: SEED={seed} repeats the choices")
    return seed


def instant():
    return time.monotonic_ns()
