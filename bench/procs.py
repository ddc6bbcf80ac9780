"""Processes of a benchmark: starting them, ending exactly those, and what /proc says of their CPU, memory and writes."""

import os
import pathlib
import pwd
import signal
import socket
import subprocess
import time

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
STOP_S = 60
STILL_TRIES = 50


class StartError(Exception):
    """A server that did not become ready; the text says why, with the end of its log."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _stat(pid):
    """The fields of /proc/PID/stat from the third on, or None if the process is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    except OSError:
        return None


def tree(root):
    """The ids of a process and of all its descendants."""
    children = {}
    for entry in os.listdir("/proc"):
        fields = _stat(entry) if entry.isdigit() else None
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def _memory_bytes(pid):
    """The share of memory that is this process's: what several processes share is split between them."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except OSError:
        return 0


def _written_bytes(pid):
    try:
        for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines():
            if line.startswith("write_bytes:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def measure(root):
    """CPU seconds, memory and bytes written of a process tree; children that have ended count through their parents.

    A process that ends between two reads would be missed or counted twice: hence again until the tree stood still."""
    for _ in range(STILL_TRIES):
        before = tree(root)
        cpu = memory = written = 0
        for pid in before:
            fields = _stat(pid)
            if fields:
                cpu += sum(int(field) for field in fields[11:15])
                memory += _memory_bytes(pid)
                written += _written_bytes(pid)
        if tree(root) == before:
            break
        time.sleep(0.02)
    return {"cpu_s": cpu / TICKS_PER_S, "memory_bytes": memory, "written_bytes": written, "at": time.monotonic()}


def tail(path, lines=8):
    try:
        return "\n".join(pathlib.Path(path).read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


class Process:
    """One program in a session of its own, with its output in a file. Ended by stop() or kill(), nothing else."""

    def __init__(self, command, log, user=None, env=None, cwd=None):
        self.log = pathlib.Path(log)
        as_user = {}
        if user and os.geteuid() == 0:
            entry = pwd.getpwnam(user)
            as_user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        with open(self.log, "ab") as output:
            self.popen = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output,
                                          stderr=subprocess.STDOUT, start_new_session=True, env=env, cwd=cwd, **as_user)
        self.pid = self.popen.pid

    def wait_until(self, ready, limit_s):
        """Polls `ready` until it returns something true, and returns that."""
        end = time.monotonic() + limit_s
        while True:
            answer = ready()
            if answer:
                return answer
            if self.popen.poll() is not None:
                raise StartError(f"it ended with status {self.popen.returncode}:\n{tail(self.log)}")
            if time.monotonic() > end:
                raise StartError(f"it was not ready after {limit_s} s:\n{tail(self.log)}")
            time.sleep(0.002)

    def stop(self):
        """Asks it to end, and makes it."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(STOP_S)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self):
        """kill -9 of the program and of what it started: the session is its own."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait(STOP_S)


def ask(port, request, limit_s=0.5):
    """Sends a request to a loopback port and returns what one read answers; empty if nothing does."""
    try:
        with socket.create_connection(("127.0.0.1", port), limit_s) as connection:
            connection.sendall(request)
            return connection.recv(4096)
    except OSError:
        return b""
