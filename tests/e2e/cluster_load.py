"""Producers and consumers on many nodes, who go to another node when theirs does not answer, and the verdict on what they
saw.

With nothing but nodes failing, every rule of histories.py holds as it stands. A Redis that fails over may lose what it
acknowledged shortly before, and forget leases and settlements of that time: such a time is a window. What was answered
within a window counts as unknown; the rest is judged as strictly as ever, and what was lost is counted.
"""

import collections
import random
import time

import histories
from cluster_world import PREFIX, poll
from conftest import DEADLINE_S
from histories import CLOCK_MS, Delivery, History, Kill, Submit
from torture_clients import SETTINGS, Fleet
from torture_wires import HttpWire, Lost, Refused, RespWire

CALL_S = 3  # longer than any reserve waits; then the node counts as lost
SLOTS = 16
LOSS_MS = 1000  # README: what may be lost was acknowledged within so much before a failover
DRAIN_S = 60
FIGURES_S = 15
LATER = 1 << 62  # ns


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

    def window(self, began, ended):
        """Between these instants, and LOSS_MS before, Redis may have forgotten what it answered."""
        self.windows.append(Kill(began - LOSS_MS * CLOCK_MS, ended))

    def left(self):
        """How many jobs of the topic Redis still has to deliver, read past all nodes."""
        left = 0
        for server in self.world.masters():
            for part in ("store", "prepare", "count"):
                for key in server.ask("KEYS", f"{{{PREFIX}.*}}{self.topic}/*:{part}"):
                    left += server.ask("ZCARD", key)
        return left

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
        assert not faults, f"{len(faults)} faults:\n" + "\n".join(map(str, faults[:20]))
        self.check_figures()
        return accepted, lost


def or_later(event):
    """A call without an answer may still lie before a node that stands still, and be carried out when that goes on."""
    unknown = not isinstance(event, Delivery) and event.outcome is None
    return event._replace(ended=LATER) if unknown else event


def judge(history, windows):
    """What nothing explains, and what only the windows do."""
    strict = histories.check(History(history.events, windows, history.dead))
    if not windows:
        return strict, []
    faults = histories.check(excuse(history, windows))
    found = {(fault.kind, fault.id) for fault in faults}
    return faults, [fault for fault in strict if (fault.kind, fault.id) not in found]


def excuse(history, windows):
    """The same history, where what was answered within a window is not known to have happened."""

    def forgotten(event):
        return any(event.ended >= window.began and event.began <= window.ended for window in windows)

    events = [
        event._replace(outcome=None) if not isinstance(event, Delivery) and forgotten(event) else event
        for event in history.events
    ]
    return History(events, windows, history.dead)


def report(history, undone, windows):
    figures = histories.figures(History(history.events, [], history.dead))
    accepted = figures.get("submit accepted", 0)
    print(f"  {figures}")
    if not windows:
        return accepted, 0
    lost = {fault.id for fault in undone if fault.kind == "lost"}
    kinds = collections.Counter(fault.kind for fault in undone)
    print(f"  lost to failovers: {len(lost)} of {accepted} accepted; all that was undone: {dict(kinds)}")
    ages = [age_ms(event, windows) for event in history.events if isinstance(event, Submit) and event.id in lost]
    if ages:
        print(f"  they were acknowledged from {-max(ages):.0f} to {-min(ages):.0f} ms after the fault began")
    return accepted, len(lost)


def age_ms(event, windows):
    """How long before the fault of its window this was answered; negative: after it."""
    faults = [window.began + LOSS_MS * CLOCK_MS for window in windows if event.ended >= window.began]
    return (faults[-1] - event.ended) / CLOCK_MS if faults else float("inf")


def seed_of(environment_value):
    seed = int(environment_value) if environment_value else random.SystemRandom().randrange(1 << 32)
    print(f"\nseed {seed}: SEED={seed} repeats the choices")
    return seed


def instant():
    return time.monotonic_ns()
