"""The tocsin command as a program: usage, help, completion, terminals, tokens, and servers that misbehave."""

import http.server
import json
import os
import pty
import re
import shutil
import socket
import subprocess
import threading

import pytest

from conftest import BIN, DEADLINE_S, ENVIRONMENT, ROOT, run

OK, NO, USAGE, CANNOT_RUN = 0, 1, 2, 3


def tocsin(*arguments, stdin=b"", **environment):
    done = subprocess.run(
        [BIN / "tocsin", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=DEADLINE_S,
        env={**ENVIRONMENT, **environment},
    )
    done.stdout = done.stdout.decode()
    done.stderr = done.stderr.decode()
    return done


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "usage: tocsin COMMAND"),
        (["submt", "t"], 'unknown command "submt"; did you mean "submit"?'),
        (["topic"], "topic what?"),
        (["topic", "sett", "t"], 'did you mean "topic set"?'),
        (["submit"], "TOPIC is missing"),
        (["submit", ""], "TOPIC is empty"),
        (["submit", "t", "x", "y"], '"y" is too much'),
        (["submit", "t", "--inn", "5s"], 'unknown flag "--inn"; did you mean "--in"?'),
        (["submit", "t", "--in"], "--in needs a value: --in DURATION"),
        (["submit", "t", "--in", "5"], '"5" needs a unit'),
        (["submit", "t", "--in", "99999999999w"], "too large"),
        (["submit", "t", "--at", "2026-02-30"], "not in the calendar"),
        (["submit", "t", "--at", "2026-12-01T25:00Z"], "hour 25"),
        (["submit", "t", "--in", "5s", "--at", "@1"], "--in and --at contradict each other"),
        (["submit", "t", "x", "--file", "y"], "PAYLOAD and --file contradict each other"),
        (["submit", "t", "--header", "x"], '"x" is not NAME=VALUE'),
        (["submit", "t", "--header", "x=1", "--header", "x=2"], "x is given twice"),
        (["submit", "t", "--trigger", "tim"], 'did you mean "time"?'),
        (["topic", "set", "t", "--capacity-bytes", "1MB"], '"1MB" is not a size'),
        (["clock", "advance"], "nothing to change: give --by, --to"),
        (["--server", "localhost:7420", "topics"], "begins neither with http:// nor with https://"),
        (["--server", "redis://127.0.0.1:7421", "topics"], "write it as http://127.0.0.1:7420"),
        (["--server", "resp://127.0.0.1:7421", "topics"], "tocsin speaks HTTP; write it as http://127.0.0.1:7420"),
        (["docs", "mann"], 'did you mean "man"?'),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(arguments, message):
    done = tocsin(*arguments)
    assert done.returncode == USAGE
    assert message in done.stderr
    assert done.stdout == ""


def commands():
    words = [line.split("`")[1] for line in (ROOT / "docs/cli.md").read_text().splitlines() if line.startswith("### ")]
    return [name.removeprefix("tocsin ") for name in words]


def test_every_command_has_help():
    overview = run("tocsin", "--help")
    assert overview.returncode == OK
    for command in commands():
        assert command in overview.stdout
        done = run("tocsin", *command.split(), "--help")
        assert done.returncode == OK
        assert done.stdout.startswith(f"tocsin {command}: ")
        assert "Exit status:" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 120


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["docs", "cli"]])
def test_output_that_cannot_be_written_is_no_success(arguments):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BIN / "tocsin", *arguments], stdout=full, stderr=subprocess.PIPE, timeout=DEADLINE_S)
    assert done.returncode == CANNOT_RUN
    assert b"cannot write the output" in done.stderr


