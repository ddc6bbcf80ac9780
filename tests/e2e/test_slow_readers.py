"""Readers that take their answers slowly do not use up the memory for everybody's answers."""

import contextlib
import socket
import threading
import time

import httpx
import pytest

from conftest import DEADLINE_S, ack, reserve, submit
from resp_wire import pack
from test_auth import bearer, create
from test_limits import request

PAYLOAD = "x" * 1_000_000
JOBS = 80
# In the answers of so many jobs each, the readers take up what there is, down to the last of the 64 MiB.
TAKEN = [16, 16, 16, 16, 8, 7, 7, 7, 7, 7, 4, 4, 2, 2, 1, 1, 1]
TRICKLE_BYTES_A_S = 40_000
TRICKLE_S = 0.03


def fill(client, server, topic):
    for _ in range(JOBS):
        answer = client.post(server.topic(topic) + "/jobs", json={"payload": PAYLOAD})
        assert answer.status_code == 201, answer.text


@contextlib.contextmanager
def slow_readers(server, *fields, wires=None):
    """They reserve all that the server gives them, and read only the first bytes. Each joins `wires` when it does that."""
    with contextlib.ExitStack() as stack:
        for jobs in TAKEN:
            wire = stack.enter_context(slow_reader(server, jobs, *fields))
            if wires is not None:
                wires.append(wire)
        yield


@contextlib.contextmanager
def trickling_readers(server, *fields):
    """The same, but they read on, little by little."""
    wires, ended = [], threading.Event()

    def trickle():
        left = {}  # bytes that a reader may take by now
        before = time.monotonic()
        while not ended.wait(TRICKLE_S):
            now = time.monotonic()
            for wire in list(wires):
                left[wire] = left.get(wire, 0) + (now - before) * TRICKLE_BYTES_A_S
                with contextlib.suppress(OSError):  # closed by the server, or nothing has arrived
                    left[wire] -= len(wire.recv(min(4096, max(1, int(left[wire]))), socket.MSG_DONTWAIT))
            before = now

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        with slow_readers(server, *fields, wires=wires):
            yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def slow_wire(port):
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # Small segments keep the server's socket buffer small, so that the server sees each step.
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)
        wire.settimeout(DEADLINE_S)
        wire.connect(("127.0.0.1", port))
        yield wire


@contextlib.contextmanager
def slow_reader(server, jobs, *fields):
    with slow_wire(server.port) as wire:
        wire.sendall(request("POST", "/v1/topics/slow/reserve", b'{"max":%d,"lease_ms":1000000}' % jobs, *fields))
        assert wire.recv(9, socket.MSG_WAITALL) == b"HTTP/1.1 "
        yield wire


def test_the_bearers_of_one_token_leave_room_to_the_others(start, tmp_path):
    tokens = tmp_path / "tokens"
    greedy = create(tokens, "--scope", "consume", "--topic-prefix", "slow", name="greedy")
    admin = create(tokens, "--scope", "admin", name="admin")
    server = start("--auth-token-file", tokens, "--memory-limit", "512MiB")
    with httpx.Client(timeout=DEADLINE_S, headers=bearer(admin)) as client:
        fill(client, server, "slow")
        fill(client, server, "t")
        with slow_readers(server, f"Authorization: Bearer {greedy}"):
            for _ in range(4):
                jobs = reserve(client, server, max=4)
                assert jobs and {job["payload"] for job in jobs} == {PAYLOAD}
            assert "tocsin_transfer_memory_bytes" in client.get(server.url + "/metrics").text


@pytest.mark.parametrize("readers", [slow_readers, trickling_readers])
def test_slow_readers_make_room_when_others_need_it(start, client, readers):
    server = start("--memory-limit", "512MiB")
    fill(client, server, "slow")
    fill(client, server, "t")
    with readers(server):
        end = time.monotonic() + 20  # a reader that nobody waits for may take longer than that
        got = []
        while len(got) < 16:
            answer = client.post(server.topic("t") + "/reserve", json={"max": 4})
            assert answer.status_code in (200, 503)
            got += answer.json().get("jobs", [])
            assert time.monotonic() < end, f"{len(got)} jobs"
        assert {job["payload"] for job in got} == {PAYLOAD}


def test_the_clients_of_one_address_leave_room_to_the_others(start, client):
    server = start("--memory-limit", "512MiB")
    fill(client, server, "slow")
    fill(client, server, "t")
    elsewhere = httpx.HTTPTransport(local_address="127.0.0.2")
    with trickling_readers(server), httpx.Client(timeout=DEADLINE_S, transport=elsewhere) as other:
        for _ in range(4):
            jobs = reserve(other, server, max=4)
            assert jobs and {job["payload"] for job in jobs} == {PAYLOAD}


def test_a_stop_releases_the_jobs_in_answers_that_nobody_reads(node, redis_single, client):
    """The node's Redis lives on: the jobs would wait for their leases, and have no attempt left."""
    server = node("a", redis_single)
    for topic in ("slow", "t"):
        submit(client, server, topic=topic, payload=PAYLOAD, max_attempts=1)
    with slow_reader(server, 1), slow_wire(server.resp_port) as wire:
        wire.sendall(pack("JOB.RESERVE", "t", "LEASE", 1_000_000))
        assert wire.recv(1) == b"*"
        assert server.stop() == 0
    other = node("b", redis_single)
    for topic in ("slow", "t"):
        jobs = reserve(client, other, topic=topic, wait_ms=DEADLINE_S * 1000)
        assert [job["attempt"] for job in jobs] == [1]
        assert ack(client, other, *jobs, topic=topic) == ["ok"]
