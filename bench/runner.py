"""Runs one cell: a fresh server, the load, what /proc says of both, and for a backlog the idle CPU and the recovery."""

import json
import shutil
import subprocess
import time

import machine
import procs
import provision
import servers
import subjects

IDLE_S = 8
SETTLE_S = 2


class RunError(Exception):
    """A run without figures; the text says why."""


def load_arguments(cell, subject, address):
    words = ["run", "--driver", subject.driver, "--workload", cell.workload, "--address", address,
             "--time-limit", str(cell.limit_s)]
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


def _idle_cores(pid):
    time.sleep(SETTLE_S)
    before = procs.measure(pid)
    time.sleep(IDLE_S)
    after = procs.measure(pid)
    return (after["cpu_s"] - before["cpu_s"]) / (after["at"] - before["at"])


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
        before, stolen = procs.measure(server.process.pid), machine.Stolen()
        figures = run_load(command, environment, cell.limit_s + 10)
        after = procs.measure(server.process.pid)
        seconds = after["at"] - before["at"]
        measured = {
            "cpu_cores": (after["cpu_s"] - before["cpu_s"]) / seconds,
            "memory_before_bytes": before["memory_bytes"],
            "memory_after_bytes": after["memory_bytes"],
            "written_bytes": after["written_bytes"] - before["written_bytes"],
            "stolen": stolen.share(),
        }
        if cell.workload == "backlog":
            if subject.ours:
                measured["idle_cores"] = _idle_cores(server.process.pid)
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
