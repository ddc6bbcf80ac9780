"""Producers and consumers that work through crashes of the server, misbehave now and then, and note what they saw.

Threads with a blocking client each, one half over HTTP and one over RESP. What they note goes to a list of their own,
so that nothing slows the races down.
"""

import random
import threading
import time

from conftest import DEADLINE_S, now_ms
from histories import Cancel, Delivery, Settle, Submit, payload_of
from torture_wires import REFUSED, HttpWire, Lost, Refused, RespWire

PRODUCERS = 8
CONSUMERS = 8
BATCHES = (1, 1, 2, 5, 20)  # jobs in a submit
PENDING_MAX = 1500  # jobs: enough for every kind of race, few enough to drain in seconds
DELAY_MAX_MS = 5000
SETTINGS = {"backoff_base_ms": 20, "backoff_max_ms": 200}
DRAIN_LEASE_MS = 20_000


class Client(threading.Thread):
    """One thread of the fleet: `turn` is called until it is told to stop."""

    def __init__(self, fleet, number, seed):
        super().__init__(name=f"{type(self).__name__}-{number}", daemon=True)
        self.fleet = fleet
        self.number = number
        self.random = random.Random(seed)
        self.wire = fleet.wire(number)
        self.events = []

    def run(self):
        try:
            while not self.stopping():
                try:
                    self.turn()
                except Refused:
                    self.fleet.await_server()
            self.wire.close()
        except Exception as error:  # a bug of the test, or an answer that must not be
            self.fleet.errors.append(f"{self.name}: {error!r}")
            raise


class Producer(Client):
    count = 0

    def stopping(self):
        return self.fleet.draining.is_set()

    def turn(self):
        if self.fleet.pending() > PENDING_MAX:
            self.fleet.draining.wait(0.02)
            return
        jobs = [self.new_job() for _ in range(self.random.choice(BATCHES))]
        while not self.submit(jobs):
            if self.random.random() < 0.05:
                return  # a producer that never learns what became of them
        if self.random.random() < 0.3:
            self.cancel(self.random.choice(jobs)["id"])

    def new_job(self):
        self.count += 1
        job_id = f"p{self.number}-{self.count}"
        delay_ms = self.random.choice((0, self.random.randrange(100), self.random.randrange(self.fleet.delay_max_ms)))
        max_attempts = self.random.choice((2, 16, 16, 16))
        return {"id": job_id, "payload": payload_of(job_id), "delay_ms": delay_ms, "max_attempts": max_attempts}

    def submit(self, jobs):
        """Whether the outcome is known; otherwise the same ids are submitted again."""
        began, wall_ms = time.monotonic_ns(), now_ms()
        try:
            answers = self.wire.submit(jobs)
        except Refused:
            self.fleet.await_server()
            return False
        except Lost:
            answers = [{"outcome": None} for _ in jobs]
        ended = time.monotonic_ns()
        for job, answer in zip(jobs, answers, strict=True):
            assert answer["outcome"] in ("accepted", "duplicate", REFUSED, None), answer
            if answer["outcome"] == REFUSED:
                continue
            self.events.append(
                Submit(job["id"], began, ended, answer["outcome"], wall_ms, job["delay_ms"], answer.get("due_ms"),
                       job["max_attempts"])
            )
        self.fleet.stored += sum(answer["outcome"] == "accepted" for answer in answers)
        return all(answer["outcome"] is not None for answer in answers)

    def cancel(self, job_id):
        began = time.monotonic_ns()
        try:
            outcome = self.wire.cancel(job_id)
        except Lost:
            outcome = None
        self.events.append(Cancel(job_id, began, time.monotonic_ns(), outcome))
        self.fleet.ended += outcome == "cancelled"


