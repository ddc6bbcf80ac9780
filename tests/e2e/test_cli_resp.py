"""The tocsin command over RESP: all that test_cli.py asks of it, and that nobody can tell the doors apart."""

import base64
import json
import os
import signal
import socket
import subprocess
import threading

import pytest

from conftest import BIN, DEADLINE_S, ENVIRONMENT, run
from test_cli import *  # noqa: F403  its tests run here once more, with the two fixtures below
from test_cli import CANNOT_RUN, NO, OK, USAGE, Cli

TOKEN = "AAABAAAAAAAAAAEAAAAAAQAA"


def resp_url(server):
    return f"resp://127.0.0.1:{server.resp_port}"


class RespCli(Cli):
    def __init__(self, server):
        self.url = resp_url(server)


@pytest.fixture
def cli(shared):
    return RespCli(shared)


@pytest.fixture
def virtual(start):
    return RespCli(start("--clock", "virtual"))


@pytest.fixture
def both(start):
    """One server, through HTTP and through RESP."""
    server = start("--clock", "virtual", "--shards", "1")
    return Cli(server), RespCli(server)


def same(both, *words, status=OK, **options):
    """What both doors print, which must be the same to the byte."""
    http, resp = [cli(*words, status=status, **options) for cli in both]
    assert resp.stdout == http.stdout
    assert resp.stderr == http.stderr
    return http.stdout


def test_every_look_at_the_server_is_the_same_through_both_doors(both, tmp_path):
    http, resp = both
    topic = "shown"
    http("topic", "set", topic, "--slots", 1, "--attempts", 2, "--retention", "1h")
    http("submit", topic, "plain", "--id", "plain", "--in", "1h")
    http("submit", topic, "q\"\\\n\t\x7f é 日本", "--id", "a/b c", "--key", "k é", "--header", "h=v", "--header", "é==")
    for i, payload in enumerate([b"\xff\x00\xfe", b"", b"\x01" * 8, b"\x01" * 200, bytes(range(256)), b"\r\n$-1\r\n"]):
        resp("submit", topic, "--file", "-", "--id", f"bytes-{i}", "--in", "2h", stdin=payload)
    http("submit", topic, "votes", "--id", "votes", "--trigger", "count", "--count", 3)
    http("submit", topic, "either", "--id", "either", "--trigger", "either", "--count", 2, "--in", "1d")
    http("count", topic, "either", "--event", "one")
    job = resp.one("reserve", topic, "--lease", "12h")
    resp("nack", topic, job["token"], "--in", "0s", "--reason", "no — not yet")
    job = resp.one("reserve", topic, "--lease", "12h")
    http("submit", topic, "gone", "--id", "gone", "--in", "1h")
    http("cancel", topic, "gone")
    ids = ["plain", "votes", "either", "gone", *(f"bytes-{i}" for i in range(6))]
    for as_json in ([], ["--json"]):
        for one in ids:
            same(both, "get", topic, one, *as_json)
        same(both, "get", topic, "a/b c", "--key", "k é", *as_json)
        for state in ("scheduled", "leased", "dead", "done", "cancelled"):
            same(both, "list", topic, "--state", state, "--all", *as_json)
        same(both, "list", topic, "--limit", 3, *as_json)
        same(both, "topics", *as_json)
        same(both, "topic", "get", topic, *as_json)
        same(both, "export", topic)
    assert resp("topics", "--json").stdout.count("\n") == 1
    resp("nack", topic, job["token"])
    assert "no — not yet" not in same(both, "dead", "list", topic, "--json")
    for name, payload in (("bytes-0", b"\xff\x00\xfe"), ("bytes-5", b"\r\n$-1\r\n")):
        shown = resp.one("get", topic, name)
        found = base64.b64decode(shown["payload_base64"]) if "payload_base64" in shown else shown["payload"].encode()
        assert found == payload


