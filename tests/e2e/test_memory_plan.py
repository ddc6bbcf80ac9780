"""The memory that operations.md tells people to plan for is enough, whatever sizes of jobs come and go, and whatever
thousands of clients begin and do not finish."""

import collections
import contextlib
import itertools
import pathlib
import re
import resource
import socket
import time

import pytest

from conftest import DEADLINE_S, ack, await_metric, reserve, submit
from resp_wire import Error, Wire, pack
from test_resp_wire import rss_bytes
from test_room import metric

MIB = 1 << 20
LIMIT_MIB = 64
BATCH = 500


def plan_bytes(limit_mib):
    return (limit_mib + min(264, 200 + limit_mib // 8)) * MIB  # a small limit needs less than the plan says


PLAN = plan_bytes(LIMIT_MIB)


def fill(wire, size):
    """Submits jobs of this size until the server has no memory for more; their ids."""
    payload, ids = b"x" * size, []
    for first in itertools.count(0, BATCH):
        names = [f"{size}-{first + i}" for i in range(BATCH)]
        wire.send_raw(b"".join(pack("JOB.SUBMIT", "t", payload, "ID", name, "DELAY", 3_600_000) for name in names))
        replies = [wire.read() for _ in names]
        ids += [name for name, reply in zip(names, replies) if not isinstance(reply, Error)]
        if isinstance(replies[-1], Error):
            assert "OVERCAPACITY" in str(replies[-1]).replace("_", "").upper()
            return ids


def cancel(wire, ids):
    for begin in range(0, len(ids), BATCH):
        names = ids[begin : begin + BATCH]
        wire.send_raw(b"".join(pack("JOB.CANCEL", "t", name) for name in names))
        assert {wire.read() for _ in names} == {"cancelled"}


def test_sizes_that_come_and_go_stay_within_the_plan(start):
    server = start("--memory-limit", f"{LIMIT_MIB}MiB", "--shards", "1")
    with Wire(server) as wire:
        for size in (500, 900, 1700, 3100, 6000, 12_000, 40_000, 90_000, 300_000):
            end = time.monotonic() + DEADLINE_S
            ids = fill(wire, size)
            while len(ids) * size < LIMIT_MIB * MIB // 2:  # room comes back once the others have moved together
                assert time.monotonic() < end, f"only {len(ids)} jobs of {size} bytes found room"
                cancel(wire, ids)
                ids = fill(wire, size)
            assert rss_bytes(server) < PLAN, f"with jobs of {size} bytes"
            cancel(wire, [name for i, name in enumerate(ids) if i % 64])


CLIENTS = 9_900
POST = b"POST /v1/topics/t/jobs HTTP/1.1\r\nHost: x\r\n"
FIELDS = b"".join(b"X-%d: %s\r\n" % (i, b"a" * 150) for i in range(90))
COMMAND = b"*3\r\n$10\r\nJOB.SUBMIT\r\n$1\r\nt\r\n$60000\r\n"

# What each client sends, by the door that it goes to. None of them sends or reads anything more.
HELD = {
    "header": ("port", POST + FIELDS + b"X: " + b"a" * 1000),
    "body": ("port", POST + b"Content-Length: 60000\r\n\r\n" + b"b" * 59_999),
    "header and body": ("port", POST + FIELDS + b"Content-Length: 60000\r\n\r\n" + b"b" * 59_999),
    "chunk": ("port", POST + b"Transfer-Encoding: chunked\r\n\r\nEA60\r\n" + b"b" * 59_999),
    "trailer": ("port", POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nx: " + b"a" * 15_000),
    "parsed": ("port", POST + b"Content-Length: 16007\r\n\r\n" + b'{"a":[' + b"0," * 8_000 + b"}"),
    "answer": ("port", b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"),
    "event stream": ("port", b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n"),
    "command": ("resp_port", COMMAND + b"b" * 59_999),
    "small part of a command": ("resp_port", COMMAND + b"b" * 16_000),
    "line": ("resp_port", b"PING " + b"b" * 60_000 + b"\r\n"),
    "replies": ("resp_port", b"COMMAND\r\n" * 8),
}


def peak_bytes(server):
    """The most memory that the process has had."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


@contextlib.contextmanager
def many_open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CLIENTS + 1_000:
        pytest.skip(f"this needs {CLIENTS + 1_000} open files, and {hard} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def hold(stack, server, port, data):
    wire = stack.enter_context(socket.socket())
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.settimeout(DEADLINE_S)
    wire.connect(("127.0.0.1", getattr(server, port)))
    with contextlib.suppress(OSError):  # it may be refused before it has sent everything
        wire.sendall(data)
    return wire


@pytest.mark.parametrize("kind", HELD)
def test_what_thousands_of_clients_begin_stays_within_the_plan(start, client, kind):
    with many_open_files(), contextlib.ExitStack() as stack:
        server = start("--memory-limit", f"{LIMIT_MIB}MiB")
        for i in range(CLIENTS):
            hold(stack, server, *HELD[kind])
            if i % 1_000 == 999:  # others are served all the while
                submit(client, server, payload="x" * 1_000)
                assert ack(client, server, *reserve(client, server, wait_ms=10_000)) == ["ok"]
                with Wire(server) as wire:
                    assert not isinstance(wire.call("JOB.SUBMIT", "t", b"x" * 1_000), Error)
                    assert len(wire.call("JOB.RESERVE", "t", "WAIT", 10_000)) == 1
        peak = peak_bytes(server)
        print(f"{kind}: {peak // MIB} MiB of {PLAN // MIB} MiB")
        # The jobs of the test above, and what waits for the disk, would come on top of it.
        assert peak < PLAN - LIMIT_MIB * MIB


BODIES = 72  # that the budget has room for
BODY_BYTES = 512 << 10
DENSE = {"numbers": b"0,", "short strings": b'"0123456",', "objects": b'{"a":{"b":[]}},', "arrays": b"[[[]]],"}


@pytest.mark.parametrize("kind", DENSE)
def test_what_bodies_become_stays_within_the_plan(start, client, kind):
    """Parsed, they take many times their text."""
    server = start("--memory-limit", f"{LIMIT_MIB}MiB", "--shards", "1")
    element = DENSE[kind]
    body = b'{"a":[[' + element * (BODY_BYTES // len(element)) + b"0]]}"
    with contextlib.ExitStack() as stack:
        data = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
        wires = [hold(stack, server, "port", data[:-1]) for _ in range(BODIES)]
        for wire in wires:
            with contextlib.suppress(OSError):
                wire.sendall(data[-1:])
        statuses = [wire.recv(65536)[9:12] for wire in wires]
        submit(client, server, payload="x" * 1_000)
    assert set(statuses) <= {b"400", b"413", b"503"}
    peak = peak_bytes(server)
    print(f"{kind}: {peak // MIB} MiB of {PLAN // MIB} MiB, {collections.Counter(statuses)}")
    assert peak < PLAN - LIMIT_MIB * MIB
    await_metric(client, server, "tocsin_transfer_memory_bytes", 0)


READERS = 4_000
GET = b"GET /v1/topics/%s HTTP/1.1\r\nHost: x\r\n\r\n"
HTTP_ANSWERS = 'tocsin_http_requests_total{.*"GET".*/jobs.*'
RESP_ANSWERS = 'tocsin_resp_command_seconds_count{.*"JOB.%s".*'

# What each client asks for and does not read, by the door that it goes to, with what counts the answers.
UNREAD = {
    "lookups": ("port", GET % b"large/jobs/l", HTTP_ANSWERS),
    "listings": ("port", GET % b"many/jobs?limit=1000", HTTP_ANSWERS),
    "lookups by RESP": ("resp_port", pack("JOB.GET", "large", "l"), RESP_ANSWERS % "GET"),
    "sorted listings": ("port", GET % b"many/jobs?limit=1000&sort=due", HTTP_ANSWERS),
    "listings by RESP": ("resp_port", pack("JOB.LIST", "many", "LIMIT", 1000), RESP_ANSWERS % "LIST"),
}


@pytest.mark.parametrize("kind", UNREAD)
def test_what_thousands_of_clients_look_up_stays_within_the_plan(start, client, kind):
    """All ask at once. With two shards, half of them ask the shard that does not have the jobs."""
    port, data, answers = UNREAD[kind]
    server = start("--memory-limit", f"{LIMIT_MIB}MiB", "--shards", "2")
    with Wire(server) as wire:
        assert not isinstance(wire.call("JOB.SUBMIT", "large", b"x" * 1_000_000, "ID", "l", "DELAY", 3_600_000), Error)
        for _ in range(20):
            assert len(wire.call("JOB.MSUBMIT", "many", "DELAY", 3_600_000, *[b"y" * 4_000] * 200)) == 200
    with many_open_files(), contextlib.ExitStack() as stack:
        wires = [hold(stack, server, port, b"") for _ in range(READERS)]
        for wire in wires:
            wire.sendall(data)
        end = time.monotonic() + 20
        while metric(client, server, answers) < READERS and time.monotonic() < end:
            assert peak_bytes(server) < PLAN
        submit(client, server, payload="x" * 1_000)
        assert ack(client, server, *reserve(client, server, wait_ms=10_000)) == ["ok"]
    peak = peak_bytes(server)
    print(f"{kind}: {peak // MIB} MiB of {PLAN // MIB} MiB")
    assert peak < PLAN
    with Wire(server) as wire:  # and when they have gone, everybody gets what was refused
        wire.send_raw(pack("JOB.GET", "large", "l") + pack("JOB.LIST", "many", "LIMIT", 1000))
        assert not isinstance(wire.read(), Error)
        assert len(wire.read()[1]) == 1000


def test_leases_that_expire_stay_within_the_plan(start, client):
    """Millions of the smallest jobs fill the memory; then each is reserved, and nobody acks it."""
    limit_mib = 256  # with less, the fixed part of the plan would hide what each job gains
    server = start("--memory-limit", f"{limit_mib}MiB", "--shards", "1", "--durability", "os")
    settings = {"backoff_base_ms": 3_600_000, "backoff_max_ms": 3_600_000}
    assert client.put(server.topic("t"), json=settings).status_code == 201
    body = b'{"jobs":[' + b",".join([b'{"payload":""}'] * 10_000) + b"]}"
    headers = {"content-type": "application/json"}
    end = time.monotonic() + 16 * DEADLINE_S
    jobs = 0
    while client.post(server.topic("t") + "/jobs", content=body, headers=headers).status_code == 201:
        jobs += 10_000
        assert time.monotonic() < end
    assert jobs > limit_mib * MIB / 250
    while client.get(server.topic("t")).json()["figures"]["expired"] < jobs:
        answer = client.post(server.topic("t") + "/reserve", json={"max": 10_000, "lease_ms": 1})
        assert answer.status_code == 200, answer.text
        assert time.monotonic() < end
    rss = rss_bytes(server)
    print(f"{jobs} jobs, {rss // MIB} MiB of {plan_bytes(limit_mib) // MIB}")
    assert rss < plan_bytes(limit_mib)