class Consumer(Client):
    def stopping(self):
        return self.fleet.stopped.is_set()

    def turn(self):
        careful = self.fleet.draining.is_set()
        lease_ms = self.fleet.drain_lease_ms if careful else self.random.choice((200, 500, 1500))
        most, wait_ms = self.random.choice((1, 5, 30)), self.random.choice((0, 50, 300))
        request = {"max": most, "wait_ms": wait_ms, "lease_ms": lease_ms}
        if not careful and self.random.random() < 0.02:
            return self.wire.abandon_reserve(**request)
        began = time.monotonic_ns()
        try:
            jobs = self.wire.reserve(**request)
        except Lost:
            return None
        ended, wall_ms = time.monotonic_ns(), now_ms()
        for job in jobs:
            intact = job.get("payload") == payload_of(job["id"])
            token, attempt, due_ms = job["token"], job["attempt"], job["due_ms"]
            self.events.append(Delivery(job["id"], began, ended, token, attempt, due_ms, wall_ms, lease_ms, intact))
        return self.settle(jobs, lease_ms, careful) if jobs else None

    def settle(self, jobs, lease_ms, careful):
        choice = 1.0 if careful else self.random.random()
        if choice < 0.08:
            return  # the lease runs out
        if choice < 0.12:
            return self.wire.close()  # dies between reserve and ack
        if choice < 0.22:
            delay_ms = self.random.choice((None, 0, 300))
            fields = {"reason": "torture"} if delay_ms is None else {"delay_ms": delay_ms}
            self.send_settle("nack", jobs, **fields)
        elif choice < 0.27:
            self.send_settle("ack", jobs[: (len(jobs) + 1) // 2])
        else:
            if choice < 0.30:
                self.fleet.stopped.wait(lease_ms / 1000)  # too late, or nearly
            self.send_settle("ack", jobs)

    def send_settle(self, kind, jobs, delay_ms=None, **fields):
        if delay_ms is not None:
            fields["delay_ms"] = delay_ms
        began, wall_ms = time.monotonic_ns(), now_ms()
        try:
            outcomes = self.wire.settle(kind, [job["token"] for job in jobs], **fields)
        except Lost:
            outcomes = [None for _ in jobs]
        ended = time.monotonic_ns()
        for job, outcome in zip(jobs, outcomes, strict=True):
            if outcome != "overloaded":
                self.events.append(Settle(job["id"], began, ended, outcome, kind, job["token"], wall_ms, delay_ms))
            self.fleet.ended += (kind, outcome) in (("ack", "ok"), ("ack", None), ("nack", "dead"))


class Fleet:
    """All clients of one run. `up` and `down` are told by whoever starts and kills the server."""

    delay_max_ms = DELAY_MAX_MS
    drain_lease_ms = DRAIN_LEASE_MS

    def __init__(self, server, seed, producers=PRODUCERS, consumers=CONSUMERS):
        self.server = server  # the first one: later ones have its ports
        self.errors = []
        self.draining = threading.Event()
        self.stopped = threading.Event()
        self.serving = threading.Event()
        # Roughly, and without a lock: they only bound how much is pending.
        self.stored = 0
        self.ended = 0
        draw = random.Random(seed)
        self.producers = [Producer(self, i, draw.random()) for i in range(producers)]
        self.clients = self.producers + [Consumer(self, i, draw.random()) for i in range(consumers)]

    def wire(self, number):
        """The connection of one client."""
        return (HttpWire, RespWire)[number % 2](self.server)

    def pending(self):
        return self.stored - self.ended

    def await_server(self):
        self.serving.wait(0.05)

    def start(self):
        self.serving.set()
        for client in self.clients:
            client.start()

    def stop_producing(self):
        """From here on consumers acknowledge all that they get."""
        self.draining.set()
        for client in self.producers:
            client.join(DEADLINE_S)

    def stop(self):
        self.draining.set()
        self.stopped.set()
        for client in self.clients:
            client.join(DEADLINE_S)
        assert not any(client.is_alive() for client in self.clients), "a client hangs"

    def events(self):
        return [event for client in self.clients for event in client.events]
