"""What goes wrong around a tortured server. Each fault is a thread that does its worst, again and again, until it is told to
stop; then it mends what it broke. The server may be killed and started again at any moment, on the same ports."""

import random
import socket
import struct
import threading

from conftest import DEADLINE_S
from programs import wait_for
from resp_wire import Closed, Error, Wire, pack
from test_clock import HOUR_MS, WallClock
from test_limits import request
from test_open_files import FEW_FILES, FILES
from torture_wires import TOPIC

PAYLOAD = "x" * 60_000
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close sends a reset


class Fault(threading.Thread):
    prefix = ()  # of the server's command line
    flags = ()

    def __init__(self, folder, seed):
        super().__init__(daemon=True)
        self.folder, self.random, self.server = folder, random.Random(seed), None
        self.stopped = threading.Event()
        self.goes, self.error = 0, None

    def begin(self, server):
        self.server = server
        self.start()

    def run(self):
        try:
            while not self.stopped.is_set():
                try:
                    self.go()
                    self.goes += 1
                except (OSError, Closed):  # the server was killed, or refuses
                    self.stopped.wait(0.02)
        except Exception as error:
            self.error = error

    def end(self):
        self.stopped.set()
        self.join(DEADLINE_S)
        assert not self.is_alive() and self.error is None, self.error
        self.mend()

    def wait(self, seconds):
        self.stopped.wait(self.random.uniform(0, seconds))

    def connect(self, door, receive_bytes=None):
        wire = socket.socket()
        wire.settimeout(DEADLINE_S)
        if receive_bytes:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        wire.connect(("127.0.0.1", self.server.port if door == "http" else self.server.resp_port))
        return wire

    def mend(self):
        pass


class ClockSteps(Fault):
    """The wall clock is set, wrongly and back again."""

    def __init__(self, folder, seed):
        super().__init__(folder, seed)
        self.wall = WallClock(folder)
        self.prefix = self.wall.place.prefix

    def go(self):
        step_ms = self.random.choice((1, 50, 1000, HOUR_MS, 24 * HOUR_MS)) * self.random.choice((-1, 1))
        self.wall.set(step_ms)
        self.wait(0.5)
        if self.random.random() < 0.5:
            self.wall.set(0)
            self.wait(0.5)

    def mend(self):
        self.wall.set(0)


class Crowd(Fault):
    """More strangers than the server may have open files."""

    prefix = FEW_FILES.prefix

    def go(self):
        crowd = []
        try:
            for i in range(self.random.randrange(2 * FILES)):
                crowd.append(self.connect(("http", "resp")[i % 2]))
            self.wait(0.3)
        finally:
            for wire in crowd:
                wire.close()
        self.wait(0.3)


class FullDisk(Fault):
    """The disk fills up, and there is room again later. The folder is that of the small disk."""

    def go(self):
        with Wire(self.server) as wire:
            for _ in range(200):
                ids = wire.call("JOB.MSUBMIT", "ballast", "DELAY", HOUR_MS, *[PAYLOAD] * 10)
                if isinstance(ids, Error) or any(isinstance(each, Error) for each in ids):
                    break
            else:
                raise AssertionError("the disk was never full")
        self.wait(1)
        self.drop()
        self.wait(1)

    def drop(self):
        with Wire(self.server) as wire:
            answer = wire.call("TOPIC.DROP", "ballast")
            return answer == "OK" or answer.code == "NOTOPIC"

    def mend(self):
        wait_for(self.drop, what="the room that the ballast took", between_s=0.05)


class SlowReaders(Fault):
    """They take up the memory for answers, so that reserves find no room for theirs."""

    flags = ("--memory-limit", "512MiB")  # 64 MiB of it for requests and answers

    def go(self):
        with Wire(self.server) as wire:
            wire.send("TOPIC.DROP", "slow")
            for _ in range(60):
                wire.send("JOB.MSUBMIT", "slow", "DELAY", 0, *[PAYLOAD] * 20)
            for _ in range(61):
                wire.read()
        readers = []
        try:
            for _ in range(20):
                readers.append(self.connect("http", 4096))
                readers[-1].sendall(request("POST", "/v1/topics/slow/reserve", b'{"max":100,"lease_ms":500}'))
            self.wait(1)
        finally:
            for reader in readers:
                reader.close()


class Topics(Fault):
    """Topics are made, filled, changed and dropped."""

    def go(self):
        name = f"topic-{self.random.randrange(20)}"
        words = ["JOB.MSUBMIT", name, "DELAY", self.random.choice((0, HOUR_MS)), *["p"] * 300]
        with Wire(self.server) as wire:
            wire.send_raw(pack(*words) + pack("TOPIC.SET", name, "LEASE_MS", 1000) + pack("JOB.RESERVE", name, "MAX", 100))
            wire.send("TOPIC.PAUSE", name)
            if self.random.random() < 0.7:
                wire.send("TOPIC.DROP", name)
            for _ in range(4):
                wire.read()


class Resets(Fault):
    """Clients that vanish in the middle of an answer, also of one with jobs."""

    def go(self):
        reserves = (
            ("http", request("POST", f"/v1/topics/{TOPIC}/reserve", b'{"max":30,"lease_ms":200}')),
            ("resp", pack("JOB.RESERVE", TOPIC, "MAX", 30, "LEASE", 200)),
            ("http", request("GET", f"/v1/topics/{TOPIC}/jobs?limit=1000")),
            ("resp", pack("JOB.LIST", TOPIC, "LIMIT", 1000) * 20),
        )
        door, asked = self.random.choice(reserves)
        with self.connect(door, 2048) as wire:
            wire.sendall(asked)
            wire.recv(self.random.choice((1, 100, 3000)))
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.wait(0.2)


FAULTS = {
    "the clock is set": [ClockSteps],
    "no open file is left": [Crowd],
    "the disk is full": [FullDisk],
    "no room for answers": [SlowReaders],
    "topics come and go": [Topics],
    "sockets are reset": [Resets],
    "all but the disk": [ClockSteps, Crowd, SlowReaders, Topics, Resets],
}