def test_stats_are_the_same_but_for_the_time_and_the_connections(both):
    http, resp = both
    http("submit", "t", "x")
    resp("reserve", "t", "--ack")
    one, other = [cli.one("stats") for cli in both]
    for stats in (one, other):
        assert stats.pop("uptime_ms") >= 0 and stats.pop("connections") >= 1
    assert json.dumps(one) == json.dumps(other)
    assert "it balances" in resp("stats").stdout and resp.url in resp("stats").stdout


def test_the_cluster_is_the_same(both):
    one, other = [cli.one("cluster") for cli in both]
    for cluster in (one, other):
        assert cluster["members"][0].pop("heard_ms") > 0
    assert json.dumps(one) == json.dumps(other)
    assert same(both, "cluster", "--groups").count("\n") > 64


CALLS = [
    ["submit", "t", "x", "--id", "i", "--in", "1h"],
    ["submit", "t", "x", "--id", "i", "--in", "1h"],
    ["submit", "t", "other", "--id", "i", "--in", "1h"],
    ["submit", "t", "other", "--id", "i", "--in", "2h", "--on-conflict", "replace"],
    ["submit", "t", "more", "--id", "i", "--on-conflict", "keep"],
    ["amend", "t", "i", "--in", "3h"],
    ["amend", "t", "i", "new"],
    ["amend", "t", "none", "new"],
    ["count", "t", "i", "--event", "e"],
    ["count", "t", "none", "--event", "e"],
    ["fire", "t", "i"],
    ["fire", "t", "none"],
    ["reserve", "t", "--ack", "--json"],
    ["reserve", "t"],
    ["fire", "t", "i"],
    ["cancel", "t", "i"],
    ["get", "t", "none"],
    ["get", "nowhere", "none"],
    ["list", "nowhere"],
    ["topic", "get", "nowhere"],
    ["topic", "pause", "nowhere"],
    ["topic", "drop", "nowhere", "--yes"],
    ["dead", "redrive", "nowhere"],
    ["ack", "t", TOKEN],
    ["nack", "t", TOKEN, TOKEN],
    ["extend", "t", TOKEN],
    ["ack", "nowhere", TOKEN],
    ["ack", "t", "rubbish"],
    ["nack", "t", TOKEN, "DELAY", "5"],
    ["submit", "t", "x", "--attempts", "0"],
    ["submit", "t", "x", "--in", "4000d"],
    ["submit", "t", "x", "--id", "n" * 257],
    ["submit", "a b", "x"],
    ["submit", "t", "x", "--trigger", "either"],
    ["submit", "t", "x", "--header", "h=" + "v" * 9000],
    ["reserve", "t", "--max", "0"],
    ["reserve", "t", "--lease", "13h"],
    ["list", "t", "--limit", "1001"],
    ["list", "t", "--cursor", "rubbish"],
    ["topic", "set", "t", "--slots", "3"],
    ["topic", "set", "t", "--slots", "16"],
    ["topic", "set", "t", "--capacity-jobs", "0", "--lease", "13h"],
    ["topic", "pause", "t"],
    ["topic", "resume", "t"],
    ["topic", "purge", "t", "--yes"],
    ["dead", "purge", "t", "--yes"],
    ["topic", "drop", "t", "--yes"],
    ["clock", "advance", "--by", "1h"],
    ["clock", "advance", "--by", "9999999w"],
]


def test_every_verb_ends_with_the_same_status_and_the_same_code(start, tmp_path):
    """Both run through the same life, each on a server of its own."""
    servers = [start("--clock", "virtual", "--shards", "1", folder=tmp_path / name) for name in ("http", "resp")]
    urls = [servers[0].url, resp_url(servers[1])]
    for words in CALLS:
        http, resp = [run("tocsin", *words, "--server", url) for url in urls]
        assert resp.returncode == http.returncode, (words, http, resp)
        assert (resp.stdout == http.stdout) or words[0] in ("submit", "reserve"), (words, http, resp)
        assert resp.stdout.split()[:1] == http.stdout.split()[:1], (words, http, resp)
        assert resp.stderr.split(": ")[:2] == http.stderr.split(": ")[:2] or "clock" in words, (words, http, resp)


