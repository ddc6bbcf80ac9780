"""The tocsin command: every verb against a real server, its messages and its exit statuses."""

import base64
import json
import subprocess

import httpx
import pytest

from conftest import BIN, DEADLINE_S, ENVIRONMENT, Server, run

OK, NO, USAGE, CANNOT_RUN = 0, 1, 2, 3
NO_ALERTS = {
    "alert_due_jobs": 0, "alert_late_ms": 0, "alert_stalled_ms": 0, "alert_attempts": 0, "alert_push_failures": 0,
    "alert_dead_jobs": 0, "alert_future_jobs": 0, "alerts_off": False,
}  # fmt: skip


class Cli:
    """Runs tocsin against one server."""

    def __init__(self, server):
        self.url = server.url

    def __call__(self, *arguments, status=OK, stdin=b"", stdout=subprocess.PIPE):
        done = subprocess.run(
            [BIN / "tocsin", "--server", self.url, *map(str, arguments)],
            input=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=DEADLINE_S * 2,
            env=ENVIRONMENT,
        )
        done.stdout = (done.stdout or b"").decode()
        done.stderr = done.stderr.decode()
        assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def lines(self, *arguments, status=OK, **options):
        """The objects that --json prints."""
        done = self(*arguments, "--json", status=status, **options)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def one(self, *arguments, **options):
        [line] = self.lines(*arguments, **options)
        return line


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("cli") / "data")
    yield server
    assert server.stop() == 0, "".join(server.errors)


@pytest.fixture
def topic(request):
    """A topic of the test's own."""
    return request.node.name[:80]


@pytest.fixture
def cli(shared):
    return Cli(shared)


@pytest.fixture
def virtual(start):
    return Cli(start("--clock", "virtual"))


def test_the_life_of_a_job(cli, topic):
    stored = cli("submit", topic, "hello", "--in", "50ms").stdout
    assert stored.startswith("accepted ")
    assert "(in 50ms)" in stored
    shown = cli("reserve", topic, "--wait", "20s").stdout
    fields = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert fields["payload"] == "hello"
    assert fields["attempt"] == "1 of 16"
    assert fields["job"] in stored
    assert "ok" in cli("ack", topic, fields["token"]).stdout
    assert "stale" in cli("ack", topic, fields["token"], status=NO).stdout
    assert "no such job" in cli("cancel", topic, fields["job"], status=NO).stdout


def test_submit_passes_on_all_that_it_takes(cli, topic):
    at = "2030-12-01T09:00:00.250+08:00"
    flags = ["--id", "a b/c", "--key", "k?", "--header", "x=1", "--header=y=a=b", "--attempts", 5, "--at", at]
    job = cli.one("submit", topic, "grüße", *flags)
    assert job == {"id": "a b/c", "due_ms": 1922317200250, "outcome": "accepted"}
    shown = cli.one("get", topic, "a b/c", "--key", "k?")
    assert shown["payload"] == "grüße"
    assert shown["headers"] == {"x": "1", "y": "a=b"}
    assert (shown["key"], shown["max_attempts"], shown["due_ms"]) == ("k?", 5, 1922317200250)
    people = cli("get", topic, "a b/c", "--key", "k?").stdout
    assert "header   y=a=b" in people
    assert "(in " in people


def test_bytes_that_are_no_text_arrive_unharmed(cli, topic, tmp_path):
    data = bytes(range(256)) * 10
    (tmp_path / "body").write_bytes(data)
    cli("submit", topic, "-", "--id", "stdin", stdin=data)
    cli("submit", topic, "--file", tmp_path / "body", "--id", "file")
    cli("submit", topic, "--file=-", "--id", "dash", stdin=b"text")
    assert base64.b64decode(cli.one("get", topic, "stdin")["payload_base64"]) == data
    assert base64.b64decode(cli.one("get", topic, "file")["payload_base64"]) == data
    assert cli.one("get", topic, "dash")["payload"] == "text"
    assert "2.5 KiB that are no text" in cli("get", topic, "stdin").stdout
    shown = cli("reserve", topic, "--max", "3", "--ack").stdout  # nobody sees it ever again
    assert shown.count("\nbase64   " + base64.b64encode(data).decode()) == 2


def test_a_job_may_have_no_payload(cli, topic):
    job = cli.one("submit", topic)
    assert job["outcome"] == "accepted"
    assert cli.one("get", topic, job["id"])["payload"] == ""


