"""What Redis clients send besides: greetings, names, descriptions of commands, INFO, and what is not here."""

import os
import pty
import re
import select
import subprocess
import termios
import time

import pytest
import redis

from conftest import DEADLINE_S, ENVIRONMENT, ROOT, run
from resp_wire import Error, Simple, Wire, pack
from test_auth import create

COMMANDS = {
    "alert.list", "job.submit", "job.msubmit", "job.reserve", "job.ack", "job.nack", "job.extend", "job.cancel", "job.amend",
    "job.fire", "job.count", "job.get", "job.list", "job.tally", "job.operate", "operation.list", "operation.get",
    "operation.stop", "load", "topic.load", "job.redrive", "dead.redrive", "dead.remove",
    "lease.list", "lease.all", "lease.revoke", "topic.set", "topic.get", "topic.list",
    "topic.pause", "topic.resume", "topic.purge", "topic.drop", "topic.test", "clock.advance", "ping", "echo", "auth", "hello", "command",
    "client", "info", "nodes", "select", "quit", "reset",
}


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def wire(request, shared_server):
    with Wire(shared_server, request.param) as one:
        yield one


def test_the_banner_names_the_address(start):
    server = start(terminal=True)
    line = next(line for line in server.banner if line.startswith("resp "))
    assert line.startswith(f"resp     127.0.0.1:{server.resp_port}")


def test_ping(wire):
    reply = wire.call("PING")
    assert reply == "PONG" and type(reply) is Simple
    assert wire.call("ping", b"\x00hello") == b"\x00hello"


def test_hello_says_who_we_are_and_changes_the_protocol(shared_server):
    with Wire(shared_server) as wire:
        for protocol in (2, 3, 2):
            told = wire.hello(protocol)
            assert told["server"] == b"tocsin" and told["proto"] == protocol
            assert (told["mode"], told["role"], told["modules"]) == (b"standalone", b"master", [])
            assert re.fullmatch(rb"\d+\.\d+\.\d+.*", told["version"])
            assert told["id"] == wire.call("CLIENT", "ID") > 0
            assert wire.map(wire.call("HELLO"))["proto"] == protocol, "without an argument it changes nothing"
        assert wire.map(wire.call("hello", 2, "setname", "me"))["proto"] == 2
        assert wire.call("CLIENT", "GETNAME") == b"me"


def test_client(wire):
    assert wire.call("CLIENT", "GETNAME") in (b"", None)
    assert wire.call("client", "setname", "worker-1") == "OK"
    assert wire.call("CLIENT", "GETNAME") == b"worker-1"
    assert wire.call("CLIENT", "SETINFO", "LIB-NAME", "x") == "OK"
    assert wire.call("CLIENT", "SETINFO", "LIB-VER", "1.0") == "OK"
    told = wire.call("CLIENT", "INFO").decode()
    assert f"id={wire.call('CLIENT', 'ID')} " in told and "name=worker-1" in told
    for name in ("a b", "a\nid=1", "x" * 10_000):
        assert isinstance(wire.call("CLIENT", "SETNAME", name), Error), "CLIENT INFO could not show it"
        assert isinstance(wire.call("HELLO", wire.protocol, "SETNAME", name), Error)
    assert wire.call("CLIENT", "GETNAME") == b"worker-1"


def test_ids_of_connections_differ(shared_server):
    with Wire(shared_server) as one, Wire(shared_server) as other:
        assert one.call("CLIENT", "ID") != other.call("CLIENT", "ID")


def test_select_reset_quit(wire):
    assert wire.call("SELECT", 0) == "OK"
    assert wire.call("SELECT", 1).code == "INVALID"
    wire.call("CLIENT", "SETNAME", "me")
    wire.send("RESET")
    wire.protocol = 2
    assert wire.read() == Simple("RESET")
    assert wire.map(wire.call("HELLO"))["proto"] == 2
    assert wire.call("CLIENT", "GETNAME") in (b"", None)
    wire.send_raw(b"*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n")
    assert wire.read() == "OK"
    assert wire.read_all() == b"", "what comes behind QUIT is not answered"