def test_a_payload_over_the_limit_is_the_same_refusal(both):
    for cli in both:
        done = cli("submit", "t", "--file", "-", stdin=b"x" * (2 << 20), status=USAGE)
        assert done.stderr.startswith("tocsin: too_large: "), done.stderr[:300]
        done = cli("submit", "t", "--file", "-", stdin=b"x" * (20 << 20), status=USAGE)  # over that of a whole request
        assert "16777216" in done.stderr


def test_tokens_are_asked_for_and_their_scopes_hold(start, tmp_path):
    file = tmp_path / "tokens"

    def create(name, *flags):
        done = run("tocsin", "token", "create", "--file", file, "--name", name, *flags)
        assert done.returncode == OK, done.stderr
        return done.stdout.strip()

    admin, submit = create("a", "--scope", "admin"), create("s", "--scope", "submit")
    narrow = create("n", "--scope", "admin", "--topic-prefix", "shop.")
    server = start("--auth-token-file", file)

    def tocsin(url, *words, token=None, **more):
        environment = ENVIRONMENT | ({} if token is None else {"TOCSIN_TOKEN": token}) | more
        done = subprocess.run([BIN / "tocsin", *words], capture_output=True, text=True, timeout=DEADLINE_S,
                              env=environment | {"TOCSIN_SERVER": url})
        return done.returncode, done.stderr.split(": ")[1:2]

    (tmp_path / "token").write_text(admin + "\n")
    for token in (None, "tocsin_wrong", submit, narrow, admin):
        for words in (["submit", "t", "x"], ["submit", "shop.a", "x"], ["reserve", "shop.a"], ["topics"], ["stats"], ["cluster"],
                      ["topic", "get", "t"], ["topic", "set", "shop.a", "--attempts", "3"]):
            http, resp = [tocsin(url, *words, token=token) for url in (server.url, resp_url(server))]
            assert resp == http, (token, words)
    for url in (server.url, resp_url(server)):
        told = run("tocsin", "topics", "--server", url).stderr
        assert "needs a token: export TOCSIN_TOKEN=..." in told and "AUTH" not in told and "Bearer" not in told
    assert tocsin(resp_url(server), "topics", token="tocsin_wrong") == (CANNOT_RUN, ["unauthenticated"])
    assert tocsin(resp_url(server), "stats", token=submit) == (CANNOT_RUN, ["forbidden"])
    assert tocsin(resp_url(server), "stats", "--token-file", tmp_path / "token") == (OK, [])
    assert tocsin(resp_url(server), "stats", TOCSIN_TOKEN_FILE=str(tmp_path / "token")) == (OK, [])


def lines_of(*jobs):
    return "".join(json.dumps(job) + "\n" for job in jobs)


def test_what_was_exported_through_one_door_is_imported_through_the_other(both, tmp_path):
    http, resp = both
    for i, payload in enumerate([b"\xff\x00", b"text", b"\x01" * 100]):
        http("submit", "from", "--file", "-", "--id", f"j{i}", "--key", "k", "--header", "h=v", "--in", f"{i + 1}h",
             stdin=payload)
    resp("export", "from", "--output", tmp_path / "jobs")
    done = resp("import", "--topic", "to", tmp_path / "jobs", "--json")
    assert json.loads(done.stdout)["accepted"] == 3
    assert json.loads(resp("import", "--topic", "to", tmp_path / "jobs", "--json").stdout)["duplicate"] == 3
    copies = [http("export", name).stdout.replace(f'"topic":"{name}"', "") for name in ("from", "to")]
    assert sorted(copies[0].splitlines()) == sorted(copies[1].splitlines())