def test_submitting_an_id_again(cli, topic):
    cli("submit", topic, "x", "--id", "a", "--in", "1h")
    assert cli.one("submit", topic, "x", "--id", "a", "--in", "1h")["outcome"] == "duplicate"
    assert cli("submit", topic, "y", "--id", "a", "--in", "1h", status=NO).stdout == "conflict a\n"
    assert cli.one("submit", topic, "y", "--id", "a", "--in", "1h", "--on-conflict", "keep")["outcome"] == "duplicate"
    assert cli.one("submit", topic, "y", "--id", "a", "--on-conflict", "replace")["outcome"] == "accepted"
    assert cli.one("reserve", topic)["payload"] == "y"
    assert cli.one("submit", topic, "z", "--id", "a", "--on-conflict=replace", status=NO)["outcome"] == "in_flight"


def test_a_full_topic_is_no_fault_of_the_caller(cli, topic):
    cli("topic", "set", topic, "--capacity-jobs", 1)
    cli("submit", topic, "x", "--in", "1h")
    done = cli("submit", topic, "x", "--in", "1h", status=CANNOT_RUN)
    assert "over_capacity" in done.stderr


def test_reserve_where_nothing_is_due(cli, topic):
    cli("submit", topic, "later", "--in", "1h")
    done = cli("reserve", topic, status=NO)
    assert (done.stdout, done.stderr) == ("", "tocsin: nothing is due\n")
    assert cli.lines("reserve", topic, "--wait", "10ms", status=NO) == []


def test_reserve_and_ack_at_once(cli, topic):
    for i in range(3):
        cli("submit", topic, f"p{i}")
    jobs = cli.lines("reserve", topic, "--max", 10, "--wait", "20s", "--ack")
    assert sorted(job["payload"] for job in jobs) == ["p0", "p1", "p2"]
    figures = cli.one("topic", "get", topic)["figures"]
    assert (figures["acked"], figures["leased"]) == (3, 0)


def test_what_could_not_be_shown_is_not_acknowledged(cli, topic):
    cli("submit", topic, "x")
    with open("/dev/full", "wb") as full:
        done = cli("reserve", topic, "--wait", "20s", "--ack", status=CANNOT_RUN, stdout=full)
    assert "cannot write the output" in done.stderr
    assert cli.one("topic", "get", topic)["figures"]["acked"] == 0


def test_nack_until_dead_then_redrive_and_purge(virtual):
    virtual("submit", "t", "x", "--id", "a", "--attempts", 2)
    job = virtual.one("reserve", "t")
    assert virtual.one("nack", "t", job["token"], "--in", "5m", "--reason", "the bank sleeps")["outcome"] == "ok"
    shown = virtual.one("get", "t", "a")
    assert (shown["state"], shown["reason"], shown["attempt"]) == ("scheduled", "the bank sleeps", 1)
    assert "(in 5m)" in virtual("get", "t", "a").stdout, "by the server's clock, not this machine's"
    virtual("clock", "advance", "--by", "5m")
    job = virtual.one("reserve", "t")
    assert "dead letter" in virtual("nack", "t", job["token"], "--reason", "still").stdout
    assert "still" in virtual("dead", "list", "t").stdout
    assert [job["id"] for job in virtual.lines("dead", "list", "t")] == ["a"]
    assert virtual("dead", "redrive", "t", "--yes").stdout.startswith("1 job is due again")
    job = virtual.one("reserve", "t")
    virtual("nack", "t", job["token"], "--in", "0s")
    virtual("nack", "t", virtual.one("reserve", "t")["token"])
    virtual("dead", "purge", "t", status=USAGE)
    assert virtual.one("dead", "purge", "t", "--yes") == {"purged": 1}
    assert virtual.lines("dead", "list", "t") == []
    virtual("stats")


def test_extend_keeps_a_lease(virtual):
    virtual("submit", "t", "x")
    token = virtual.one("reserve", "t", "--lease", "10s")["token"]
    virtual("clock", "advance", "--by", "9s")
    assert virtual.one("extend", "t", token, "--lease", "1m")["outcome"] == "ok"
    virtual("clock", "advance", "--by", "50s")
    virtual("ack", "t", token)
    assert virtual.one("extend", "t", token, status=NO)["outcome"] == "stale"


