"""Runs one cell: a fresh server, the load, what /proc says of both, and for a backlog the idle CPU and the recovery."""

import json
import shutil
import subprocess
import time

import machine
import procs
import provision
import push
import servers
import subjects

IDLE_S = 8
SETTLE_S = 2


class RunError(Exception):
    """A run without figures; the text says why."""


def load_arguments(cell, subject, address):
    words = ["run", "--driver", subject.driver, "--workload", cell.workload, "--address", address,
             "--time-limit", str(cell.limit_s)]
    if subject.consumers and cell.arguments.get("mode") != "single":
        words += ["--consumers", str(subject.consumers)]
    if subject.client == "go":
        words += ["--connections", "50"]
    for name, value in cell.arguments.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def run_load(command, environment, limit_s):
    """The JSON object that a load generator prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise RunError(f"the load did not end within {limit_s} s") from None
    if done.returncode != 0:
        # The lines before the last are progress.
        raise RunError((done.stderr.strip().splitlines() or [f"the load ended with {done.returncode}"])[-1][-200:])
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise RunError(f"the load printed no JSON: {done.stdout[-200:]!r}") from None


def measure(server):
    """Each program of a server."""
    return {name: procs.measure(pid) for name, pid in server.processes().items()}


def used(before, after):
    """What a server used between two measurements: all its programs together and, if there are several, each of them."""
    parts = {}
    for name, then in before.items():
        now = after[name]
        parts[name] = {
            "cpu_cores": (now["cpu_s"] - then["cpu_s"]) / (now["at"] - then["at"]),
            "memory_before_bytes": then["memory_bytes"],
            "memory_after_bytes": now["memory_bytes"],
            "written_bytes": now["written_bytes"] - then["written_bytes"],
        }
    first, *others = parts.values()
    together = {key: value + sum(part[key] for part in others) for key, value in first.items()}
    return {**together, "parts": parts} if others else together


def _idle(server):
    time.sleep(SETTLE_S)
    before = measure(server)
    time.sleep(IDLE_S)
    return used(before, measure(server))


def _recover(server):
    """Seconds from the start of the program until it would answer a reserve, after kill -9."""
    server.kill()
    begun = time.monotonic()
    server.start(servers.RECOVER_S)
    return time.monotonic() - begun


def run_cell(cell, folder):
    """The record of a run: figures of the load, figures of the server."""
    subject = subjects.BY_NAME[cell.subject]
    program, environment = provision.client_command(subject)
    server = subject.make(folder / f"{cell.subject}-{cell.key}-{cell.repeat}")
    try:
        server.start()
        command = program + load_arguments(cell, subject, server.addresses()[subject.door])
        before, stolen = measure(server), machine.Stolen()
        figures = run_load(command, environment, cell.limit_s + 10)
        measured = {**used(before, measure(server)), "stolen": stolen.share()}
        if subject.pushes:
            figures.update(push.findings(server, figures["jobs"], cell.arguments.get("jobs", 0)))
            if figures.get("problem"):
                raise RunError(figures["problem"])
        if cell.workload == "backlog":
            if subject.ours:
                idle = _idle(server)
                measured["idle_cores"] = idle["cpu_cores"]
                for name, part in measured.get("parts", {}).items():
                    part["idle_cores"] = idle["parts"][name]["cpu_cores"]
            if subject.durability != "none":
                measured["recovery_s"] = _recover(server)
        return {"figures": figures, "server": measured}
    except procs.StartError as error:
        raise RunError(f"the server did not start: {error}") from None
    finally:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)


def run_limits(folder, seconds, lives):
    """What the disk and the loopback allow, and what a server with nothing but frames, appends and syncs would do."""
    return run_load([str(provision.LOAD_BENCH), "limits", "--folder", str(folder), "--seconds", str(seconds), "--jobs", str(lives)],
                    None, 300)
