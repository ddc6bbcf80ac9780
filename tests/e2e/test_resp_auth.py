"""Tokens on the RESP door: who may send what, before and after AUTH."""

import subprocess
import threading
import time

import pytest
import redis

from conftest import DEADLINE_S, ENVIRONMENT, Server, run
from resp_wire import Error, Simple, Wire
from test_auth import ADMIN, CONSUME, EITHER, HOLDERS, LIST, LOOK, NODE, SUBMIT, TOPIC, create

STRANGE = "tocsin_" + "a" * 8 + "_" + "b" * 52
TOKEN = "AAABAAAAAAAAAAEAAAAAAQAA"  # of no delivery

# What each command needs; {topic} is filled in by the tests.
COMMANDS = [
    (["JOB.SUBMIT", "{topic}", "p"], SUBMIT),
    (["JOB.MSUBMIT", "{topic}", "DELAY", "0", "p"], SUBMIT),
    (["JOB.AMEND", "{topic}", "x", "DELAY", "1"], SUBMIT),
    (["JOB.CANCEL", "{topic}", "x"], SUBMIT),
    (["JOB.FIRE", "{topic}", "x"], SUBMIT),
    (["JOB.COUNT", "{topic}", "x", "e"], SUBMIT),
    (["JOB.RESERVE", "{topic}"], CONSUME),
    (["JOB.ACK", "{topic}", TOKEN], CONSUME),
    (["JOB.NACK", "{topic}", TOKEN], CONSUME),
    (["JOB.EXTEND", "{topic}", TOKEN], CONSUME),
    (["JOB.GET", "{topic}", "x"], EITHER),
    (["JOB.LIST", "{topic}"], TOPIC),
    (["JOB.REDRIVE", "{topic}"], ADMIN),
    (["DEAD.REDRIVE", "{topic}", "x"], ADMIN),
    (["DEAD.REMOVE", "{topic}", "x"], ADMIN),
    (["LEASE.LIST", "{topic}"], TOPIC),
    (["LEASE.ALL"], LIST),
    (["LEASE.REVOKE", "{topic}", "x"], ADMIN),
    (["TOPIC.SET", "{topic}"], ADMIN),
    (["TOPIC.GET", "{topic}"], TOPIC),
    (["TOPIC.PAUSE", "{topic}"], ADMIN),
    (["TOPIC.RESUME", "{topic}"], ADMIN),
    (["TOPIC.PURGE", "{topic}"], ADMIN),
    (["TOPIC.PURGE", "{topic}", "DEAD"], ADMIN),
    (["TOPIC.TEST", "{topic}"], ADMIN),
    (["TOPIC.DROP", "{topic}"], ADMIN),
    (["TOPIC.LIST"], LIST),
    (["TOPIC.LOAD", "{topic}"], TOPIC),
    (["JOB.TALLY", "{topic}"], TOPIC),
    (["JOB.OPERATE", "{topic}", "fire", "KEY", "x"], ADMIN),
    (["OPERATION.LIST", "{topic}"], TOPIC),
    (["OPERATION.GET", "{topic}", "7"], TOPIC),
    (["OPERATION.STOP", "{topic}", "7"], ADMIN),
    (["LOAD"], LIST),
    (["ALERT.LIST"], LIST),
    (["CLOCK.ADVANCE", "1"], NODE),
    (["NODES"], LOOK),
]
OPEN = {"auth", "hello", "quit", "reset"}  # to everybody
KNOWN = {"ping", "echo", "command", "client", "select", "info"}  # to every token


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with a token for each holder; its log must have none of them."""
    folder = tmp_path_factory.mktemp("guarded")
    tokens = {name: create(folder / "tokens", *flags, name=name) for name, (flags, _, _) in HOLDERS.items()}
    flags = ["--auth-token-file", folder / "tokens", "--clock", "virtual", "--log-level", "debug"]
    server = Server(folder / "data", *flags)
    server.tokens = tokens
    yield server
    assert server.stop() == 0
    said = "".join(server.errors + server.banner)
    for token in tokens.values():
        assert token.split("_")[2] not in said


def ids(row):
    return " ".join(row[0])


@pytest.mark.parametrize("row", COMMANDS, ids=ids)
def test_every_command_takes_the_tokens_that_it_should(guarded, row):
    words, needs = row
    with Wire(guarded) as wire:
        reply = wire.call(*[word.format(topic="shop.orders") for word in words])
        assert isinstance(reply, Error) and reply.code == "NOAUTH", reply
        assert "AUTH" in reply.message and "tocsin_" not in reply
    for name, (_, *reached) in HOLDERS.items():
        with Wire(guarded, auth=guarded.tokens[name]) as wire:
            for topic, allowed in zip(("shop.orders", "bank.orders"), reached):
                reply = wire.call(*[word.format(topic=topic) for word in words])
                if needs in allowed:
                    assert not isinstance(reply, Error) or reply.code not in ("NOAUTH", "NOPERM"), (name, topic, reply)
                    continue
                assert isinstance(reply, Error) and reply.code == "NOPERM", (name, topic, reply)
                assert "scope" in reply.message and guarded.tokens[name][7:15] not in reply


def test_the_table_above_has_every_command_of_the_server(guarded):
    with Wire(guarded, auth=guarded.tokens["submit"]) as wire:
        served = {name.decode().lower() for name in wire.call("COMMAND", "LIST")}
    assert served == {row[0][0].lower() for row in COMMANDS} | OPEN | KNOWN


@pytest.mark.parametrize("words", [["PING"], ["COMMAND"], ["CLIENT", "ID"], ["SELECT", "0"], ["INFO"]], ids=" ".join)
def test_strangers_are_told_nothing(guarded, words):
    with Wire(guarded) as wire:
        assert wire.call(*words).code == "NOAUTH"
    for name in HOLDERS:
        with Wire(guarded, auth=guarded.tokens[name]) as wire:
            assert not isinstance(wire.call(*words), Error)


def test_figures_are_for_those_who_may_see_all_topics(guarded):
    for name in HOLDERS:
        with Wire(guarded, auth=guarded.tokens[name]) as wire:
            told = wire.call("INFO").decode()
            assert "tocsin_version:" in told, name
            assert ("totals_accepted:" in told) == (name in ("admin", "observe")), name


def test_auth(guarded):
    with Wire(guarded) as wire:
        for wrong in (STRANGE, guarded.tokens["admin"][:16] + guarded.tokens["submit"][16:], "", "x" * 1000):
            reply = wire.call("AUTH", wrong)
            assert reply.code in ("NOAUTH", "WRONGPASS") and "tocsin_" not in reply, reply
            assert wire.call("PING").code == "NOAUTH"
        ok = wire.call("AUTH", guarded.tokens["submit"])
        assert ok == "OK" and type(ok) is Simple
        assert wire.call("JOB.SUBMIT", "shop.a", "p")[1] == "accepted"
        assert wire.call("JOB.RESERVE", "shop.a").code == "NOPERM"
        assert wire.call("AUTH", "anyone", guarded.tokens["consume"]) == "OK", "the name of the user is not looked at"
        assert isinstance(wire.call("JOB.RESERVE", "shop.a"), list)
        assert wire.call("JOB.SUBMIT", "shop.a", "p").code == "NOPERM"
        assert wire.call("AUTH", STRANGE).code in ("NOAUTH", "WRONGPASS")
        assert wire.call("RESET") == "RESET"
        assert wire.call("JOB.RESERVE", "shop.a").code == "NOAUTH", "RESET forgets the token"


def test_hello_auth(guarded):
    with Wire(guarded) as wire:
        assert wire.call("HELLO", 3).code == "NOAUTH"
        assert wire.call("HELLO", 3, "AUTH", "default", STRANGE).code in ("NOAUTH", "WRONGPASS")
        assert wire.call("PING").code == "NOAUTH"
        told = wire.hello(3, guarded.tokens["admin"])
        assert told["proto"] == 3
        assert wire.call("TOPIC.GET", "nothing").code == "NOTOPIC"
        assert wire.map(wire.call("HELLO", 3, "SETNAME", "me"))["server"] == b"tocsin"
        assert wire.call("CLIENT", "GETNAME") == b"me"


def test_auth_without_tokens_on_the_server(shared_server):
    with Wire(shared_server) as wire:
        assert wire.call("AUTH", STRANGE) == "OK", "a client that has a token may come to a server that needs none"
        assert wire.call("PING") == "PONG"


def test_strangers_may_send_small_frames_alone(guarded):
    for data in (
        b"*3\r\n$10\r\nJOB.SUBMIT\r\n$1\r\nt\r\n$20000\r\n",
        b"*2000\r\n$4\r\nAUTH\r\n" + b"$10\r\n0123456789\r\n" * 1500,
        b"PING " + b"x" * 20_000,
    ):
        with Wire(guarded) as wire:
            wire.send_raw(data)
            said = wire.read_all()
            assert said.startswith((b"-NOAUTH ", b"-TOOLARGE protocol: ")) and said.count(b"\r\n") == 1, said
    with Wire(guarded, auth=guarded.tokens["submit"]) as wire:
        assert wire.call("JOB.SUBMIT", "t", "x" * 20_000)[1] == "accepted"


def test_the_list_of_topics_is_that_of_the_prefix(guarded):
    with Wire(guarded, auth=guarded.tokens["admin"]) as admin, Wire(guarded, auth=guarded.tokens["narrow"]) as narrow:
        for topic in ("shop.a", "bank.b"):
            admin.call("TOPIC.SET", topic)
        names = [admin.map(one)["topic"] for one in admin.call("TOPIC.LIST")]
        assert {b"shop.a", b"bank.b"} <= set(names)
        seen = [narrow.map(one)["topic"] for one in narrow.call("TOPIC.LIST")]
        assert seen == [name for name in names if name.startswith(b"shop.")]


def test_a_revoked_token_ends_what_it_allowed(start, client, tmp_path):
    file = tmp_path / "tokens"
    admin, consumer = create(file, "--scope", "admin"), create(file, "--scope", "consume")
    server = start("--auth-token-file", file)
    with Wire(server, auth=consumer) as idle, Wire(server, 3, auth=consumer) as waiting:
        assert idle.call("JOB.RESERVE", "t") == []
        waiting.send("JOB.RESERVE", "t", "WAIT", 60_000)
        await_parked(client, server, admin, 1)
        assert run("tocsin", "token", "revoke", "--file", file, consumer[7:15]).returncode == 0
        assert waiting.read() == []
        assert waiting.call("JOB.RESERVE", "t").code == "NOAUTH"
        assert idle.call("JOB.RESERVE", "t").code == "NOAUTH"
        assert idle.call("AUTH", admin) == "OK"
        assert idle.call("JOB.RESERVE", "t") == []


def await_parked(client, server, token, count):
    end = time.monotonic() + DEADLINE_S
    headers = {"Authorization": f"Bearer {token}"}
    while f"\ntocsin_resp_parked {count}" not in client.get(server.url + "/metrics", headers=headers).text:
        assert time.monotonic() < end


def test_clients(guarded):
    port, token = guarded.resp_port, guarded.tokens["submit"]
    client = redis.Redis(port=port, password=token, socket_timeout=DEADLINE_S)
    assert client.execute_command("JOB.SUBMIT", "shop.py", "p")[1] == b"accepted"
    with pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command("JOB.RESERVE", "shop.py")
    client.close()
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=port, socket_timeout=DEADLINE_S).ping()
    with pytest.raises((redis.AuthenticationError, redis.ResponseError)):
        redis.Redis(port=port, password=STRANGE, socket_timeout=DEADLINE_S).ping()
    for protocol in ("-2", "-3"):
        line = ["redis-cli", "-p", str(port), protocol, "JOB.SUBMIT", "shop.cli", "p"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S,
                              env=ENVIRONMENT | {"REDISCLI_AUTH": token})
        assert "accepted" in done.stdout, (done.stdout, done.stderr)


def test_a_token_is_looked_up_for_many_at_once(guarded):
    """Each connection has its own: they do not mix."""
    faults = []

    def work(name, allowed):
        with Wire(guarded, auth=guarded.tokens[name]) as wire:
            for _ in range(200):
                reply = wire.call("JOB.RESERVE", "shop.mixed")
                if isinstance(reply, Error) == allowed:
                    faults.append((name, reply))

    workers = [threading.Thread(target=work, args=("submit", False)) for _ in range(4)]
    workers += [threading.Thread(target=work, args=("consume", True)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(DEADLINE_S)
    assert not faults