def test_amend_fire_and_cancel(virtual):
    virtual("submit", "t", "x", "--id", "a", "--in", "1h")
    assert "due" in virtual("amend", "t", "a", "--in", "2h").stdout
    assert "(in 2h)" in virtual("get", "t", "a").stdout
    virtual("amend", "t", "a", "another")
    assert virtual.one("get", "t", "a")["payload"] == "another"
    virtual("amend", "t", "a", "--at", "2031-01-01T00:00Z")
    assert virtual.one("get", "t", "a")["due_ms"] == 1924992000000
    done = virtual("amend", "t", "a", status=USAGE)
    assert "--in, --at, PAYLOAD or --file" in done.stderr
    assert virtual("fire", "t", "a").stdout.startswith("fired: it is due now")
    token = virtual.one("reserve", "t")["token"]
    for verb in ("fire", "cancel"):
        assert virtual.one(verb, "t", "a", status=NO)["outcome"] == "in_flight"
    assert virtual.one("amend", "t", "a", "y", status=NO)["outcome"] == "in_flight"
    virtual("ack", "t", token)
    virtual("submit", "t", "x", "--id", "b", "--in", "1h", "--key", "k")
    assert virtual.one("cancel", "t", "b", status=NO)["outcome"] == "unknown", "its key is missing"
    assert virtual.one("cancel", "t", "b", "--key", "k")["outcome"] == "cancelled"


def test_count(virtual):
    virtual("submit", "t", "x", "--id", "a", "--trigger", "count", "--count", 3)
    assert "when its count is reached" in virtual("get", "t", "a").stdout
    assert "when its count is reached" in virtual("list", "t").stdout
    done = virtual("count", "t", "a", "--event", "e1")
    assert done.stdout == "counted\nevents still to come: 2\n"
    assert virtual.one("count", "t", "a", "--event", "e1")["outcome"] == "repeated"
    assert virtual.one("count", "t", "a", "--event", "e2", "--by", 2) == {"outcome": "fired", "left": 0}
    assert virtual.one("reserve", "t")["id"] == "a"
    assert "--event EVENT is missing" in virtual("count", "t", "a", status=USAGE).stderr
    assert virtual.one("count", "t", "none", "--event", "e", status=NO)["outcome"] == "unknown"


def test_list_goes_over_pages(cli, shared, topic):
    jobs = [{"id": f"j{i}", "payload": "x", "delay_ms": 3_600_000} for i in range(2300)]
    assert httpx.post(shared.topic(topic) + "/jobs", json={"jobs": jobs}, timeout=DEADLINE_S).status_code == 201
    some = cli("list", topic)
    assert len(some.stdout.splitlines()) == 101, "a heading, and a hundred"
    assert "--all" in some.stderr
    every = cli.lines("list", topic, "--all")
    assert sorted(job["id"] for job in every) == sorted(job["id"] for job in jobs)
    assert len(cli.lines("list", topic, "--limit", 1200)) == 1200
    assert cli("list", topic, "--state", "dead").stdout == f"no dead jobs in {topic}\n"
    cli("list", topic, "--limit", 0, status=USAGE)
    assert "topic_not_found" in cli("list", "nowhere", status=NO).stderr


def test_a_topic_from_set_to_drop(cli, topic):
    settings = ["--slots", 4, "--lease", "1m", "--attempts", 3, "--backoff", "2s", "--backoff-max", "1h30m"]
    settings += ["--capacity-jobs", 100, "--capacity-bytes", "64MiB", "--count", 2, "--retention", "1d"]
    made = cli.one("topic", "set", topic, *settings)
    assert made == {
        "topic": topic, "slots": 4, "capacity_jobs": 100, "capacity_bytes": 64 << 20, "lease_ms": 60000,
        "max_attempts": 3, "backoff_base_ms": 2000, "backoff_max_ms": 5400000, "count_limit": 2,
        "retention_ms": 86400000, "paused": False, "delivery": {"sink": "pull"}, **NO_ALERTS,
    }  # fmt: skip
    assert cli.one("topic", "set", topic, "--lease", "2m") == {**made, "lease_ms": 120000}
    assert cli.one("topic", "set", topic, "--paused", "yes")["paused"] is True
    cli("topic", "set", topic, "--slots", 8, status=NO)
    people = cli("topic", "get", topic).stdout
    assert "backoff-max         1h30m\n" in people
    assert "capacity-bytes      64 MiB\n" in people
    cli("topic", "resume", topic)
    cli("submit", topic, "x")
    cli("topic", "pause", topic)
    cli("reserve", topic, status=NO)
    assert any(line.startswith(topic) and line.endswith("paused") for line in cli("topics").stdout.splitlines())
    assert "--yes" in cli("topic", "purge", topic, status=USAGE).stderr
    assert cli.one("topic", "purge", topic, "--yes") == {"purged": 1}
    assert "--yes" in cli("topic", "drop", topic, status=USAGE).stderr
    cli("topic", "drop", topic, "--yes")
    for words in (["get"], ["pause"], ["resume"], ["purge", "--yes"], ["drop", "--yes"]):
        verb, *flags = words
        assert "topic_not_found" in cli("topic", verb, topic, *flags, status=NO).stderr
    assert topic not in [one["topic"] for one in cli.lines("topics")]


