"""A witness of the machine: on each core a process that does nothing but look at the clock every millisecond.

  with stalls.Witness() as witness:
      ...
  witness.longest_ms     how long all cores at most stood still at the same time
  witness.one_core_ms    how long one of them did

If the machine (or the host of a virtual one) stops for a while, so does every program on it: what is late then says nothing of the
program. The processes run before all others where that is allowed, so that a busy machine alone is not taken for one that stands still.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

LOOK_S = 0.001
STALL_S = 0.003  # a gap from here on is kept
STOP_S = 20


class Witness:
    def __enter__(self):
        command = [sys.executable, pathlib.Path(__file__).resolve()]
        self.processes = []
        for core in sorted(os.sched_getaffinity(0)):
            self.processes.append(subprocess.Popen([*command, str(core)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for process in self.processes:
            process.stdout.readline()  # it looks
        return self

    def __exit__(self, *_):
        gaps = [json.loads(process.communicate(timeout=STOP_S)[0]) for process in self.processes]
        self.longest_ms = longest(common(gaps)) * 1000
        self.one_core_ms = max(map(longest, gaps)) * 1000


def longest(gaps):
    return max((end - begin for begin, end in gaps), default=0)


def common(gaps_of_cores):
    """What lies in a gap of every core; the gaps of each are sorted and apart."""
    first, *others = gaps_of_cores
    for gaps in others:
        both = [(max(one[0], other[0]), min(one[1], other[1])) for one in first for other in gaps]
        first = [(begin, end) for begin, end in both if begin < end]
    return first


def watch(core):
    """Until the input ends; the gaps between looks, as times of the monotonic clock."""
    os.sched_setaffinity(0, {core})
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    os.set_blocking(sys.stdin.fileno(), False)
    print("looking", flush=True)
    gaps, last = [], time.monotonic()
    while True:
        time.sleep(LOOK_S)
        now = time.monotonic()
        if now - last > LOOK_S + STALL_S:
            gaps.append((last + LOOK_S, now))
        last = now
        with contextlib.suppress(BlockingIOError):
            if not os.read(sys.stdin.fileno(), 1):
                return gaps


if __name__ == "__main__":
    print(json.dumps(watch(int(sys.argv[1]))))
