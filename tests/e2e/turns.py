"""The longest turn of a shard under each load. A turn is one handler on a shard's thread (docs/metrics.md).

A test with the mark turns("its name") is a load. When it ends, the figures of its servers are read; the summary of the run
has a table of them. No turn may take more than 5 ms of CPU time: what else the machine does counts for little. It does make
a turn longer now and then, so a load may run again, and the try with the fewest long turns counts. turns("its name",
long_turns=n, cpu_max_s=s) is for a load that cannot hold this: n turns may be longer, and none of any try longer than s.
"""

import re

import httpx
import pytest

TRIES = 3
CPU_MAX_S = 0.02  # also of a try that is run again
FIGURES = {
    "longest": (max, "tocsin_shard_turn_seconds_max{"),
    "cpu": (max, "tocsin_shard_turn_cpu_seconds_max{"),
    "computed": (sum, 'tocsin_shard_long_turns_total{.*cause="cpu"'),
    "waited": (sum, 'tocsin_shard_long_turns_total{.*cause="wait"'),
}
ROWS = pytest.StashKey()


def read(server):
    text = httpx.get(server.url + "/metrics", timeout=60).text
    found = {}
    for name, (total, series) in FIGURES.items():
        pattern = re.compile(series.replace("{", "\\{") + r"[^}]*\} (\S+)$", re.MULTILINE)
        found[name] = total(float(value) for value in pattern.findall(text))
    return found


def until_short(server, load):
    """Runs the load again if one of its turns was long. The best try counts."""
    tries = []
    while len(tries) < TRIES and (not tries or tries[-1] > 0):
        before = read(server)["computed"]
        load()
        tries.append(read(server)["computed"] - before)
    server.long_turns = min(tries)
    assert server.long_turns == 0, f"turns over 5 ms of CPU time, in each try: {tries}"


def note(item, servers):
    """Adds a row for a test that is a load, and checks its longest turn."""
    load_mark = item.get_closest_marker("turns")
    running = [server for server in servers if server.process.poll() is None]
    if load_mark is None or not running:
        return
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    shown = [f"{value} shards" if name == "shards" else name if value is True else value
             for name, value in parameters.items() if value is not False]
    load = ", ".join([load_mark.args[0], *shown])
    for server in running:
        figures = read(server)
        item.config.stash.setdefault(ROWS, []).append((load, figures))
        long_turns = getattr(server, "long_turns", figures["computed"])
        assert long_turns <= load_mark.kwargs.get("long_turns", 0), f"{long_turns} turns took over 5 ms of CPU time: {figures}"
        assert figures["cpu"] <= load_mark.kwargs.get("cpu_max_s", CPU_MAX_S), f"a turn took {figures['cpu']} s of CPU time"


def report(terminal):
    rows = terminal.config.stash.get(ROWS, [])
    if not rows:
        return
    terminal.section("longest turns of a shard")
    terminal.write_line("| load | longest turn | longest CPU time | over 5 ms: computed | waited |")
    terminal.write_line("|---|---|---|---|---|")
    for load, figures in rows:
        cpu = f"{figures['cpu'] * 1000:.1f} ms" if figures["cpu"] else "under 5 ms"
        terminal.write_line(
            f"| {load} | {figures['longest'] * 1000:.1f} ms | {cpu} | {figures['computed']:.0f} | {figures['waited']:.0f} |"
        )
