"""Programs that tests run beside tocsind: each in a folder of its own, killed with the run of the tests, however that ends.

A Place is where one runs: on loopback, or in a network namespace whose cable can be pulled (netns.py).
"""

import asyncio
import concurrent.futures
import os
import pathlib
import random
import select
import signal
import socket
import subprocess
import time

START_S = 30
STOP_S = 10
BETWEEN_TRIES_S = 0.005
# Below what the kernel gives to outgoing connections, so that a server finds its port free when it starts again.
PORTS = range(11_000, 32_000)
# The kernel kills a child with the *thread* that started it: this one lives as long as the tests do.
_starter = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="starter")


class Place:
    """Where a program runs: its address, and what its command line begins with."""

    def __init__(self, host="127.0.0.1", prefix=()):
        self.host = host
        self.prefix = list(prefix)


LOOPBACK = Place()


class NotReady(AssertionError):
    pass


def is_free(port):
    """Whether nobody listens there on loopback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK.host, port))
            return True
        except OSError:
            return False


def free_port(place=LOOPBACK):
    """A port that nobody listens on; another program may still take it first. In a namespace nobody else is there."""
    ports = random.SystemRandom().sample(PORTS, 200)
    return next(port for port in ports if place.host != LOOPBACK.host or is_free(port))


def wait_for(condition, within_s=START_S, what="the condition", between_s=BETWEEN_TRIES_S):
    """Tries until the condition holds, and returns what it returned. `what` may be a function that describes it."""
    end = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < end, f"{what() if callable(what) else what} did not come within {within_s:.1f} s"
        time.sleep(between_s)
    return found


def hold(seconds):
    """Lets time pass, for a fault or a measurement that lasts so long. To wait for something to happen, use wait_for."""
    time.sleep(seconds)


async def hold_async(seconds):
    await asyncio.sleep(seconds)


class Program:
    """One program, which can be started again after it ended. Its output is appended to `folder`/log.

    Each kind of program chooses its ports and writes its configuration in _configure(), and says in _ready() whether it
    serves. Its constructor ends with start_on_free_port().
    """

    start_s = START_S

    def __init__(self, arguments, folder, place=LOOPBACK):
        self.arguments = [*place.prefix, "setpriv", "--pdeathsig", "KILL", *map(str, arguments)]
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.log = self.folder / "log"
        self.place, self.host, self.port = place, place.host, None
        self.process = None
        self.paused = False

    def start_on_free_port(self, tries=5):
        """For the first time: with other ports where somebody has taken one before the program did."""
        for attempt in range(tries):
            self._configure()
            try:
                return self.start()
            except NotReady as error:
                if "Address already in use" not in str(error) or attempt == tries - 1:
                    raise
                self.log.unlink()

    def start(self):
        """Again, on the same port and data. Raises NotReady, with the end of its output, where it never serves."""
        self.launch()
        self.await_ready()

    def launch(self):
        """Starts it; it is not waited for."""
        assert not self.running
        with open(self.log, "ab") as log:
            self.process = _starter.submit(
                subprocess.Popen,
                self.arguments,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            ).result()
        self.paused = False

    def await_ready(self):
        end = time.monotonic() + self.start_s
        while not self._ready():
            if self._ended(BETWEEN_TRIES_S):
                raise NotReady(f"{self.arguments} ended with {self.process.returncode}:\n{self.output()}")
            if time.monotonic() > end:
                self.kill()
                raise NotReady(f"{self.arguments} was not ready within {self.start_s} s:\n{self.output()}")

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    @property
    def awake(self):
        return self.running and not self.paused

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        """SIGTERM, and SIGKILL where that does not help."""
        if not self.running:
            return
        self._signal(signal.SIGTERM)
        self.resume()
        if not self._ended(STOP_S):
            self.kill()

    def kill(self):
        if self.process is not None:
            self._signal(signal.SIGKILL)
            self.process.wait(STOP_S)

    def close(self):
        self.kill()

    def pause(self):
        """SIGSTOP; returns when it stands still."""
        self._signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.paused = True

    def resume(self):
        self._signal(signal.SIGCONT)
        self.paused = False

    def output(self):
        return self.log.read_text(errors="replace")[-4000:]

    def _signal(self, number):
        try:
            os.killpg(self.process.pid, number)  # with what it started itself, such as a child that writes a snapshot
        except ProcessLookupError:
            pass

    def _ended(self, within_s):
        if self.process.poll() is not None:
            return True
        watched = os.pidfd_open(self.process.pid)
        try:
            select.select([watched], [], [], within_s)
        finally:
            os.close(watched)
        return self.process.poll() is not None

    def _configure(self):
        raise NotImplementedError

    def _ready(self):
        raise NotImplementedError
