"""RESP connections that wait, read slowly, are too many, or are there when the server stops."""

import contextlib
import resource
import signal
import socket
import threading
import time

import pytest

from conftest import DEADLINE_S, await_metric, metric
from resp_wire import Closed, Error, Wire, pack
from test_resp_wire import rss_bytes

MIB = 1 << 20
PARKED = "tocsin_resp_parked"


def test_a_hundred_waiting_connections_hold_up_nobody(start, client):
    server = start("--clock", "virtual")
    waiting = [Wire(server) for _ in range(100)]
    for wire in waiting:
        wire.send("JOB.RESERVE", "t", "WAIT", 60_000)
    await_metric(client, server, PARKED, 100)
    with Wire(server) as other:
        for i in range(100):
            assert other.call("JOB.SUBMIT", "other", str(i))[1] == "accepted"
            [job] = other.call("JOB.RESERVE", "other", "WAIT", 60_000)
            assert other.call("JOB.ACK", "other", job[1]) == ["ok"]
        ids = other.call("JOB.MSUBMIT", "t", "DELAY", 1000, *["p"] * 100)
        other.call("CLOCK.ADVANCE", 1000)
    got = [job for wire in waiting for job in wire.read()]
    assert sorted(job[0] for job in got) == sorted(ids), "each waiting one gets one job"
    await_metric(client, server, PARKED, 0)
    for wire in waiting:
        wire.close()


def test_a_job_goes_past_a_client_that_has_gone(server, client):
    gone, there = Wire(server), Wire(server)
    gone.send("JOB.RESERVE", "t", "WAIT", 60_000)
    await_metric(client, server, PARKED, 1)
    there.send("JOB.RESERVE", "t", "WAIT", 60_000)
    await_metric(client, server, PARKED, 2)
    gone.close()
    await_metric(client, server, PARKED, 1)
    with Wire(server) as other:
        other.call("JOB.SUBMIT", "t", "p", "ID", "a")
    [job] = there.read()
    assert (job[0], job[3]) == (b"a", 1), "the first attempt: the one that left had no delivery"
    there.close()


def test_a_long_poll_ends_when_its_client_sends_no_more(server, client):
    with Wire(server) as wire:
        wire.send("JOB.RESERVE", "t", "WAIT", 60_000)
        await_metric(client, server, PARKED, 1)
        wire.socket.shutdown(socket.SHUT_WR)
        assert wire.read_all() == b"*0\r\n", "it may still read"
    await_metric(client, server, PARKED, 0)


def test_a_wait_ends_by_itself(server):
    with Wire(server) as wire:
        began = time.monotonic()
        assert wire.call("JOB.RESERVE", "t", "WAIT", 100) == []
        assert time.monotonic() - began >= 0.1


def test_what_is_pipelined_behind_a_waiting_reserve_comes_after_it(server, client):
    with Wire(server) as wire, Wire(server) as other:
        wire.send_raw(pack("JOB.SUBMIT", "u", "x", "ID", "before") + pack("JOB.RESERVE", "t", "WAIT", 60_000)
                      + pack("PING", "behind") + pack("JOB.SUBMIT", "u", "x", "ID", "after"))
        assert wire.read()[0] == b"before", "what is before it is answered at once"
        await_metric(client, server, PARKED, 1)
        assert other.call("JOB.GET", "u", "after") is None, "what is behind it is not done before it"
        wire.send("PING", "later")
        other.call("JOB.SUBMIT", "t", "p", "ID", "woken")
        assert [job[0] for job in wire.read()] == [b"woken"]
        assert wire.read() == b"behind"
        assert wire.read()[0] == b"after"
        assert wire.read() == b"later"


def test_bytes_behind_a_waiting_reserve_are_bounded(server, client):
    """The server does not read on for ever behind a reserve that waits; the rest stays with the client."""
    flood, count = pack("PING", "x" * 1000), 60_000
    rest = memoryview(flood * count)
    with Wire(server) as wire, Wire(server) as other:
        wire.send("JOB.RESERVE", "t", "WAIT", 60_000)
        await_metric(client, server, PARKED, 1)
        before = rss_bytes(server)
        wire.socket.setblocking(False)
        for _ in range(500):
            try:
                rest = rest[wire.socket.send(rest) :]
            except BlockingIOError:
                pass
            assert other.call("JOB.SUBMIT", "u", "x")[1] == "accepted"
        assert len(rest) > 30 * MIB, "more was taken than the buffers of the sockets hold"
        assert rss_bytes(server) - before < 16 * MIB
        wire.socket.settimeout(DEADLINE_S)
        other.call("JOB.SUBMIT", "t", "p")
        sender = threading.Thread(target=wire.send_raw, args=(rest,))
        sender.start()
        assert len(wire.read()) == 1
        for _ in range(count):
            assert wire.read() == b"x" * 1000
        sender.join()