def test_an_import_refuses_the_same_lines_and_stores_the_others(both, tmp_path):
    http, resp = both
    good = [{"id": f"g{i}", "payload": "x" * i, "delay_ms": 1000} for i in range(2500)]
    bad = [{"id": "b1", "delay_ms": -5}, {"id": "b2", "dealy_ms": 5}, {"id": "b3", "delay_ms": "5"}, {"id": "b4", "payload": 7},
           {"id": "b5", "payload_base64": "?"}, {"id": "b6", "payload": "x" * (2 << 20)}, {"id": ""},
           {"id": "b7", "delay_ms": 1.5}, {"id": "b8", "max_attempts": 0}]
    mixed = good[:700] + bad[:5] + good[700:1500] + bad[5:] + good[1500:] + [{"id": "g1", "payload": "other"}]
    (tmp_path / "jobs").write_text(lines_of(*mixed))
    told = {}
    for cli, topic in ((http, "by-http"), (resp, "by-resp")):
        done = cli("import", "--topic", topic, "-", "--json", stdin=(tmp_path / "jobs").read_bytes(), status=NO)
        told[topic] = json.loads(done.stdout)
        assert all(f"line {number}: " in done.stderr for number in told[topic]["refused_lines"])
    assert told["by-resp"] == told["by-http"]
    assert told["by-resp"]["accepted"] == 2500 and told["by-resp"]["refused"] == len(bad)
    assert told["by-resp"]["conflict"] == 1


def test_an_import_finds_the_line_that_no_frame_can_hold(both, tmp_path):
    """The server answers it and closes; what was behind it in the same write is sent again."""
    jobs = [{"id": f"g{i}", "delay_ms": 1000} for i in range(50)]
    jobs.insert(20, {"id": "huge", "payload": "x" * (17 << 20)})
    done = both[1]("import", "--topic", "t", "-", "--json", stdin=lines_of(*jobs).encode(), status=NO)
    told = json.loads(done.stdout)
    assert told["refused_lines"] == [21], done.stderr[:500]
    assert told["accepted"] + told["duplicate"] == 50


def test_a_full_topic_stops_an_import(both):
    _, resp = both
    resp("topic", "set", "full", "--capacity-jobs", 3)
    jobs = lines_of(*({"id": f"j{i}"} for i in range(9)))
    done = resp("import", "--topic", "full", "-", stdin=jobs.encode(), status=CANNOT_RUN)
    assert "line 4: over_capacity" in done.stderr


class Cut:
    """A server that greets as Tocsin does, takes what comes, says something and closes."""

    def __init__(self, said=b""):
        self.commands = b""
        self.connections = 0
        self.said = said
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"resp://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                assert b"HELLO" in connection.recv(65536)
                connection.sendall(b"%1\r\n+server\r\n+tocsin\r\n")
                self.commands += connection.recv(65536)
                connection.sendall(self.said)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(DEADLINE_S)


def test_a_submit_whose_answer_is_lost_is_not_sent_again():
    server = Cut()
    done = run("tocsin", "submit", "t", "x", "--server", server.url)
    server.close()
    assert done.returncode == CANNOT_RUN
    assert "broke off before it answered" in done.stderr and "not known" in done.stderr
    assert server.commands.count(b"JOB.SUBMIT") == 1 and server.connections == 1


def test_what_no_tocsin_server_says_is_told():
    for said in (b"$1\r\nabc\r\n", b"+what\r\n", b"*1\r\n" * 30):
        server = Cut(said)
        done = run("tocsin", "topics", "--server", server.url)
        server.close()
        assert done.returncode == CANNOT_RUN and "something else than it should" in done.stderr, (said, done)


def test_the_port_of_the_other_door_is_told(shared_server):
    http = shared_server.url
    resp = resp_url(shared_server)
    done = run("tocsin", "topics", "--server", http.replace("http", "resp"))
    assert done.returncode == CANNOT_RUN and f"answered in HTTP: try --server {http}" in done.stderr
    done = run("tocsin", "topics", "--server", resp.replace("resp", "http"))
    assert done.returncode == CANNOT_RUN and f"is this the RESP port? then --server {resp}\n" in done.stderr


