"""kill -9 while producers and consumers work, also while the server starts, and a checker over what the clients saw."""

import os
import random
import subprocess
import time

import histories
import httpx
import pytest
from conftest import BIN, DEADLINE_S, ENVIRONMENT, Server, now_ms, reserve, submit
from programs import LOOPBACK, hold, wait_for
from torture_clients import SETTINGS, Fleet
from torture_wires import TOPIC

LIFE_S = (0.02, 1.5)
START_S = (0.0, 0.05)  # of a start that is killed


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


class Torture:
    """One folder, two ports, and the lives and deaths of the servers on it."""

    clock_is_set = False

    def __init__(self, folder, flags, seed, place=LOOPBACK):
        self.folder = folder
        self.flags = ["--limits-payload-size", "64KiB", *flags]
        self.place = place
        self.random = random.Random(seed)
        self.kills = []
        self.cycles = self.killed_starts = self.balances = 0
        self.server = Server(folder, *self.flags, place=place)
        self.listen = {
            "listen": f"127.0.0.1:{self.server.port}",
            "resp_listen": f"127.0.0.1:{self.server.resp_port}",
        }
        self.client = httpx.Client(timeout=DEADLINE_S, base_url=self.server.url)
        answer = self.client.put(f"/v1/topics/{TOPIC}", json=SETTINGS)
        assert answer.status_code == 201, answer.text
        self.fleet = Fleet(self.server, self.random.random())

    def wait(self, bounds):
        hold(self.random.uniform(*bounds))

    def kill(self, process):
        self.fleet.serving.clear()
        began = time.monotonic_ns()
        process.kill()
        process.wait(DEADLINE_S)
        self.kills.append(histories.Kill(began, time.monotonic_ns()))

    def kill_a_start(self):
        process = subprocess.Popen(
            [*self.place.prefix, BIN / "tocsind", "--data-dir", self.folder, "--http-listen", self.listen["listen"],
             "--resp-listen", self.listen["resp_listen"], *self.flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
        )
        self.wait(START_S)
        self.kill(process)
        self.killed_starts += 1

    def check_balance(self):
        """What came in is what is there or has gone, to the job, while all of it moves."""
        stats = self.client.get("/v1/stats").json()
        assert stats["conservation"]["difference"] == 0, stats
        self.balances += 1

    def cycle(self):
        self.wait(LIFE_S)
        if self.random.random() < 0.5:
            self.check_balance()
        self.kill(self.server.process)
        while self.random.random() < 0.4:
            self.kill_a_start()
        self.server = Server(self.folder, *self.flags, **self.listen, place=self.place)
        self.fleet.serving.set()
        self.cycles += 1

    def drain(self):
        """Until nothing is scheduled and nothing leased; what is then dead."""
        self.fleet.stop_producing()
        left = {}

        def drained():
            if not self.fleet.errors:
                left.update(self.client.get(f"/v1/topics/{TOPIC}").json()["figures"])
            return self.fleet.errors or left["scheduled"] + left["leased"] == 0

        wait_for(drained, 2 * DEADLINE_S, lambda: f"the end of all jobs, {left},", between_s=0.05)
        self.fleet.stop()
        self.check_balance()
        return self.list_dead()

    def list_dead(self):
        dead, cursor = {}, None
        while True:
            params = {"state": "dead", "limit": 500, **({"cursor": cursor} if cursor else {})}
            page = self.client.get(f"/v1/topics/{TOPIC}/jobs", params=params).json()
            dead |= {job["id"]: job["attempt"] for job in page["jobs"]}
            cursor = page.get("cursor")
            if cursor is None:
                return dead

    def run(self, cycles, until):
        dead = {}
        try:
            self.fleet.start()
            while self.cycles < cycles and time.monotonic() < until and not self.fleet.errors:
                self.cycle()
            dead = self.drain()
        finally:
            self.fleet.stop()
        assert not self.fleet.errors, self.fleet.errors
        self.client.close()
        assert self.server.stop() == 0, "".join(self.server.errors)
        return histories.History(self.fleet.events(), self.kills, dead, self.clock_is_set)


def draw_seed():
    seed = int(os.environ.get("TOCSIN_TORTURE_SEED", random.randrange(1 << 32)))
    print(f"\nseed {seed}: TOCSIN_TORTURE_SEED={seed} repeats the choices")
    return seed


def torture(one, cycles, until=float("inf")):
    history = one.run(cycles, until)
    faults = histories.check(history)
    figures = histories.figures(history)
    print(f"{one.cycles} cycles, {one.killed_starts} starts killed, {one.balances} balances of figures even; {figures}")
    print(f"faults: {len(faults)}")
    assert not faults, "\n".join(map(str, faults[:20]))
    assert figures["submit accepted"] > 0 and figures["ack ok"] > 0


# Small segments make kills fall on the change from one to the next, large ones on the making of a new one; two shards
# let calls be in the middle of several threads.
SETUPS = pytest.mark.parametrize(
    "flags",
    [["--journal-segment-size", "4MiB", "--shards", "2"], ["--journal-segment-size", "64MiB", "--shards", "1"]],
    ids=["4MiB-2-shards", "64MiB-1-shard"],
)


@SETUPS
def test_ten_kills_lose_nothing(tmp_path, flags):
    torture(Torture(tmp_path / "data", flags, draw_seed()), 10)


@pytest.mark.torture
@SETUPS
def test_many_kills_lose_nothing(tmp_path, flags):
    cycles = int(os.environ.get("TOCSIN_TORTURE_CYCLES", 200))
    minutes = float(os.environ.get("TORTURE_MINUTES", 10))
    torture(Torture(tmp_path / "data", flags, draw_seed()), cycles, time.monotonic() + 60 * minutes)