@pytest.mark.parametrize("command", ["JOB.GET", "JOB.LIST", "JOB.RESERVE"])
def test_a_slow_reader_is_bounded_and_others_are_served(server, command):
    """It asks for 200 GB and reads nothing."""
    payload = b"x" * (MIB - 1000)
    with Wire(server) as other:
        for i in range(64):
            other.call("JOB.SUBMIT", "t", payload, "ID", f"large-{i}", "KEY", "k", "ATTEMPTS", 1000)
        words = {"JOB.GET": ["t", "large-1", "KEY", "k"], "JOB.LIST": ["t"], "JOB.RESERVE": ["t", "MAX", 16]}[command]
        before = rss_bytes(server)
        slow = Wire(server)
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        request = pack(command, *words) * 1000
        slow.socket.setblocking(False)
        stuck = 0
        for i in range(300):
            try:
                slow.socket.send(request)
            except BlockingIOError:
                stuck += 1
            assert other.call("JOB.SUBMIT", "u", "p")[1] == "accepted"
            [job] = other.call("JOB.RESERVE", "u", "WAIT", 20_000)
            assert other.call("JOB.ACK", "u", job[1]) == ["ok"]
            assert rss_bytes(server) - before < 160 * MIB
        assert stuck, "the server stops to read from one that does not read"
        slow.socket.settimeout(DEADLINE_S)
        reply = slow.read()
        job = {"JOB.GET": lambda: slow.map(reply), "JOB.LIST": lambda: slow.map(reply[1][0]),
               "JOB.RESERVE": lambda: {"payload": reply[0][2]}}[command]()
        assert job["payload"] == payload, "and goes on when it reads"
        slow.close()


def test_deliveries_beyond_the_memory_budget_come_back(start, client):
    server = start("--memory-limit", "512MiB")  # 64 MiB for requests and answers
    with Wire(server) as other:
        for _ in range(5):
            other.call("JOB.MSUBMIT", "t", "DELAY", 0, *[b"x" * 1_000_000] * 15)
        holding = [Wire(server) for _ in range(5)]
        for wire in holding:
            wire.send("JOB.RESERVE", "t", "MAX", 15, "WAIT", 20_000, "LEASE", 1_000_000)
        end = time.monotonic() + DEADLINE_S
        while metric(client, server, "tocsin_transfer_memory_bytes") < 32 * MIB:  # beside what the sockets' buffers hold
            assert time.monotonic() < end
        for wire in holding:
            wire.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):  # it is parked
                assert wire.socket.recv(1) == b"*"
            wire.close()
        await_metric(client, server, "tocsin_transfer_memory_bytes", 0)
        jobs = other.call("JOB.RESERVE", "t", "MAX", 15, "WAIT", 20_000)
        assert jobs and {job[3] for job in jobs} == {1}


def test_requests_beyond_the_memory_budget_are_refused_and_small_ones_go_on(start, client):
    server = start("--memory-limit", "256MiB", "--limits-payload-size", "8MiB")  # 64 MiB for requests and answers
    begun = b"*3\r\n$10\r\nJOB.SUBMIT\r\n$1\r\nt\r\n$8000000\r\n" + b"x" * 7_900_000
    holding = [Wire(server) for _ in range(12)]
    for wire in holding:
        try:
            wire.send_raw(begun)
        except ConnectionError:
            pass
    with Wire(server) as other:
        assert other.call("JOB.SUBMIT", "t", "small")[1] == "accepted"
        assert metric(client, server, "tocsin_transfer_memory_bytes") <= 64 * MIB
    refused = 0
    for wire in holding:
        wire.socket.setblocking(False)
        try:
            refused += wire.socket.recv(12) == b"-OVERLOADED "
        except BlockingIOError:
            pass
        wire.close()
    assert refused >= 4
    await_metric(client, server, "tocsin_transfer_memory_bytes", 0)
    with Wire(server) as wire:
        assert wire.call("JOB.SUBMIT", "t", "x" * 8_000_000)[1] == "accepted"