def test_an_answer_that_never_comes_ends_at_the_timeout(shared):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"resp://127.0.0.1:{silent.getsockname()[1]}"
        done = run("tocsin", "topics", "--server", url, "--timeout", "50ms")
    assert done.returncode == CANNOT_RUN
    assert done.stderr == f"tocsin: {url} did not answer within 50ms\n"


def test_the_wrong_door_and_no_door(shared):
    http, resp = shared.url.removeprefix("http://"), resp_url(shared).removeprefix("resp://")
    done = run("tocsin", "topics", "--server", "resp://" + http, "--timeout", "500ms")
    assert done.returncode == CANNOT_RUN and "resp://" + http in done.stderr, done
    done = run("tocsin", "topics", "--server", "http://" + resp)
    assert done.returncode == CANNOT_RUN and "http://" + resp in done.stderr, done
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"resp://127.0.0.1:{gone.getsockname()[1]}"
    done = run("tocsin", "topics", "--server", url)
    assert done.returncode == CANNOT_RUN and f"cannot reach {url}: connection refused" in done.stderr
    done = run("tocsin", "topics", "--server", "redis://127.0.0.1:7421")
    assert done.returncode == USAGE and "resp://127.0.0.1:7421" in done.stderr


def worker(server, *words):
    return subprocess.Popen([BIN / "tocsin", "worker", "t", "--server", resp_url(server), *words], text=True,
                            errors="replace", env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def await_words(process, words):
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"never said {words}")


def test_a_worker_does_jobs_waits_out_a_restart_and_ends_at_once_by_a_signal(start):
    server = start()
    cli = RespCli(server)
    process = worker(server, "--concurrency", "3", "--", "cat")
    cli("submit", "t", "--file", "-", "--id", "bytes", stdin=b"\xff\x00done")
    await_words(process, "job bytes, attempt 1: ")
    assert server.stop() == 0
    await_words(process, "trying again until it works")
    again = start(listen=f"127.0.0.1:{server.port}", resp_listen=f"127.0.0.1:{server.resp_port}")
    RespCli(again)("submit", "t", "x", "--id", "later")
    await_words(process, "job later, attempt 1: ")
    process.send_signal(signal.SIGTERM)  # while all three wait in a long poll
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == OK and "2 acked, 0 nacked, 0 unsettled" in err
    assert RespCli(again).one("stats")["totals"]["acked"] == 1


def test_a_worker_gives_back_what_fails(start):
    server = start()
    cli = RespCli(server)
    cli("submit", "t", "x", "--id", "j", "--attempts", 1)
    process = worker(server, "--max-jobs", "1", "--json", "--", "sh", "-c", "exit 3")
    out, err = process.communicate(timeout=DEADLINE_S)
    assert json.loads(out)["outcome"] == "dead", (out, err)
    assert cli.one("get", "t", "j")["state"] == "dead"


def test_watch_shows_topics_and_is_broken_off(start):
    server = start()
    RespCli(server)("submit", "t", "x", "--in", "1h")
    done = run("tocsin", "watch", "t", "--server", resp_url(server), "--json", "--interval", "10ms", "--count", "2")
    assert [json.loads(line)["scheduled"] for line in done.stdout.splitlines()] == [1, 1]
    process = subprocess.Popen([BIN / "tocsin", "watch", "--server", resp_url(server), "--interval", "10ms"], text=True,
                               env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert process.returncode == OK


def test_the_demo_through_the_resp_door(tmp_path):
    done = subprocess.run([BIN / "tocsin", "demo", "--door", "resp"], capture_output=True, text=True, timeout=DEADLINE_S,
                          env=ENVIRONMENT | {"TMPDIR": str(tmp_path)})
    assert done.returncode == OK, done.stderr
    assert "both receipts are confirmed" in done.stdout
    assert list(tmp_path.iterdir()) == []
