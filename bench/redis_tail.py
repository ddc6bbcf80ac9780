#!/usr/bin/python3
"""What makes jobs on Redis late: the steady load through Tocsin and through the bare recipe in turn, and what each process waited for.

  bench/redis_tail.py [--bin build/release/bin] [--rate 20000] [--seconds 20] [--runs 5] [--sync everysec]

For each run: lateness as a client sees it; the longest command and the longest write to the append-only file that Redis' own latency monitor
saw; how long the busiest thread of each process ran, and how long it waited for a processor; how long the machine stood still, which
processes on each core saw that only look at the clock (stalls.py). If Redis or tocsind waits for a processor, the machine is too small or
not quiet, and the lateness says nothing about either; nor does it if the machine stood still as long.
"""

import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request

import procs
import servers
import stalls

SLOW_MS = 2  # what Redis' latency monitor notes
ASK_S = 10


def busiest(pid):
    """Seconds on a processor and seconds of waiting for one, of the thread that ran longest."""
    spans = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        ran, waited, _ = map(int, (task / "schedstat").read_text().split())
        spans.append((ran / 1e9, waited / 1e9))
    return max(spans)


def longest(port):
    """Event -> ms, of Redis' latency monitor."""
    events = re.findall(rb"\$\d+\r\n([\w-]+)\r\n:\d+\r\n:\d+\r\n:(\d+)", procs.ask(port, b"LATENCY LATEST\r\n", ASK_S))
    return {name.decode(): int(most) for name, most in events}


def longest_turn_ms(address):
    text = urllib.request.urlopen(f"http://{address}/metrics").read().decode()
    return max(float(one) for one in re.findall(r"^tocsin_shard_turn_seconds_max\{.*\} (\S+)", text, re.M)) * 1000


def run(args, ours, folder):
    programs = pathlib.Path(args.bin).resolve()
    server = servers.TocsinOnRedis(folder, programs, args.sync, 1) if ours else servers.Redis(folder, args.sync)
    server.start()
    try:
        redis = server.redis if ours else server
        procs.ask(redis.port, f"CONFIG SET latency-monitor-threshold {SLOW_MS}\r\n".encode(), ASK_S)
        address = server.addresses()["resp"] if ours else f"127.0.0.1:{redis.port}"
        pids = {"redis": redis.process.pid, **({"tocsind": server.nodes[0].process.pid} if ours else {})}
        before = {name: busiest(pid) for name, pid in pids.items()}
        command = [programs / "load_bench", "run", "--driver", "tocsin-resp" if ours else "redis-slot", "--workload", "steady", "--rate",
                   args.rate, "--seconds", args.seconds, "--jobs", args.rate * args.seconds, "--address", address]
        with stalls.Witness() as witness:
            done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        found = json.loads(done.stdout)
        found["stood_still_ms"] = (witness.longest_ms, witness.one_core_ms)
        events = longest(redis.port)
        found["longest_ms"] = {"command": events.get("command", 0), "aof write": events.get("aof-write", 0)}
        if ours:
            found["longest_ms"]["turn of tocsind"] = longest_turn_ms(server.addresses()["http"])
        found["threads"] = {name: tuple(now - then for now, then in zip(busiest(pid), before[name])) for name, pid in pids.items()}
        return found
    finally:
        server.stop()


def show(name, found):
    late = found["lateness_ms"]
    held = "" if found["held"] else "; the rate was not held"
    print(f"{name:>8}  late p50 {late['p50']:.1f}, p99 {late['p99']:.1f}, p99.9 {late['p999']:.1f}, max {late['max']:.1f} ms{held}")
    print(" " * 10 + "longest: " + ", ".join(f"{what} {ms:.0f} ms" for what, ms in found["longest_ms"].items()))
    print(" " * 10 + "the machine stood still {:.1f} ms, one core {:.1f} ms".format(*found["stood_still_ms"]))
    for process, (ran, waited) in found["threads"].items():
        print(" " * 10 + f"{process}: ran {ran:.2f} s, waited for a processor {waited:.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sync", choices=["everysec", "always"], default="everysec")
    args = parser.parse_args()
    found = {"tocsin": [], "recipe": []}
    for _ in range(args.runs):
        for name, runs in found.items():
            folder = pathlib.Path(tempfile.mkdtemp(prefix="tocsin-tail-"))
            try:
                runs.append(run(args, name == "tocsin", folder / "data"))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            show(name, runs[-1])
    for name, runs in found.items():
        every = sorted(one["lateness_ms"]["p99"] for one in runs)
        print(f"{name}: p99 {statistics.median(every):.1f} ms ({every[0]:.1f} to {every[-1]:.1f}), median of {len(every)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