def test_commands_are_described(wire):
    names = {name.decode() for name in wire.call("COMMAND", "LIST")}
    assert {name.lower() for name in names} == COMMANDS
    assert wire.call("COMMAND", "COUNT") == len(names)
    everything = wire.call("COMMAND")
    assert len(everything) == len(names)
    assert wire.call("COMMAND", "INFO") == everything
    [submit, nothing] = wire.call("COMMAND", "INFO", "JOB.SUBMIT", "GET")
    assert submit[0].lower() == b"job.submit" and submit[1] == -3 and isinstance(submit[2], list) and len(submit) >= 6
    assert nothing is None
    docs = wire.map(wire.call("COMMAND", "DOCS"))
    assert {name.lower() for name in docs} == COMMANDS
    for name, told in docs.items():
        told = wire.map(told)
        assert told["summary"], name
        for argument in told.get("arguments", []):
            assert wire.map(argument)["name"], name
    assert list(wire.map(wire.call("COMMAND", "DOCS", "job.reserve", "nothing"))) in (["job.reserve"], ["JOB.RESERVE"])


def test_the_page_has_every_command_with_its_syntax(shared_server):
    page = dict(re.findall(r"^- `([A-Z.]+)(?: (.*?))?`$", (ROOT / "docs/resp.md").read_text(), re.M))
    with Wire(shared_server, 3) as wire:
        for name, told in wire.map(wire.call("COMMAND", "DOCS")).items():
            arguments = wire.map(told).get("arguments", [{b"display_text": b""}])
            assert page.pop(name.upper()) == " ".join(one[b"display_text"].decode() for one in arguments), name
    assert page == {}


@pytest.mark.parametrize("name", sorted(COMMANDS - {"quit", "reset"}))
def test_arities_are_true(shared_server, name):
    """A client may refuse a call by itself by what COMMAND INFO says."""
    with Wire(shared_server) as wire:
        [told] = wire.call("COMMAND", "INFO", name)
        arity = told[1]
        if arity not in (1, -1):
            reply = wire.call(name, *["1"] * (abs(arity) - 2))
            assert isinstance(reply, Error) and "used as" in reply, reply
        reply = wire.call(name, *["1"] * (abs(arity) - 1))
        assert not isinstance(reply, Error) or "used as" not in reply, reply


def test_info(wire, shared_server, client):
    wire.call("JOB.SUBMIT", f"info-{wire.protocol}", "p")
    text = wire.call("INFO").decode()
    sections = re.findall(r"^# (\w+)\r$", text, re.M)
    assert [name.lower() for name in sections] == ["server", "totals", "lateness", "conservation"]
    told = dict(re.findall(r"^(\w+):(.*)\r$", text, re.M))
    stats = client.get(shared_server.url + "/v1/stats").json()
    assert told["tocsin_version"] == stats["version"]
    assert (told["redis_mode"], told["role"], told["loading"]) == ("standalone", "master", "0")
    for name in ("now_ms", "uptime_ms", "shards", "connections", "topics"):
        assert told[name].isdigit(), name
    assert int(told["topics"]) == stats["topics"]
    assert {f"totals_{name}": str(value) for name, value in stats["totals"].items()}.items() <= told.items()
    assert told["conservation_difference"] == "0"
    assert "lateness_ms_p50" in told and "lateness_ms_count" in told
    only = wire.call("INFO", "totals").decode()
    assert "totals_accepted:" in only and "tocsin_version" not in only
    assert "tocsin_version" in wire.call("info", "SERVER").decode()