def test_stats_balance(virtual):
    assert "no topics yet" in virtual("topics").stdout
    for i in range(4):
        virtual("submit", "t", i, "--id", f"j{i}")
    virtual("cancel", "t", "j0")
    virtual("reserve", "t", "--max", 2, "--ack")
    out = virtual("stats").stdout
    assert "recovered 0 + accepted 4 = scheduled 1 + leased 0 + dead 0 + acked 2 + cancelled 1 + purged 0\n" in out
    assert "4 = 4: it balances" in out
    stats = virtual.one("stats")
    assert stats["conservation"] == {"in": 4, "out": 4, "difference": 0}


def test_the_embedded_store_is_a_cluster_of_one(virtual):
    cluster = virtual.one("cluster")
    assert cluster["store"] == "journal"
    assert cluster["coordinator"] == {"kind": "local", "connected": True, "state": "connected"}
    [member] = cluster["members"]
    assert member["id"] == cluster["node"] and member["self"] and member["groups"] == 64
    assert member["heard_ms"] >= member["joined_ms"] > 0
    assert [group["group"] for group in cluster["groups"]] == list(range(64))
    assert {group["owner"] for group in cluster["groups"]} == {member["id"]}
    out = virtual("cluster").stdout
    assert "store journal, coordination local: connected\n" in out
    assert member["id"] in out and "this one" in out and "GROUP " not in out
    assert "GROUP  OWNER" in virtual("cluster", "--groups").stdout


def test_thirty_days_in_a_second(virtual, cli):
    virtual("submit", "t", "a month later", "--in", "30d")
    virtual("reserve", "t", status=NO)
    assert virtual("clock", "advance", "--by", "30d").stdout.startswith("it is 20")
    assert virtual.one("reserve", "t")["payload"] == "a month later"
    assert "clock is the real one" in cli("clock", "advance", "--by", "1s", status=NO).stderr


def test_the_server_s_refusals_are_shown_with_code_and_field(cli, topic):
    done = cli("submit", topic, "x", "--attempts", 100000, status=USAGE)
    assert done.stderr.startswith("tocsin: invalid_argument: ")
    assert done.stderr.endswith("(max_attempts)\n")
    done = cli("submit", topic, "x", "--in", "520w", "--id", "\x1b[2J", status=USAGE)
    assert "\x1b" not in done.stderr
    assert cli("get", topic, "none", status=NO).stderr.startswith("tocsin: ")


