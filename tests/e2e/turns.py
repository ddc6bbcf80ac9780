"""The longest turn of a shard under each load. A turn is one handler on a shard's thread (docs/metrics.md).

A test with the mark turns("its name") is a load. When it ends, the figures of its servers are read; the summary of the run
has a table of them.
"""

import re

import httpx
import pytest

# Of CPU time, so that what else the machine does counts for little. The doors have their turns of 1 ms; the longest are
# those of one large call. What was mended took a hundred times as long.
CPU_MAX_S = 0.1
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


def note(item, servers):
    """Adds a row for a test that is a load, and checks its longest turn."""
    mark = item.get_closest_marker("turns")
    running = [server for server in servers if server.process.poll() is None]
    if mark is None or not running:
        return
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    load = ", ".join([mark.args[0], *(f"{value} shards" if name == "shards" else value for name, value in parameters.items())])
    for figures in map(read, running):
        item.config.stash.setdefault(ROWS, []).append((load, figures))
        assert figures["cpu"] <= CPU_MAX_S, f"a turn took {figures['cpu']} s of CPU time"


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
