"""The wall clock of the machine is set while the server runs and while it is down; its other clocks go on.

A small library (wall_shift.c) shifts the server's CLOCK_REALTIME alone. The clients' clock is right all the time.
"""

import mmap
import struct
import subprocess
import time

import pytest
from conftest import ack, now_ms, reserve, submit
from programs import Place, wait_for

HOUR_MS = 3_600_000
WAIT_MS = 20_000


class WallClock:
    """What the server takes for the machine's wall clock: the right one, and `shift_ms`."""

    def __init__(self, folder):
        library, file = folder / "wall_shift.so", folder / "wall_shift"
        source = __file__.replace("test_clock.py", "wall_shift.c")
        subprocess.run(["clang-19", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
        file.write_bytes(bytes(8))
        self.open_file = open(file, "r+b")
        self.shared = mmap.mmap(self.open_file.fileno(), 8)
        self.place = Place(prefix=["env", f"LD_PRELOAD={library}", f"WALL_SHIFT_FILE={file}"])

    def set(self, shift_ms):
        self.shared[:8] = struct.pack("<q", shift_ms)


@pytest.fixture
def wall(tmp_path):
    return WallClock(tmp_path)


def await_ready(client, server, jobs):
    wait_for(lambda: client.get(server.topic("t")).json()["figures"]["ready"] == jobs, what=f"{jobs} ready jobs")


def server_ahead_ms(client, server):
    return client.get(server.url + "/v1/stats").json()["now_ms"] - now_ms()


def take_all(client, server, due):
    """Reserves all jobs of `due`, {id: earliest}, and checks that each came once and none before its time."""
    left = dict(due)
    while left:
        jobs = reserve(client, server, max=10, wait_ms=WAIT_MS)
        assert jobs, f"{left.keys()} did not come"
        for job in jobs:
            assert now_ms() >= left.pop(job["id"]), f"{job['id']} is early"
        ack(client, server, *jobs)


def test_a_glitch_of_the_clock_that_is_corrected_fires_nothing_early(start, client, wall):
    server = start(place=wall.place)
    begin = now_ms()
    due = {"before": begin + 7000, "after": begin + 6500, "delay": begin + 6000}
    submit(client, server, id="before", due_ms=due["before"])
    submit(client, server, id="delay", delay_ms=6000)
    wall.set(HOUR_MS)
    await_ready(client, server, 1)
    wall.set(0)
    submit(client, server, id="after", due_ms=due["after"])
    assert abs(server_ahead_ms(client, server)) < HOUR_MS / 2
    take_all(client, server, due)


def test_a_glitch_of_the_clock_leaves_no_trace_across_a_restart(start, client, wall):
    server = start(place=wall.place)
    begin = now_ms()
    due = {"absolute": begin + 8000, "delay": begin + 6000}
    submit(client, server, id="absolute", due_ms=due["absolute"])
    submit(client, server, id="delay", delay_ms=6000)
    wall.set(HOUR_MS)
    await_ready(client, server, 1)
    wall.set(0)
    assert server.stop() == 0
    again = start(place=wall.place)
    assert abs(server_ahead_ms(client, again)) < HOUR_MS / 2
    take_all(client, again, due)


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
def test_a_clock_that_is_set_while_the_server_is_down_leaves_delays_alone(start, client, wall, step_ms):
    server = start(place=wall.place)
    due = now_ms() + 6000
    submit(client, server, id="delay", delay_ms=6000)
    server.kill()
    wall.set(step_ms)
    again = start(place=wall.place)
    take_all(client, again, {"delay": due})


@pytest.mark.parametrize("glitch_ms", [HOUR_MS, -HOUR_MS])
def test_a_glitch_and_a_restart_do_not_make_a_delay_late(start, client, wall, glitch_ms):
    server = start(place=wall.place)
    submit(client, server, id="delay", delay_ms=2000)
    over = time.monotonic() + 2.1
    wall.set(glitch_ms)
    submit(client, server, id="seen", delay_ms=HOUR_MS)  # a record of the wrong time
    assert server.stop() == 0
    wall.set(0)
    wait_for(lambda: time.monotonic() > over, what="the end of the downtime")
    again = start(place=wall.place)
    assert [job["id"] for job in reserve(client, again, max=10)] == ["delay"]


def test_a_clock_that_is_set_back_makes_due_times_wait_and_delays_not(start, client, wall):
    server = start(place=wall.place)
    begin = now_ms()
    submit(client, server, id="absolute", due_ms=begin + 1000)
    submit(client, server, id="delay", delay_ms=1000)
    wall.set(-HOUR_MS)
    [job] = reserve(client, server, max=10, wait_ms=WAIT_MS)
    assert job["id"] == "delay"
    assert now_ms() >= begin + 1000
    ack(client, server, job)
    wall.set(0)
    take_all(client, server, {"absolute": begin + 1000})
