"""What one RESP connection may take from the others, and what it still gets when it ends early."""

import select
import signal
import socket
import time

import pytest

from conftest import await_metric, metric
from resp_wire import Error, Wire, pack
from test_auth import create

MIB = 1 << 20
QUIET_S = 0.5


@pytest.fixture
def four_shards(start):
    return start("--shards", "4", "--clock", "virtual")


def test_a_client_that_sends_no_more_gets_its_replies_behind_a_waiting_reserve_too(server):
    with Wire(server) as other:
        other.call("TOPIC.SET", "t")
    for i in range(20):
        with Wire(server) as wire:
            wire.send_raw(pack("JOB.SUBMIT", "t", "p", "ID", f"id-{i}", "DELAY", 60_000)
                          + pack("JOB.RESERVE", "empty", "WAIT", 60_000) + pack("PING"))
            wire.socket.shutdown(socket.SHUT_WR)
            assert wire.read()[1] == "accepted"
            assert wire.read() == []
            assert wire.read() == "PONG"
            assert wire.read_all() == b""


def test_the_clock_does_not_overtake_what_was_submitted_before_it(four_shards):
    """With several shards a submit is on its way while the next command is begun."""
    with Wire(four_shards) as wire:
        for i in range(40):
            topic = f"topic-{i}"
            wire.call("TOPIC.SET", topic)
            before = wire.call("CLOCK.ADVANCE", 0)
            wire.send_raw(pack("JOB.SUBMIT", topic, "p", "ID", "x", "DELAY", 1000) + pack("CLOCK.ADVANCE", 5000)
                          + pack("JOB.RESERVE", topic))
            assert wire.read()[2] - before in (1000, 1001), topic
            assert wire.read() == before + 5000
            assert len(wire.read()) == 1, topic


def test_texts_that_are_only_sent_back_are_bounded(server):
    with Wire(server) as wire:
        for command in ("PING", "ECHO"):
            assert wire.call(command, "x" * 65_536) == b"x" * 65_536
            refused = wire.call(command, "x" * 65_537)
            assert isinstance(refused, Error) and refused.code == "TOOLARGE" and "65536" in refused


def test_strangers_take_nothing_of_the_common_budget(start, tmp_path, client):
    token = create(tmp_path / "tokens", "--scope", "admin")
    server = start("--auth-token-file", tmp_path / "tokens", "--memory-limit", "64MiB")
    client.headers["Authorization"] = f"Bearer {token}"
    strangers = [Wire(server) for _ in range(20)]
    commands = pack("JOB.GET", "t", "x") * 1000
    sent = {wire.socket: 0 for wire in strangers}
    for one in sent:
        one.setblocking(False)
    # None ever reads. When the server takes no more from any of them, it keeps what it has read of each.
    while ready := select.select([], sent, [], QUIET_S)[1]:
        for one in ready:
            sent[one] += one.send(commands[sent[one] % len(commands) :])
    # At once: a while later they are gone, because they do not log in.
    assert metric(client, server, "tocsin_transfer_memory_bytes") == 0
    with Wire(server, auth=token) as wire:
        assert wire.call("JOB.SUBMIT", "t", "x" * 900_000)[1] == "accepted"
        assert wire.call("PING") == "PONG"
    for wire in strangers:
        wire.close()


def test_a_token_that_loses_its_scope_ends_its_waiting_reserve(start, tmp_path, client):
    file = tmp_path / "tokens"
    admin = create(file, "--scope", "admin", name="admin")
    token = create(file, "--scope", "consume", name="worker")
    server = start("--auth-token-file", file)
    client.headers["Authorization"] = f"Bearer {admin}"
    with Wire(server, auth=token) as wire:
        wire.send("JOB.RESERVE", "t", "WAIT", 60_000)
        await_metric(client, server, "tocsin_resp_parked", 1)
        text = file.read_text()
        assert "consume" in text
        file.write_text(text.replace("consume", "submit"))
        server.process.send_signal(signal.SIGHUP)
        assert wire.read() == []
        assert wire.call("JOB.RESERVE", "t").code == "NOPERM"


def test_the_server_stops_without_waiting_for_a_slow_reader(server):
    with Wire(server) as wire:
        for _ in range(64):
            wire.call("JOB.SUBMIT", "t", "x" * 250_000)
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.send("JOB.RESERVE", "t", "MAX", 64)
        wire.send_raw(pack("JOB.LIST", "t", "STATE", "leased") * 10)
        with Wire(server) as other:  # its commands come behind those above
            assert other.call("PING") == "PONG"
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < 8, "10 s is when it gives up"