@pytest.mark.parametrize("name,instead", [
    ("SUBSCRIBE", "JOB.RESERVE"), ("PSUBSCRIBE", "JOB.RESERVE"), ("SSUBSCRIBE", "JOB.RESERVE"), ("PUBLISH", "pub/sub"),
    ("UNSUBSCRIBE", "pub/sub"), ("MULTI", "transaction"), ("EXEC", "transaction"), ("WATCH", "transaction"),
    ("DISCARD", "transaction"),
])
def test_what_is_not_here_is_refused_with_what_to_use_instead(wire, name, instead):
    for spelled in (name, name.lower()):
        reply = wire.call(spelled, "x")
        assert reply.code == "ERR" and f"unknown command '{spelled}'" in reply and instead in reply, reply
    wire.call("DISCARD")
    assert wire.call("PING") == "PONG"


@pytest.mark.parametrize("end", ["EXEC", "DISCARD", "RESET"])
def test_nothing_of_a_transaction_is_done(wire, shared_server, end):
    """Its client is told that it failed, and would submit the jobs again."""
    topic = f"transaction-{end}-{wire.protocol}"
    wire.call("TOPIC.SET", topic)
    wire.send_raw(pack("MULTI") + pack("JOB.SUBMIT", topic, "p", "ID", "x") + pack("PING") + pack(end))
    refused = [wire.read() for _ in range(3)]
    assert all(isinstance(reply, Error) and reply.code == "ERR" for reply in refused), refused
    assert "its MULTI was refused" in refused[1]
    assert wire.read() == "RESET" if end == "RESET" else wire.read() is not None
    with Wire(shared_server) as other:
        assert other.call("JOB.GET", topic, "x") is None
        assert other.call("PING") == "PONG"


def test_unknown_commands(wire):
    assert wire.call("GET", "x").startswith("ERR unknown command 'GET'")
    near = wire.call("JOB.SUBMITT", "t", "p")
    assert near.startswith("ERR unknown command 'JOB.SUBMITT'") and "JOB.SUBMIT" in near.split("'", 2)[2]
    odd = wire.call(b"a\r\nb\x00" + b"x" * 5000)
    assert odd.code == "ERR" and len(odd) < 400 and "\r" not in odd and "\n" not in odd
    assert wire.call("PING") == "PONG"


def test_errors_are_text_whatever_was_sent(shared_server):
    """A client that decodes its replies must be able to show them."""
    with Wire(shared_server) as wire:
        for words in ([b"\xff\xfe\r\n"], ["JOB.SUBMIT", "t", "p", b"\xff"], ["TOPIC.GET", b"\xff\n"],
                      ["JOB.RESERVE", "t", "MAX", b"\xff"], ["CLIENT", b"\xff"], ["HELLO", b"\xff"]):
            wire.send(*words)
            kind, line = wire._line()
            assert kind == b"-"
            assert line.decode().isprintable(), line


def test_a_change_of_protocol_holds_for_what_comes_after_it(shared_server):
    submit = pack("JOB.SUBMIT", "changing", "p", "TRIGGER", "count", "COUNT", 2)  # its last value is a null
    with Wire(shared_server) as wire:
        wire.call("TOPIC.SET", "changing")
        changes = [pack("HELLO", 3), pack("HELLO", 2), pack("HELLO", 3), pack("RESET")]
        wire.send_raw(b"".join(submit + change for change in changes))
        for after in (3, 2, 3, 2):
            assert wire.read()[1:] == ["accepted", None], "in the protocol before it"
            wire.protocol = after
            assert wire.read() is not None


def test_python_redis_connects_as_it_likes(shared_server):
    client = redis.Redis(port=shared_server.resp_port, client_name="me", socket_timeout=DEADLINE_S)
    assert client.ping()
    assert client.client_getname() in ("me", b"me")
    assert client.info()["role"] == "master"
    assert client.command_count() == len(COMMANDS)
    with pytest.raises(redis.ResponseError, match="Tocsin has no transactions"):
        with client.pipeline(transaction=True) as pipeline:
            pipeline.execute_command("PING").execute()
    with pytest.raises(redis.ResponseError, match="pub/sub"):
        subscription = client.pubsub()
        subscription.subscribe("x")
        subscription.get_message(timeout=DEADLINE_S)
    client.close()
    wrong = redis.Redis(port=shared_server.resp_port, db=1)
    with pytest.raises(redis.ResponseError):
        wrong.ping()