TOKEN = "AAABAAAAAAAAAAEAAAAAAQAA"
# One life on one server: the words, the exit status, and how the output or the message begins.
CALLS = [
    (["submit", "t", "x", "--id", "i", "--in", "1h"], OK, "accepted i"),
    (["submit", "t", "x", "--id", "i", "--in", "1h"], OK, "duplicate i"),
    (["submit", "t", "other", "--id", "i", "--in", "1h"], NO, "conflict i"),
    (["submit", "t", "other", "--id", "i", "--in", "2h", "--on-conflict", "replace"], OK, "accepted i"),
    (["submit", "t", "more", "--id", "i", "--on-conflict", "keep"], OK, "duplicate i"),
    (["amend", "t", "i", "--in", "3h"], OK, "amended, due 20"),
    (["amend", "t", "i", "new"], OK, "amended\n"),
    (["amend", "t", "none", "new"], NO, "unknown: no such job is stored"),
    (["count", "t", "i", "--event", "e"], NO, "not_counted: "),
    (["count", "t", "none", "--event", "e"], NO, "unknown: no such job is stored"),
    (["fire", "t", "i"], OK, "fired: it is due now, due 20"),
    (["fire", "t", "none"], NO, "unknown: no such job is stored"),
    (["reserve", "t", "--ack", "--json"], OK, '{"id":"i",'),
    (["reserve", "t"], NO, "tocsin: nothing is due"),
    (["fire", "t", "i"], NO, "unknown: "),
    (["cancel", "t", "i"], NO, "unknown: "),
    (["get", "t", "none"], NO, "tocsin: not_found: "),
    (["get", "nowhere", "none"], NO, "tocsin: topic_not_found: "),
    (["list", "nowhere"], NO, "tocsin: topic_not_found: "),
    (["topic", "get", "nowhere"], NO, "tocsin: topic_not_found: "),
    (["topic", "pause", "nowhere"], NO, "tocsin: topic_not_found: "),
    (["topic", "drop", "nowhere", "--yes"], NO, "tocsin: topic_not_found: "),
    (["dead", "redrive", "nowhere", "--yes"], NO, "tocsin: topic_not_found: "),
    (["ack", "t", TOKEN], NO, f"{TOKEN} stale: "),
    (["nack", "t", TOKEN, TOKEN], NO, f"{TOKEN} stale: "),
    (["extend", "t", TOKEN], NO, f"{TOKEN} stale: "),
    (["ack", "nowhere", TOKEN], NO, "tocsin: topic_not_found: "),
    (["ack", "t", "rubbish"], USAGE, "tocsin: invalid_argument: "),
    (["nack", "t", TOKEN, "DELAY", "5"], USAGE, "tocsin: invalid_argument: "),
    (["submit", "t", "x", "--attempts", "0"], USAGE, "tocsin: invalid_argument: "),
    (["submit", "t", "x", "--in", "4000d"], USAGE, 'tocsin: --in: "4000d" is too large'),
    (["submit", "t", "x", "--id", "n" * 257], USAGE, "tocsin: invalid_argument: "),
    (["submit", "a b", "x"], USAGE, "tocsin: invalid_argument: "),
    (["submit", "t", "x", "--trigger", "either"], USAGE, "tocsin: invalid_argument: "),
    (["submit", "t", "x", "--header", "h=" + "v" * 9000], USAGE, "tocsin: too_large: "),
    (["reserve", "t", "--max", "0"], USAGE, "tocsin: invalid_argument: "),
    (["reserve", "t", "--lease", "13h"], USAGE, "tocsin: invalid_argument: "),
    (["list", "t", "--limit", "1001"], OK, "no jobs in t"),
    (["topic", "set", "t", "--slots", "3"], USAGE, "tocsin: invalid_argument: "),
    (["topic", "set", "t", "--slots", "16"], NO, "tocsin: conflict: "),
    (["topic", "set", "t", "--capacity-jobs", "0", "--lease", "13h"], USAGE, "tocsin: invalid_argument: "),
    (["topic", "pause", "t"], OK, "t is paused: "),
    (["topic", "resume", "t"], OK, "t delivers again"),
    (["topic", "purge", "t", "--yes"], OK, "0 jobs are removed"),
    (["dead", "purge", "t", "--yes"], OK, "0 dead letters are removed"),
    (["topic", "drop", "t", "--yes"], OK, "dropped: the topic is removed"),
    (["clock", "advance", "--by", "1h"], OK, "it is 20"),
    (["clock", "advance", "--by", "9999999w"], USAGE, 'tocsin: --by: "9999999w" is too large'),
]


def test_every_verb_ends_with_the_status_that_it_should(virtual):
    for words, status, begin in CALLS:
        done = virtual(*words, status=status)
        assert (done.stdout or done.stderr).startswith(begin), (words, done)


def test_a_payload_over_the_limit_is_refused(cli, topic):
    done = cli("submit", topic, "--file", "-", stdin=b"x" * (2 << 20), status=USAGE)
    assert done.stderr.startswith("tocsin: too_large: "), done.stderr[:300]
    done = cli("submit", topic, "--file", "-", stdin=b"x" * (20 << 20), status=USAGE)  # over that of a whole request
    assert "16777216" in done.stderr


def test_offline_commands_take_no_notice_of_a_server(tmp_path):
    environment = {**ENVIRONMENT, "TOCSIN_SERVER": "nonsense", "TOCSIN_TOKEN_FILE": "/nonexistent"}
    done = subprocess.run([BIN / "tocsin", "docs", "cli"], capture_output=True, env=environment, timeout=DEADLINE_S)
    assert done.returncode == OK
    assert run("tocsin", "journal", "--help").returncode == OK
    assert "journal verify" in run("tocsin", "journal", "--help").stdout
