"""What the RESP door says to people: messages that name what to do, and the words of Redis that redis-cli looks for."""

import re
import subprocess

import pytest

from conftest import ENVIRONMENT
from resp_wire import Wire
from test_auth import create

TOKEN = "AAABAAAAAAAAAAEAAAAAAQAA"


@pytest.fixture
def wire(shared_server):
    with Wire(shared_server) as one:
        yield one


@pytest.mark.parametrize(
    "words, message",
    [
        (["SUBMIT", "t", "x"], 'did you mean "JOB.SUBMIT"?'),
        (["TOPIC.DELETE", "t"], 'did you mean "TOPIC.DROP"?'),
        (["WAIT", "0", "0"], "see COMMAND LIST"),
        (["JOB.SUBMIT", "t", "x", "DELAY"], "DELAY needs a value"),
        (["JOB.SUBMIT", "t", "x", "HEADER", "a"], "HEADER needs 2 values, and has 1"),
        (["JOB.MSUBMIT", "t", "a", "b", "c"], "DELAY ms or AT ms has to stand behind the topic"),
        (["JOB.ACK", "t", "TOKEN"], "'TOKEN' is not a delivery token that a reserve gave out$"),
        (["JOB.NACK", "t", TOKEN, "IN", "5"], "nor an option; the options are DELAY, DEAD, REASON$"),
        (["JOB.NACK", "t", TOKEN, "DELAY", "5", "BOGUS"], "'BOGUS' is not a delivery token that a reserve gave out, nor an option"),
        (["CLIENT", "LIST"], "unknown subcommand 'LIST'"),
        (["CLIENT", "ID", "x"], "does not take 1 argument$"),
        (["COMMAND", "GETKEYS"], "unknown subcommand 'GETKEYS'"),
    ],
)
def test_a_message_says_what_to_do(wire, words, message):
    assert re.search(re.sub(r"([?.])", r"\\\1", message), wire.call(*words)), wire.call(*words)


def test_commands_are_as_old_as_the_program(wire):
    version = wire.hello(3)["version"]
    assert {about[b"since"] for about in wire.call("COMMAND", "DOCS").values()} == {version}


def test_info_has_what_redis_cli_stat_shows(shared_server, wire):
    told = dict(re.findall(r"^(\w+):(\d+)\r$", wire.call("INFO", "server").decode(), re.M))
    assert int(told["used_memory"]) > 1 << 20
    assert told["connected_clients"] == told["connections"]
    assert int(told["total_connections_received"]) >= 1
    with Wire(shared_server) as waiting:
        before = int(told["total_commands_processed"])
        wire.call("JOB.SUBMIT", "stat", "x")
        assert int(re.search(r"total_commands_processed:(\d+)", wire.call("INFO").decode())[1]) > before
        assert waiting.call("JOB.RESERVE", "stat")
    # A line a second: without stdbuf they would come when a pipe's buffer is full, after most of a minute.
    shown = subprocess.Popen(["stdbuf", "-oL", "redis-cli", "-p", str(shared_server.resp_port), "--stat"], text=True,
                             env=ENVIRONMENT, stdout=subprocess.PIPE)
    lines = [shown.stdout.readline() for _ in range(3)]
    shown.kill()
    shown.wait()
    shown.stdout.close()
    assert re.fullmatch(r"0 +[\d.]+M +\d+ +0 +\d+ \(\+0\) +\d+ +\n", lines[2]), lines


def test_sections_of_info_stand_apart(wire):
    for words in (["totals"], ["lateness", "conservation"], []):
        text = wire.call("INFO", *words).decode()
        assert text.startswith("# ") and text.count("\r\n\r\n") == text.count("# ") - 1, text


def test_the_banner_shows_redis_cli_with_the_token(start, tmp_path):
    create(tmp_path / "tokens", "--scope", "submit")
    server = start("--auth-token-file", tmp_path / "tokens", terminal=True)
    assert any(f"(REDISCLI_AUTH=$TOCSIN_TOKEN redis-cli -p {server.resp_port})" in line for line in server.banner)
    other = start(folder=tmp_path / "other", terminal=True)
    assert any(f"(redis-cli -p {other.resp_port})" in line for line in other.banner)
