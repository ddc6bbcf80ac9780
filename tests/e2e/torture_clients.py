"""Producers and consumers that work through crashes of the server, misbehave now and then, and note what they saw.

Threads with a blocking client each. What they note goes to a list of their own, so that nothing slows the races down.
"""

import http.client
import json
import random
import threading
import time

from conftest import DEADLINE_S, now_ms
from histories import Cancel, Delivery, Settle, Submit, payload_of

PRODUCERS = 8
CONSUMERS = 8
TOPIC = "t"
PENDING_MAX = 1500  # jobs: enough for every kind of race, few enough to drain in seconds
DELAY_MAX_MS = 5000
SETTINGS = {"backoff_base_ms": 20, "backoff_max_ms": 200}
DRAIN_LEASE_MS = 20_000


class Refused(Exception):
    """Nothing was done: there was no connection, or the server said so."""


class Lost(Exception):
    """The connection was lost while a call was under way: it may have happened or not."""


class Wire:
    """One connection that is made again when it is lost."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)

    def call(self, method, path, body=None):
        self.connect()
        try:
            self.send(method, path, body)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Lost from error
        if answer.status == 503:
            raise Refused
        assert answer.status in (200, 201), f"{method} {path}: {answer.status} {text[:300]}"
        return json.loads(text)

    def abandon(self, method, path, body):
        """Sends a request and goes away without the answer."""
        self.connect()
        try:
            self.send(method, path, body)
        except (OSError, http.client.HTTPException):
            pass
        self.connection.close()

    def connect(self):
        if self.connection.sock is None:
            try:
                self.connection.connect()
            except OSError as error:
                self.connection.close()
                raise Refused from error

    def send(self, method, path, body):
        self.connection.request(method, f"/v1/topics/{TOPIC}{path}", None if body is None else json.dumps(body))

    def close(self):
        self.connection.close()


class Client(threading.Thread):
    """One thread of the fleet: `turn` is called until it is told to stop."""

    def __init__(self, fleet, number, seed):
        super().__init__(name=f"{type(self).__name__}-{number}", daemon=True)
        self.fleet = fleet
        self.number = number
        self.random = random.Random(seed)
        self.wire = Wire(fleet.port)
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
        jobs = [self.new_job() for _ in range(self.random.choice((1, 1, 2, 5, 20)))]
        while not self.submit(jobs):
            if self.random.random() < 0.05:
                return  # a producer that never learns what became of them
        if self.random.random() < 0.3:
            self.cancel(self.random.choice(jobs)["id"])

    def new_job(self):
        self.count += 1
        job_id = f"p{self.number}-{self.count}"
        delay_ms = self.random.choice((0, self.random.randrange(100), self.random.randrange(DELAY_MAX_MS)))
        max_attempts = self.random.choice((2, 16, 16, 16))
        return {"id": job_id, "payload": payload_of(job_id), "delay_ms": delay_ms, "max_attempts": max_attempts}

    def submit(self, jobs):
        """Whether the outcome is known; otherwise the same ids are submitted again."""
        began, wall_ms = time.monotonic_ns(), now_ms()
        try:
            answers = self.wire.call("POST", "/jobs", {"jobs": jobs} if len(jobs) > 1 else jobs[0])["jobs"]
        except Refused:
            self.fleet.await_server()
            return False
        except Lost:
            answers = [{"outcome": None} for _ in jobs]
        ended = time.monotonic_ns()
        for job, answer in zip(jobs, answers, strict=True):
            assert answer["outcome"] in ("accepted", "duplicate", None), answer
            self.events.append(
                Submit(job["id"], began, ended, answer["outcome"], wall_ms, job["delay_ms"], answer.get("due_ms"),
                       job["max_attempts"])
            )
        self.fleet.stored += sum(answer["outcome"] == "accepted" for answer in answers)
        return answers[0]["outcome"] is not None

    def cancel(self, job_id):
        began = time.monotonic_ns()
        try:
            outcome = self.wire.call("DELETE", f"/jobs/{job_id}")["outcome"]
        except Lost:
            outcome = None
        self.events.append(Cancel(job_id, began, time.monotonic_ns(), outcome))
        self.fleet.ended += outcome == "cancelled"


class Consumer(Client):
    def stopping(self):
        return self.fleet.stopped.is_set()

    def turn(self):
        careful = self.fleet.draining.is_set()
        lease_ms = DRAIN_LEASE_MS if careful else self.random.choice((200, 500, 1500))
        most, wait_ms = self.random.choice((1, 5, 30)), self.random.choice((0, 50, 300))
        request = {"max": most, "wait_ms": wait_ms, "lease_ms": lease_ms}
        if not careful and self.random.random() < 0.02:
            return self.wire.abandon("POST", "/reserve", request)
        began = time.monotonic_ns()
        try:
            jobs = self.wire.call("POST", "/reserve", request)["jobs"]
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
            body = {"reason": "torture"} if delay_ms is None else {"delay_ms": delay_ms}
            self.send_settle("nack", jobs, body, delay_ms)
        elif choice < 0.27:
            self.send_settle("ack", jobs[: (len(jobs) + 1) // 2])
        else:
            if choice < 0.30:
                self.fleet.stopped.wait(lease_ms / 1000)  # too late, or nearly
            self.send_settle("ack", jobs)

    def send_settle(self, kind, jobs, extra=None, delay_ms=None):
        body = {"tokens": [job["token"] for job in jobs], **(extra or {})}
        began, wall_ms = time.monotonic_ns(), now_ms()
        try:
            results = self.wire.call("POST", f"/{kind}", body)["results"]
        except Lost:
            results = [{"token": job["token"], "outcome": None} for job in jobs]
        ended = time.monotonic_ns()
        for job, result in zip(jobs, results, strict=True):
            token, outcome = result["token"], result["outcome"]
            assert token == job["token"], (job, result)
            if outcome != "overloaded":
                self.events.append(Settle(job["id"], began, ended, outcome, kind, token, wall_ms, delay_ms))
            self.fleet.ended += (kind, outcome) in (("ack", "ok"), ("ack", None), ("nack", "dead"))


class Fleet:
    """All clients of one run. `up` and `down` are told by whoever starts and kills the server."""

    def __init__(self, port, seed):
        self.port = port
        self.errors = []
        self.draining = threading.Event()
        self.stopped = threading.Event()
        self.serving = threading.Event()
        # Roughly, and without a lock: they only bound how much is pending.
        self.stored = 0
        self.ended = 0
        draw = random.Random(seed)
        self.clients = [Producer(self, i, draw.random()) for i in range(PRODUCERS)]
        self.clients += [Consumer(self, i, draw.random()) for i in range(CONSUMERS)]

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
        for client in self.clients[:PRODUCERS]:
            client.join(DEADLINE_S)

    def stop(self):
        self.draining.set()
        self.stopped.set()
        for client in self.clients:
            client.join(DEADLINE_S)
        assert not any(client.is_alive() for client in self.clients), "a client hangs"

    def events(self):
        return [event for client in self.clients for event in client.events]
