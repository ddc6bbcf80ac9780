"""kill -9 and other faults at a time (torture_faults.py): what was acknowledged is not lost, nothing is early."""

import os
import random
import time

import httpx
import pytest

from programs import Place, wait_for
from test_crash import Torture, draw_seed, torture
from torture_faults import FAULTS, ClockSteps, Crowd, FullDisk, Resets, Topics


class FaultyTorture(Torture):
    def __init__(self, folder, kinds, disk=None):
        seed = draw_seed()
        draw = random.Random(seed)
        self.faults = [kind(folder, draw.random()) for kind in kinds]
        self.clock_is_set = ClockSteps in kinds
        place = Place(prefix=[word for fault in self.faults for word in fault.prefix])
        flags = ["--journal-segment-size", "4MiB", "--shards", "2", *(flag for fault in self.faults for flag in fault.flags)]
        super().__init__((disk or folder) / "data", flags, seed, place)

    def run(self, cycles, until):
        for fault in self.faults:
            fault.begin(self.server)
        try:
            return super().run(cycles, until)
        finally:
            for fault in self.faults:
                fault.stopped.set()

    def check_balance(self):
        try:
            super().check_balance()
        except (httpx.TransportError, KeyError):  # a crowd may have all connections
            assert any(isinstance(fault, Crowd) and not fault.stopped.is_set() for fault in self.faults)

    def drain(self):
        wait_for(lambda: all(fault.goes or fault.error for fault in self.faults), what="one go of each fault")
        for fault in self.faults:
            fault.end()
        print("goes:", {type(fault).__name__: fault.goes for fault in self.faults})
        wait_for(self.is_served, what="a connection after the crowd has gone")
        return super().drain()

    def is_served(self):
        try:
            return self.client.get("/v1/stats").status_code == 200
        except httpx.TransportError:
            return False


def test_a_few_kills_among_other_faults_lose_nothing(tmp_path):
    torture(FaultyTorture(tmp_path, [ClockSteps, Crowd, Topics, Resets]), 4)


@pytest.mark.torture
@pytest.mark.parametrize("kinds", FAULTS.values(), ids=FAULTS)
def test_many_kills_among_other_faults_lose_nothing(request, tmp_path, kinds):
    disk = request.getfixturevalue("small_disk") if FullDisk in kinds else None
    cycles = max(1, int(os.environ.get("TOCSIN_TORTURE_CYCLES", 200)) // 8)
    minutes = float(os.environ.get("TORTURE_MINUTES", 10))
    torture(FaultyTorture(tmp_path, kinds, disk), cycles, time.monotonic() + 60 * minutes)