def complete(*words):
    script = ROOT / "deploy/completion/tocsin.bash"
    line = " ".join(f"'{word}'" for word in words)
    code = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _tocsin; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_bash_completes_commands_flags_and_values():
    assert {"submit", "topics", "topic"} <= complete("tocsin", "")
    assert complete("tocsin", "top") == {"topics", "topic"}
    assert "pause" in complete("tocsin", "topic", "")
    assert complete("tocsin", "topic", "set", "t", "--back") == {"--backoff", "--backoff-max"}
    assert complete("tocsin", "--server", "submit", "list", "t", "--state", "d") == {"dead", "done"}
    assert "--server" in complete("tocsin", "ack", "t", "--")
    assert complete("tocsin", "docs", "") == {"cli", "man", "bash", "zsh", "fish"}
    assert complete("tocsin", "list", "t", "--state", "=", "de") == {"dead"}
    assert "dead" in complete("tocsin", "list", "t", "--state", "=")
    assert complete("tocsin", "--server", "=", "x", "docs", "b") == {"bash"}
    assert complete("tocsin", "worker", "t", "--", "sh", "--no-such") == set()
    assert not complete("tocsin", "worker", "t", "--", "--") & {"--server", "--help"}


def complete_in_fish(line):
    if not shutil.which("fish"):
        pytest.skip("the program fish is not installed (Debian: fish)")
    code = f"source {ROOT / 'deploy/completion/tocsin.fish'}; complete -C '{line}'"
    done = subprocess.run(["fish", "--no-config", "-c", code], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.stderr == ""
    return {each.split("\t")[0] for each in done.stdout.splitlines()}


def test_fish_completes_commands_flags_and_values():
    assert {"submit", "topics", "topic"} <= complete_in_fish("tocsin ")
    assert complete_in_fish("tocsin top") == {"topics", "topic"}
    assert "pause" in complete_in_fish("tocsin topic ")
    assert complete_in_fish("tocsin topic set t --back") == {"--backoff", "--backoff-max"}
    assert complete_in_fish("tocsin --server submit list t --state d") >= {"dead", "done"}
    assert "--server" in complete_in_fish("tocsin ack t --")
    assert complete_in_fish("tocsin docs ") == {"cli", "man", "bash", "zsh", "fish"}


def test_offline_commands_print_json_where_asked(start, tmp_path):
    file = tmp_path / "tokens"
    made = json.loads(run("tocsin", "token", "create", "--file", file, "--name", "n", "--scope", "admin", "--json").stdout)
    done = run("tocsin", "token", "revoke", "--file", file, made["id"], "--json")
    assert json.loads(done.stdout) == {"revoked": made["id"]}
    server = start()
    assert server.stop() == 0
    report = json.loads(run("tocsin", "journal", "verify", server.folder, "--json").stdout)
    assert (report["jobs_live"], report["damage"]) == (0, [])
    report = json.loads(run("tocsin", "journal", "repair", server.folder, "--json").stdout)
    assert report["output"] == f"{server.folder}.repaired"


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    done = tocsin("topics", "--server", f"http://127.0.0.1:{port}")
    assert done.returncode == CANNOT_RUN
    assert done.stderr == (
        f"tocsin: cannot reach http://127.0.0.1:{port}: connection refused; "
        "is the server running? start it with `make run`\n"
    )


def test_a_server_that_never_answers_is_given_up_on():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = tocsin("submit", "t", "x", "--timeout", "200ms", TOCSIN_SERVER=url)
    assert done.returncode == CANNOT_RUN
    assert "did not answer within 200ms; whether it did what was asked is not known" in done.stderr


class Recorder(http.server.BaseHTTPRequestHandler):
    """Answers everything with `answer`, and keeps what was asked."""

    protocol_version = "HTTP/1.1"
    answer = (200, b'{"topics":[]}')
    seen = None

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        type(self).seen.append(dict(self.headers))
        status, body = self.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET

    def log_message(self, *arguments):
        pass


@pytest.fixture
def recorder():
    handler = type("Handler", (Recorder,), {"seen": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    handler.url = f"http://127.0.0.1:{server.server_port}"
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_tokens_come_from_a_file_or_the_environment(recorder, tmp_path):
    file = tmp_path / "token"
    file.write_text("from-file\n")
    tocsin("topics", TOCSIN_SERVER=recorder.url)
    tocsin("topics", TOCSIN_SERVER=recorder.url, TOCSIN_TOKEN="from-variable")
    tocsin("topics", "--token-file", file, TOCSIN_SERVER=recorder.url, TOCSIN_TOKEN="from-variable")
    tocsin("topics", TOCSIN_SERVER=recorder.url, TOCSIN_TOKEN_FILE=str(file))
    seen = [request.get("Authorization") for request in recorder.seen]
    assert seen == [None, "Bearer from-variable", "Bearer from-file", "Bearer from-file"]
    file.write_text("a\nb")
    assert tocsin("topics", "--token-file", file, TOCSIN_SERVER=recorder.url).returncode == USAGE
    file.write_text("")
    assert tocsin("topics", "--token-file", file, TOCSIN_SERVER=recorder.url).returncode == USAGE
    done = tocsin("topics", "--token-file", tmp_path / "none", TOCSIN_SERVER=recorder.url)
    assert done.returncode == CANNOT_RUN
    assert len(recorder.seen) == 4, "nothing is sent where the token is wrong"


def test_access_tokens_are_asked_for_and_their_scopes_hold(start, tmp_path):
    file = tmp_path / "tokens"

    def create(name, *flags):
        done = tocsin("token", "create", "--file", file, "--name", name, *flags)
        assert done.returncode == OK, done.stderr
        return done.stdout.strip()

    admin, submit = create("a", "--scope", "admin"), create("s", "--scope", "submit")
    narrow = create("n", "--scope", "admin", "--topic-prefix", "shop.")
    server = start("--auth-token-file", file)

    def ends(*words, token=None, **more):
        done = tocsin(*words, TOCSIN_SERVER=server.url, **({} if token is None else {"TOCSIN_TOKEN": token}), **more)
        return done.returncode, done.stderr.split(": ")[1:2]

    told = tocsin("topics", TOCSIN_SERVER=server.url).stderr
    assert "needs an access token: export TOCSIN_TOKEN=..." in told and "AUTH" not in told and "Bearer" not in told
    (tmp_path / "token").write_text(admin + "\n")
    unknown, forbidden, fine = (CANNOT_RUN, ["unauthenticated"]), (CANNOT_RUN, ["forbidden"]), (OK, [])
    rows = [  # without, wrong, submit, narrow, admin
        (["submit", "t", "x"], unknown, unknown, fine, forbidden, fine),
        (["submit", "shop.a", "x"], unknown, unknown, fine, fine, fine),
        (["reserve", "shop.a"], unknown, unknown, forbidden, fine, fine),
        (["topics"], unknown, unknown, forbidden, fine, fine),
        (["stats"], unknown, unknown, forbidden, forbidden, fine),
        (["cluster"], unknown, unknown, forbidden, forbidden, fine),
        (["topic", "get", "t"], unknown, unknown, forbidden, forbidden, fine),
        (["topic", "set", "shop.a", "--attempts", "3"], unknown, unknown, forbidden, fine, fine),
    ]
    for words, *expected in rows:
        for token, ending in zip((None, "tocsin_wrong", submit, narrow, admin), expected, strict=True):
            assert ends(*words, token=token) == ending, (words, token)
    assert ends("stats", "--token-file", tmp_path / "token") == fine
    assert ends("stats", TOCSIN_TOKEN_FILE=str(tmp_path / "token")) == fine


def test_the_resp_port_is_recognised(shared_server):
    done = tocsin("topics", "--server", f"http://127.0.0.1:{shared_server.resp_port}")
    assert done.returncode == CANNOT_RUN and "is this the RESP port?" in done.stderr


@pytest.mark.parametrize(
    "answer, status, message",
    [
        ((200, b"<html>"), CANNOT_RUN, "is it a Tocsin server?"),
        ((200, b"[]"), CANNOT_RUN, "is it a Tocsin server?"),
        ((418, b'{"message":"short and stout"}'), CANNOT_RUN, "is it a Tocsin server?"),
        ((404, b"{}"), CANNOT_RUN, "is it a Tocsin server?"),
        ((502, b'{"message":"Bad Gateway"}'), CANNOT_RUN, "what listens there answered 502"),
        ((503, b"<html>"), CANNOT_RUN, "what listens there answered 503"),
        ((401, b'{"error":{"code":"unauthenticated","message":"who are you?"}}'), CANNOT_RUN,
         "tocsin: unauthenticated: this server needs an access token: export TOCSIN_TOKEN=..."),
        ((503, b'{"error":{"code":"overloaded","message":"later"}}'), CANNOT_RUN, "tocsin: overloaded: later\n"),
        ((418, b'{"error":{"code":"of_the_future","message":"x","field":"f"}}'), CANNOT_RUN,
         "tocsin: of_the_future: x (f)\n"),
        ((404, b'{"error":{"code":"of_the_future","message":"x\\u001b[2J"}}'), NO, "x\\x1b[2J"),
    ],
)  # fmt: skip
def test_answers_that_are_none(recorder, answer, status, message):
    recorder.answer = answer
    done = tocsin("topics", TOCSIN_SERVER=recorder.url)
    assert done.returncode == status
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "words", [["ack", "t", "TOKEN"], ["nack", "t", "TOKEN"], ["extend", "t", "TOKEN"], ["submit", "t", "x"],
              ["topic", "drop", "t", "--yes"], ["export", "t"]])  # fmt: skip
def test_an_answer_of_a_proxy_is_no_success(recorder, words):
    recorder.answer = (502, b'{"message":"Bad Gateway"}')
    done = tocsin(*words, TOCSIN_SERVER=recorder.url)
    assert (done.returncode, done.stdout) == (CANNOT_RUN, "")
    assert "502" in done.stderr


@pytest.mark.parametrize("verb", ["ack", "nack", "extend"])
def test_every_token_needs_an_answer(recorder, verb):
    recorder.answer = (200, b'{"results":[{"token":"a","outcome":"ok"}]}')
    assert tocsin(verb, "t", "a", TOCSIN_SERVER=recorder.url).returncode == OK
    done = tocsin(verb, "t", "a", "b", TOCSIN_SERVER=recorder.url)
    assert done.returncode == CANNOT_RUN
    assert "2 delivery tokens" in done.stderr


def test_help_as_the_value_of_a_flag_is_a_value(recorder):
    recorder.answer = (200, b'{"results":[{"token":"a","outcome":"ok"}]}')
    assert tocsin("nack", "t", "a", "--reason", "--help", TOCSIN_SERVER=recorder.url).stdout == "a ok\n"


def test_nothing_that_a_server_sends_steers_the_terminal(recorder):
    evil = "\x9b2J\x7f\u202e"
    recorder.answer = (200, json.dumps({"results": [{"token": evil, "outcome": evil}]}).encode())
    for words in (["ack", "t", "a"], ["ack", "t", "a", "--json"]):
        done = tocsin(*words, TOCSIN_SERVER=recorder.url)
        assert done.stdout and not set(evil) - set("2J") & set(done.stdout), done.stdout
    assert json.loads(done.stdout)["token"] == evil


def on_a_terminal(arguments, typed=b"", **environment):
    """Runs tocsin with stdin, stdout and stderr on a terminal: its exit status and all that it showed."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [BIN / "tocsin", *map(str, arguments)],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**ENVIRONMENT, "TERM": "xterm", **environment},
    )
    os.close(follower)
    os.write(leader, typed)
    shown = b""
    try:
        while part := os.read(leader, 4096):
            shown += part
    except OSError:  # how a terminal says that its last user is gone
        pass
    os.close(leader)
    return process.wait(DEADLINE_S), shown.decode()


def test_colours_are_for_terminals(shared_server):
    at = ["--server", shared_server.url]
    assert "\x1b[" in on_a_terminal(["submit", "colours", "x", *at])[1]
    assert "\x1b[" not in on_a_terminal(["submit", "colours", "x", *at], NO_COLOR="1")[1]
    assert "\x1b[" not in on_a_terminal(["submit", "colours", "x", *at], TERM="dumb")[1]
    assert "\x1b[" not in tocsin("submit", "colours", "x", *at).stdout


def test_a_payload_does_not_steer_the_terminal(shared_server):
    at = ["--server", shared_server.url]
    evil = "\x1b]0;owned\x07\x1b[2J"
    tocsin("submit", "evil", evil, "--id", "e", "--in", "1h", "--header", f"h={evil}", *at)
    for words in (["get", "evil", "e"], ["list", "evil"]):
        done = tocsin(*words, *at)
        assert "\x1b" not in done.stdout and "\x07" not in done.stdout
        assert "\\x1b[2J" in done.stdout


def test_purge_and_drop_ask_on_a_terminal(shared_server):
    at = ["--server", shared_server.url]
    tocsin("submit", "asked", "x", "--in", "1h", *at)
    status, shown = on_a_terminal(["topic", "purge", "asked", *at], typed=b"n\n")
    assert status == NO
    assert "Remove all scheduled and dead jobs of asked? [y/N]" in shown
    assert on_a_terminal(["topic", "purge", "asked", *at], typed=b"\n")[0] == NO
    status, shown = on_a_terminal(["topic", "purge", "asked", *at], typed=b"y\n")
    assert status == OK
    assert "1 job is removed" in shown
    assert on_a_terminal(["topic", "drop", "asked", *at], typed=b"y\n")[0] == OK
    assert tocsin("topic", "get", "asked", *at).returncode == NO


def test_an_operation_asks_on_a_terminal_and_shows_how_far_it_is(shared_server):
    at = ["--server", shared_server.url]
    tocsin("topic", "drop", "operated", "--yes", *at)
    for _ in range(12):
        tocsin("submit", "operated", "x", "--in", "1h", *at)
    cancel = ["operate", "operated", "cancel", "--state", "scheduled", "--rate", 12, *at]
    for answer in (b"n\n", b"\n"):
        status, shown = on_a_terminal(cancel, typed=answer)
        assert status == NO
        assert "cancel 12 jobs of operated? [y/N]" in shown
    refused = tocsin(*map(str, cancel))
    assert refused.returncode == USAGE and "add --yes to confirm" in refused.stderr
    assert json.loads(tocsin("topic", "get", "operated", "--json", *at).stdout)["figures"]["scheduled"] == 12
    status, shown = on_a_terminal(cancel, typed=b"y\n")
    assert status == OK
    assert re.search(r"looked at \d+ jobs .*\[#* *\] \d+ %", shown), shown
    assert "cancelled: 12" in shown


def test_to_redrive_all_dead_letters_asks_on_a_terminal(shared_server):
    at = ["--server", shared_server.url]
    tocsin("topic", "drop", "redriven", "--yes", *at)
    tocsin("submit", "redriven", "x", "--id", "a", *at)
    job = json.loads(tocsin("reserve", "redriven", "--json", "--wait", "10s", *at).stdout)
    tocsin("nack", "redriven", job["token"], "--dead", *at)
    status, shown = on_a_terminal(["dead", "redrive", "redriven", *at], typed=b"n\n")
    assert status == NO
    assert "Make all dead letters of redriven due again? [y/N]" in shown
    assert tocsin("dead", "redrive", "redriven", *at).returncode == USAGE
    assert on_a_terminal(["dead", "redrive", "redriven", *at], typed=b"y\n")[0] == OK
    assert tocsin("dead", "redrive", "redriven", "a", *at).returncode == NO, "it is due again already: nobody is asked for one"