def redis_cli(server, *words, **options):
    return subprocess.run(["redis-cli", "-p", str(server.resp_port), *words], capture_output=True, text=True,
                          timeout=DEADLINE_S, env=ENVIRONMENT, **options)


def test_redis_cli_reads_from_a_pipe(shared_server):
    lines = "".join(f'job.submit piped "line {i}" id p{i}\n' for i in range(50)) + "job.get piped p49\n"
    told = redis_cli(shared_server, "--no-raw", input=lines).stdout
    assert told.count("accepted") == 50 and '"line 49"' in told
    assert redis_cli(shared_server, "-n", "0", "PING").stdout == "PONG\n"


def test_redis_cli_inserts_many(shared_server):
    """redis-cli --pipe ends when its ECHO is answered."""
    mass = "".join(f"*3\r\n$10\r\nJOB.SUBMIT\r\n$4\r\nmass\r\n$1\r\n{i % 10}\r\n" for i in range(1000))
    done = redis_cli(shared_server, "--pipe", input=mass)
    assert done.returncode == 0 and "errors: 0, replies: 1000" in done.stdout, (done.stdout, done.stderr)


def test_redis_cli_shows_hints(shared_server):
    """On a terminal it asks for COMMAND DOCS and shows the arguments while one types.

    redis-cli throws away what is typed before its prompt is back (it sets the terminal up anew for each line), so
    each line waits for the prompt.
    """
    mine, its = pty.openpty()
    termios.tcsetwinsize(its, (24, 200))
    shell = subprocess.Popen(["redis-cli", "-p", str(shared_server.resp_port)], stdin=its, stdout=its, stderr=its,
                             env=ENVIRONMENT | {"TERM": "xterm", "HOME": "/nonexistent"}, start_new_session=True)
    os.close(its)
    seen = await_text(mine, b"", b"> ")
    os.write(mine, b"JOB.SUBMIT ")
    seen = await_text(mine, seen, b"payload")
    os.write(mine, b"hinted x ID h\r")
    seen = await_text(mine, await_text(mine, seen, b"accepted"), b"> ")
    os.write(mine, b"help job.reserve\r")
    await_text(mine, await_text(mine, seen, b"summary:"), b"> ")
    os.write(mine, b"exit\r")
    assert shell.wait(DEADLINE_S) == 0
    os.close(mine)


def await_text(terminal, seen, text):
    end = time.monotonic() + DEADLINE_S
    while text not in seen:
        assert select.select([terminal], [], [], end - time.monotonic())[0], f"{text!r} never came: {seen!r}"
        seen += os.read(terminal, 4096)
    return seen[seen.index(text) + len(text) :]


def test_other_machines_are_served_with_tokens_alone(start, tmp_path):
    folder = ["--data-dir", tmp_path / "data", "--http-listen", "127.0.0.1:0"]
    refused = run("tocsind", *folder, "--resp-listen", "0.0.0.0:0")
    assert refused.returncode == 2 and "resp" in refused.stderr and "authentication" in refused.stderr
    token = create(tmp_path / "tokens", "--scope", "admin")
    server = start("--auth-token-file", tmp_path / "tokens", resp_listen="0.0.0.0:0")
    with Wire(server) as wire:
        assert wire.call("TOPIC.LIST").code == "NOAUTH"
        assert wire.call("AUTH", token) == "OK"
        assert wire.call("TOPIC.LIST") == []


def test_a_busy_port_is_refused(server, tmp_path):
    done = run("tocsind", "--data-dir", tmp_path / "other", "--http-listen", "127.0.0.1:0", "--resp-listen",
               f"127.0.0.1:{server.resp_port}")
    assert done.returncode == 1
    assert f"127.0.0.1:{server.resp_port} is in use" in done.stderr
