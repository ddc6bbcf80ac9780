"""kill -9 while producers and consumers work, and a checker over what the clients themselves saw."""

import os
import random
import threading
import time

import httpx
import pytest

from conftest import DEADLINE_S, Server, now_ms, reserve, submit

PRODUCERS = 4
CONSUMERS = 4


def test_what_was_acknowledged_survives_kill_9(start, client):
    server = start()
    jobs = [submit(client, server, payload=str(i), delay_ms=random.randrange(1500)) for i in range(200)]
    server.kill()
    again = start()
    due = {job["id"]: job["due_ms"] for job in jobs}
    seen = {}
    while len(seen) < len(jobs):
        for job in reserve(client, again, max=50, wait_ms=20000):
            assert now_ms() >= job["due_ms"], "early"
            assert job["due_ms"] == due[job["id"]]
            assert job["attempt"] == 1, "a crash before the delivery costs no attempt"
            seen[job["id"]] = job
        assert seen


class History:
    """What the clients know for certain, and what they do not. One lock: clients are slow."""

    def __init__(self):
        self.lock = threading.Condition()  # notified when something was settled
        self.accepted = {}  # id -> due_ms as answered
        self.unknown = set()  # ids whose submit had no answer
        self.delivered = {}  # id -> payloads seen
        self.acked = set()
        self.ack_unknown = set()
        self.after_ack = []
        self.early = []


class Clients:
    """Producers and consumers that work through crashes until they are told to stop."""

    def __init__(self, seed):
        self.history = History()
        self.random = random.Random(seed)
        self.url = None
        self.producing = threading.Event()
        self.consuming = threading.Event()
        self.errors = []
        self.threads = [threading.Thread(target=self.guard, args=(self.produce, i)) for i in range(PRODUCERS)]
        self.threads += [threading.Thread(target=self.guard, args=(self.consume, i)) for i in range(CONSUMERS)]

    def guard(self, work, number):
        try:
            with httpx.Client(timeout=DEADLINE_S) as client:
                work(client, number)
        except Exception as error:  # a bug of the test, or an answer that must not be
            self.errors.append(repr(error))
            raise

    def start(self, url):
        self.url = url
        self.producing.set()
        self.consuming.set()
        for thread in self.threads:
            thread.start()

    def post(self, client, path, body):
        """The answer, or None where the connection was lost: then the outcome is unknown."""
        try:
            answer = client.post(f"{self.url}/v1/topics/t/{path}", json=body)
        except httpx.TransportError:
            return None
        if answer.status_code == 503:
            return None
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def produce(self, client, number):
        draw = random.Random(self.random.random())
        count = 0
        while self.producing.is_set():
            jobs = []
            for _ in range(draw.randrange(1, 20)):
                job_id = f"{number}-{count}"
                count += 1
                jobs.append({"id": job_id, "payload": job_id, "delay_ms": draw.randrange(0, 1500)})
            answer = self.post(client, "jobs", {"jobs": jobs})
            with self.history.lock:
                if answer is None:
                    self.history.unknown |= {job["id"] for job in jobs}
                    continue
                for job in answer["jobs"]:
                    assert job["outcome"] == "accepted", job
                    self.history.accepted[job["id"]] = job["due_ms"]

    def consume(self, client, number):
        while self.consuming.is_set():
            answer = self.post(client, "reserve", {"max": 20, "wait_ms": 500, "lease_ms": 5000})
            if not answer or not answer["jobs"]:
                continue
            at = now_ms()
            with self.history.lock:
                for job in answer["jobs"]:
                    self.history.delivered.setdefault(job["id"], []).append(job["payload"])
                    if at < job["due_ms"]:
                        self.history.early.append(job["id"])
                    if job["id"] in self.history.acked:
                        self.history.after_ack.append(job["id"])
            self.settle(client, answer["jobs"])

    def settle(self, client, jobs):
        settled = self.post(client, "ack", {"tokens": [job["token"] for job in jobs]})
        with self.history.lock:
            for job, result in zip(jobs, settled["results"] if settled else [None] * len(jobs)):
                if result is None:
                    self.history.ack_unknown.add(job["id"])
                elif result["outcome"] == "ok":
                    self.history.acked.add(job["id"])
            self.history.lock.notify_all()

    def drain(self):
        """No more jobs; until every accepted one is acked for certain, or its ack has an unknown outcome."""
        self.producing.clear()
        with self.history.lock:
            self.history.lock.wait_for(lambda: self.errors or not unsettled(self.history), DEADLINE_S)
        self.consuming.clear()
        for thread in self.threads:
            thread.join(DEADLINE_S)


def unsettled(history):
    return history.accepted.keys() - history.acked - history.ack_unknown


def check(history):
    lost = unsettled(history)
    phantoms = history.delivered.keys() - history.accepted.keys() - history.unknown
    wrong = [job_id for job_id, payloads in history.delivered.items() if set(payloads) != {job_id}]
    print(
        f"accepted {len(history.accepted)}, delivered {len(history.delivered)}, acked {len(history.acked)}, "
        f"lost {len(lost)}, early {len(history.early)}, after ack {len(history.after_ack)}, phantoms {len(phantoms)}"
    )
    assert not lost, f"lost: {sorted(lost)[:10]}"
    assert not history.early, f"early: {history.early[:10]}"
    assert not history.after_ack, f"delivered after an accepted ack: {history.after_ack[:10]}"
    assert not phantoms, f"never submitted: {sorted(phantoms)[:10]}"
    assert not wrong, f"another payload: {wrong[:10]}"


def kill_loop(folder, segment_size, cycles, until=float("inf")):
    seed = int(os.environ.get("TOCSIN_TORTURE_SEED", random.randrange(1 << 32)))
    print(f"\nseed {seed}: TOCSIN_TORTURE_SEED={seed} repeats the choices")
    clients = Clients(seed)
    flags = ["--journal-segment-size", segment_size, "--limits-payload-size", "64KiB"]
    server = Server(folder, *flags)
    clients.start(server.url)
    done = 0
    try:
        while done < cycles and time.monotonic() < until and not clients.errors:
            # The server lives for a while: this is the fault, not a wait for something to happen.
            threading.Event().wait(clients.random.uniform(0.02, 1.5))
            server.kill()
            server = Server(folder, *flags, listen=f"127.0.0.1:{server.port}")
            done += 1
    finally:
        clients.drain()
    assert not clients.errors, clients.errors
    print(f"{done} cycles")
    check(clients.history)
    assert clients.history.accepted
    assert server.stop() == 0, "".join(server.errors)


# Small segments make kills fall on the change from one to the next, large ones on the making of a new one.
@pytest.mark.parametrize("segment_size", ["4MiB", "64MiB"])
def test_ten_kills_lose_nothing(tmp_path, segment_size):
    kill_loop(tmp_path / "data", segment_size, 10)


@pytest.mark.torture
@pytest.mark.parametrize("segment_size", ["4MiB", "64MiB"])
def test_many_kills_lose_nothing(tmp_path, segment_size):
    cycles = int(os.environ.get("TOCSIN_TORTURE_CYCLES", 1000))
    minutes = float(os.environ.get("TORTURE_MINUTES", 10))
    kill_loop(tmp_path / "data", segment_size, cycles, time.monotonic() + 60 * minutes)
