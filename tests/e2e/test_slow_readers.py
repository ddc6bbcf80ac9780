"""Readers that take their answers slowly do not use up the memory for everybody's answers."""

import contextlib
import socket
import time

import httpx

from conftest import DEADLINE_S, reserve
from test_auth import bearer, create
from test_limits import request

PAYLOAD = "x" * 1_000_000
JOBS = 80
# In the answers of so many jobs each, the readers take up what there is, down to the last of the 64 MiB.
TAKEN = [16, 16, 16, 16, 8, 7, 7, 7, 7, 7, 4, 4, 2, 2, 1, 1, 1]


def fill(client, server, topic):
    for _ in range(JOBS // 10):
        answer = client.post(server.topic(topic) + "/jobs", json={"jobs": [{"payload": PAYLOAD}] * 10})
        assert answer.status_code == 201, answer.text


@contextlib.contextmanager
def slow_readers(server, *fields):
    """They reserve all that the server gives them, and read only the first bytes."""
    with contextlib.ExitStack() as stack:
        for jobs in TAKEN:
            wire = stack.enter_context(socket.socket())
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.settimeout(DEADLINE_S)
            wire.connect(("127.0.0.1", server.port))
            wire.sendall(request("POST", "/v1/topics/slow/reserve", b'{"max":%d,"lease_ms":1000000}' % jobs, *fields))
            assert wire.recv(9, socket.MSG_WAITALL) == b"HTTP/1.1 "
        yield


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


def test_slow_readers_make_room_when_others_need_it(start, client):
    server = start("--memory-limit", "512MiB")
    fill(client, server, "slow")
    fill(client, server, "t")
    with slow_readers(server):
        end = time.monotonic() + 20  # a reader that nobody waits for may take longer than that
        got = []
        while len(got) < 16:
            answer = client.post(server.topic("t") + "/reserve", json={"max": 4})
            assert answer.status_code in (200, 503)
            got += answer.json().get("jobs", [])
            assert time.monotonic() < end, f"{len(got)} jobs"
        assert {job["payload"] for job in got} == {PAYLOAD}