def test_deliveries_to_one_that_leaves_without_reading_come_back(start):
    server = start("--clock", "virtual")
    with Wire(server) as other:
        for i in range(8):
            other.call("JOB.SUBMIT", "t", b"x" * (MIB - 1000), "ID", f"j{i}")
        slow = Wire(server)
        slow.send_raw(pack("JOB.RESERVE", "t", "LEASE", 1000, "MAX", 8) * 8)
        slow.close()
        other.call("TOPIC.SET", "t", "backoff_base_ms", 0)
        seen, end = set(), time.monotonic() + DEADLINE_S
        while len(seen) < 8:
            assert time.monotonic() < end, seen
            other.call("CLOCK.ADVANCE", 1000)
            for job in other.call("JOB.RESERVE", "t", "MAX", 8, "LEASE", 60_000):
                assert other.call("JOB.ACK", "t", job[1]) == ["ok"]
                seen.add(job[0])


def test_a_stop_answers_what_waits(start, client):
    server = start()
    waiting = [Wire(server, protocol) for protocol in (2, 3)]
    for wire in waiting:
        wire.send("JOB.RESERVE", "t", "WAIT", 60_000)
    idle = Wire(server)
    assert idle.call("PING") == "PONG"
    await_metric(client, server, PARKED, 2)
    begin = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begin < 5
    for wire in waiting:
        assert wire.read() == []
        assert wire.read_all() == b""
    assert idle.read_all() == b""


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_under_load_loses_nothing_that_was_answered(start, sig):
    server = start()
    answered, lock, enough = set(), threading.Lock(), threading.Event()

    def submit_on(name):
        wire = Wire(server)
        for i in range(100_000):
            ids = [f"{name}-{i}-{j}" for j in range(20)]
            try:
                wire.send_raw(b"".join(pack("JOB.SUBMIT", "t", "p", "ID", one, "DELAY", 1) for one in ids))
                for one in ids:
                    reply = wire.read()
                    if isinstance(reply, Error):
                        assert reply.code == "SHUTTINGDOWN", reply
                        return
                    assert reply[0] == one.encode()
                    with lock:
                        answered.add(reply[0])
            except (Closed, ConnectionError):
                return
            if len(answered) >= 2000:
                enough.set()

    workers = [threading.Thread(target=submit_on, args=(name,)) for name in range(8)]
    for worker in workers:
        worker.start()
    assert enough.wait(DEADLINE_S)
    assert server.stop(sig) == 0
    for worker in workers:
        worker.join(DEADLINE_S)
    seen = set()
    with Wire(start()) as wire:
        while not seen >= answered:
            jobs = wire.call("JOB.RESERVE", "t", "MAX", 1000, "WAIT", 20_000)
            assert jobs, f"{len(answered - seen)} answered jobs are gone"
            wire.call("JOB.ACK", "t", *[job[1] for job in jobs])
            seen |= {job[0] for job in jobs}


def test_connections_are_bounded(start):
    server = start("--limits-connections", "3")
    wires = [Wire(server) for _ in range(3)]
    assert [wire.call("PING") for wire in wires] == ["PONG"] * 3
    with Wire(server) as one_more:
        said = one_more.read_all()
        assert said.startswith(b"-OVERLOADED ") and b"3" in said, said
    assert [wire.call("PING") for wire in wires] == ["PONG"] * 3
    wires.pop().close()
    end = time.monotonic() + DEADLINE_S
    while True:
        with Wire(server) as again:
            try:
                if again.call("PING") == "PONG":
                    break
            except (Closed, ConnectionError):
                pass
        assert time.monotonic() < end, "the place of the one that left stays taken"
    for wire in wires:
        wire.close()


def test_a_thousand_idle_connections(start, client):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        server = start()
        before = rss_bytes(server)
        wires = [Wire(server) for _ in range(1000)]
        for wire in wires:
            assert wire.call("PING") == "PONG"
        assert rss_bytes(server) - before < 64 * MIB
        assert metric(client, server, "tocsin_resp_connections") == 1000
        begin = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begin < 5
        for wire in wires:
            assert wire.read_all() == b""
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_was_answered_survives_kill_9(start):
    server = start()
    with Wire(server) as wire:
        ids = set(wire.call("JOB.MSUBMIT", "t", "DELAY", 0, *map(str, range(200))))
        [held] = wire.call("JOB.RESERVE", "t")
        assert wire.call("JOB.ACK", "t", held[1]) == ["ok"]
    server.kill()
    seen = set()
    with Wire(start()) as wire:
        while len(seen) < 199:
            jobs = wire.call("JOB.RESERVE", "t", "MAX", 50, "WAIT", 20_000)
            assert jobs and {job[3] for job in jobs} == {1}
            seen |= {job[0] for job in jobs}
            assert set(wire.call("JOB.ACK", "t", *[job[1] for job in jobs])) == {"ok"}
        assert seen == ids - {held[0]}
