"""tocsin export and import: copies that are exact, that can be cut off, and that can be repeated."""

import base64
import fcntl
import json
import subprocess
import threading

import pytest

from conftest import BIN, DEADLINE_S, ENVIRONMENT, now_ms, reserve, run, submit
from programs import wait_for
from proxy import Proxy
from resp_wire import Error, Wire
from test_auth import create

HOUR = 3_600_000


def tocsin(server, *words, **options):
    return run("tocsin", words[0], "--server", server.url, *words[1:], **options)


def fill(client, server, topic, count, **job):
    jobs = [{"id": f"{topic}-{i}", "payload": f"p{i}", "delay_ms": 1_000_000 + i} | job for i in range(count)]
    assert client.post(server.topic(topic) + "/jobs", json={"jobs": jobs}).status_code == 201


def listed(client, server, topic, state="scheduled"):
    jobs, cursor = [], None
    while True:
        query = {"state": state, "limit": 1000} | ({"cursor": cursor} if cursor else {})
        page = client.get(server.topic(topic) + "/jobs", params=query).json()
        jobs += page["jobs"]
        cursor = page.get("cursor")
        if not cursor:
            return {job["id"]: job for job in jobs}


def assert_same(jobs, others):
    """Times that are kept as elapsed time may be shown a millisecond off."""
    assert jobs.keys() == others.keys()
    for name, job in jobs.items():
        other = others[name]
        assert job.keys() == other.keys(), (job, other)
        for field, value in job.items():
            near = field.endswith("_ms") and value is not None and other[field] is not None
            assert abs(value - other[field]) <= 1 if near else value == other[field], (field, job, other)


def accepted(client, server, topic):
    return client.get(server.topic(topic)).json()["figures"]["accepted"]


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_copy_on_another_server_is_the_same(start, client, tmp_path):
    one, other = start(folder=tmp_path / "one"), start(folder=tmp_path / "other")
    fill(client, one, "many", 2500)
    submit(client, one, "odd", payload="server's id", delay_ms=10_000_000)
    submit(client, one, "odd", id="k", key="the key", payload="p", delay_ms=10_000_000, headers={"a": "b"}, max_attempts=3)
    submit(client, one, "odd", id="bytes", payload_base64=base64.b64encode(b"\xff\x00").decode(), delay_ms=10_000_000)
    submit(client, one, "odd", id="count", payload="p", trigger="count", count=5)
    submit(client, one, "odd", id="either", payload="p", trigger="either", count=5, delay_ms=10_000_000)
    client.post(one.topic("odd") + "/jobs/count/count", json={"event": "e", "by": 2})
    done = tocsin(one, "export", "--all", "--output", tmp_path / "jobs")
    assert (done.returncode, done.stdout) == (0, f"exported 2505 jobs of 2 topics to {tmp_path}/jobs\n"), done.stderr
    assert not (tmp_path / "jobs.progress").exists()

    done = tocsin(other, "import", tmp_path / "jobs")
    assert (done.returncode, done.stdout) == (0, "2505 accepted, 0 duplicate, 0 conflict, 0 refused\n"), done.stderr
    for topic in ("many", "odd"):
        assert_same(listed(client, other, topic), listed(client, one, topic))
    assert not (tmp_path / "jobs.progress").exists()


def give_back(client, server, job_id, **how):
    """Reserves the only job that is due, and nacks it."""
    job = reserve(client, server, wait_ms=5000)[0]
    assert job["id"] == job_id
    answer = client.post(server.topic("t") + "/nack", json={"tokens": [job["token"]]} | how)
    assert answer.status_code == 200, answer.text


def take(client, server, count):
    """Reserves so many jobs: (id, attempt) of each, by id."""
    jobs = []
    wait_for(lambda: jobs.extend(reserve(client, server, max=10, wait_ms=1000)) or len(jobs) >= count)
    return sorted((job["id"], job["attempt"]) for job in jobs)


def live_a_while(client, server):
    """Jobs with a past: one that waits, one that failed, two that died, one that a consumer has, two that are due."""
    submit(client, server, id="waits", payload="p", delay_ms=HOUR, headers={"a": "b"}, key="the key")
    submit(client, server, id="failed", payload="p", max_attempts=5)
    give_back(client, server, "failed", delay_ms=0, reason="first")
    give_back(client, server, "failed", delay_ms=HOUR, reason="second")
    submit(client, server, id="used up", payload="p", max_attempts=1)
    give_back(client, server, "used up", reason="bank")
    submit(client, server, id="refused", payload="p")
    give_back(client, server, "refused", dead=True)
    submit(client, server, id="leased", payload="p")
    give_back(client, server, "leased", delay_ms=0, reason="once")
    assert [job["attempt"] for job in reserve(client, server, wait_ms=5000, lease_ms=HOUR, consumer="ann")] == [2]
    submit(client, server, id="later", payload="p", due_ms=now_ms() - 1)
    submit(client, server, id="first", payload="p", due_ms=now_ms() - 1, trigger="either", count=1)
    assert take(client, server, 2) == [("first", 1), ("later", 1)]
    client.delete(server.topic("t") + "/leases/later").raise_for_status()
    client.delete(server.topic("t") + "/leases/first").raise_for_status()


@pytest.mark.parametrize("one_on, other_on", [("embedded", "embedded"), ("embedded", "redis"), ("redis", "embedded")])
def test_a_copy_goes_on_where_the_job_was(start, client, tmp_path, request, one_on, other_on):
    def open_on(kind, name):
        redis = request.getfixturevalue("redis_single").flags() if kind == "redis" else []
        return start(*redis, folder=tmp_path / name)

    one, other = open_on(one_on, "one"), open_on(other_on, "other")
    live_a_while(client, one)
    states = ("scheduled", "dead")
    known = {state: listed(client, one, "t", state) for state in (*states, "leased")}
    assert {state: sorted(jobs) for state, jobs in known.items()} == {
        "scheduled": ["failed", "first", "later", "waits"], "dead": ["refused", "used up"], "leased": ["leased"]}
    file = tmp_path / "jobs"
    done = tocsin(one, "export", "t", "--output", file)
    assert (done.returncode, done.stdout) == (0, f"exported 7 jobs of 1 topic to {file}\n"), done.stderr
    assert [line["state"] for line in lines_of(file)].count("dead") == 2
    everything = {name: job | {"topic": "t"} for jobs in known.values() for name, job in jobs.items()}
    assert_same({line["id"]: line for line in lines_of(file)}, everything)

    # Its consumer stays behind; and what has fired waits for no more events.
    leased = known["leased"]["leased"]
    for field in ("lease_deadline_ms", "leased_ms", "extensions", "holder", "last_attempt_ms"):
        del leased[field]
    known["scheduled"]["leased"] = leased | {"state": "scheduled", "attempt": 1}
    del known["scheduled"]["first"]["count_left"]
    known["scheduled"]["first"]["trigger"] = "time"

    def assert_here():
        for state in states:
            assert_same(listed(client, other, "t", state), known[state])

    for outcome in ("7 accepted, 0 duplicate", "0 accepted, 7 duplicate"):
        done = tocsin(other, "import", file)
        assert done.stdout == f"{outcome}, 0 conflict, 0 refused\n", done.stderr
        assert_here()
    figures = client.get(other.topic("t")).json()["figures"]
    assert [figures[name] for name in ("accepted", "scheduled", "leased", "dead", "died")] == [7, 5, 0, 2, 0]
    other.kill()
    other = open_on(other_on, "other")
    assert_here()
    assert take(client, other, 3) == [("first", 2), ("later", 2), ("leased", 2)]
    client.post(other.topic("t") + "/dead/redrive").raise_for_status()
    assert take(client, other, 2) == [("refused", 1), ("used up", 1)]


PAST = {"state": "dead", "attempt": 2, "reason": "no", "created_ms": 1_790_000_000_000, "died_ms": 1_790_000_000_000}


def test_only_administrators_tell_the_past_of_a_job(start, client, tmp_path):
    tokens = {"shop": create(tmp_path / "tokens", "--scope", "submit", name="shop"),
              "team": create(tmp_path / "tokens", "--scope", "admin", "--topic-prefix", "team.", name="team")}
    server = start("--auth-token-file", tmp_path / "tokens")

    def answer_of(who, topic, job):
        headers = {"Authorization": f"Bearer {tokens[who]}"}
        return client.post(server.topic(topic) + "/jobs", json=job, headers=headers)

    for field, value in PAST.items():
        answer = answer_of("shop", "team.t", {"jobs": [{"payload": "new"}, {"payload": "p", field: value}]})
        assert answer.status_code == 403, field
        assert "admin" in answer.json()["error"]["message"]
    assert answer_of("team", "t", PAST).status_code == 403
    with Wire(server, auth=tokens["shop"]) as wire:
        for words in (["STATE", "dead"], ["USED-ATTEMPTS", 1], ["REASON", "r"], ["DIED", 1], ["CREATED", 1], ["LAST-ATTEMPT", 1]):
            refusal = wire.call("JOB.SUBMIT", "team.t", "p", *words)
            assert isinstance(refusal, Error) and "admin" in refusal, words
    assert answer_of("team", "team.t", PAST | {"id": "a"}).status_code == 201
    with Wire(server, auth=tokens["team"]) as wire:
        words = ["STATE", "DEAD", "USED-ATTEMPTS", 2, "REASON", "no", "CREATED", PAST["created_ms"], "DIED", PAST["died_ms"]]
        assert wire.call("JOB.SUBMIT", "team.t", "", "ID", "b", *words)[1] == "accepted"
    client.headers["Authorization"] = f"Bearer {tokens['team']}"
    jobs = {name: job | {"id": ""} for name, job in listed(client, server, "team.t", "dead").items()}
    assert jobs.keys() == {"a", "b"} and abs(jobs["a"].pop("due_ms") - jobs["b"].pop("due_ms")) < 60_000
    assert_same({"": jobs["a"]}, {"": jobs["b"]})
    assert jobs["a"].items() >= PAST.items()

    file = tmp_path / "jobs"
    file.write_text(json.dumps(PAST | {"id": "c", "topic": "team.t", "payload": "p", "delay_ms": HOUR}) + "\n")

    def imported(*flags):
        line = [BIN / "tocsin", "import", "--server", server.url, *flags, file]
        environment = {**ENVIRONMENT, "TOCSIN_TOKEN": tokens["shop"]}
        return subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S, env=environment)

    done = imported()
    assert (done.returncode, done.stdout) == (3, "") and "--as-new" in done.stderr, done.stderr
    done = imported("--as-new")
    assert (done.returncode, done.stdout) == (0, "1 accepted, 0 duplicate, 0 conflict, 0 refused\n"), done.stderr
    new = listed(client, server, "team.t")["c"]
    assert new["attempt"] == 0 and "reason" not in new and new["created_ms"] > PAST["created_ms"]


@pytest.mark.parametrize("field, job", [
    ("attempt", {"attempt": 1001}), ("attempt", {"attempt": -1}), ("state", {"state": "leased"}), ("state", {"state": "done"}),
    ("created_ms", {"created_ms": 1}), ("last_attempt_ms", {"last_attempt_ms": 2**60}),
    ("died_ms", {"died_ms": 1_790_000_000_000}), ("died_ms", {"died_ms": 4_102_444_799_999, "state": "dead"}),
    ("trigger", {"state": "dead", "trigger": "count"}), ("trigger", {"attempt": 1, "trigger": "count", "count": 2}),
])  # fmt: skip
def test_a_past_that_cannot_be_is_refused(shared_server, client, field, job):
    answer = client.post(shared_server.topic("refused") + "/jobs", json={"payload": "p"} | job)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["field"] == field
    answer = client.post(shared_server.topic("refused") + "/jobs", json={"payload": "p", "reason": "x" * 1025})
    assert answer.status_code == 413, answer.text


def test_states_and_pipes(start, client):
    server = start("--clock", "virtual")
    submit(client, server, id="live", payload="p")
    submit(client, server, id="gone", payload="p", max_attempts=1)
    token = next(job["token"] for job in client.post(server.topic("t") + "/reserve", json={"max": 2}).json()["jobs"]
                 if job["id"] == "gone")
    client.post(server.topic("t") + "/nack", json={"tokens": [token], "reason": "no"})
    live = tocsin(server, "export", "t", "--state", "leased", "--state", "scheduled")
    assert [(job["id"], job["state"]) for job in map(json.loads, live.stdout.splitlines())] == [("live", "leased")]
    everything = tocsin(server, "export", "t")
    assert [json.loads(line)["id"] for line in everything.stdout.splitlines()] == ["live", "gone"]
    dead = tocsin(server, "export", "t", "--state", "dead")
    assert [job["id"] for job in map(json.loads, dead.stdout.splitlines())] == ["gone"]
    for topic, flags, state in (("again", [], "dead"), ("anew", ["--as-new"], "scheduled")):
        done = subprocess.run([BIN / "tocsin", "import", "--server", server.url, "--topic", topic, "--json", *flags],
                              input=dead.stdout, text=True, capture_output=True, timeout=DEADLINE_S, env=ENVIRONMENT)
        assert json.loads(done.stdout) == {"accepted": 1, "duplicate": 0, "conflict": 0, "refused": 0, "refused_lines": []}
        assert list(listed(client, server, topic, state)) == ["gone"]


def test_an_export_that_was_cut_off_goes_on(start, client, tmp_path):
    server = start()
    fill(client, server, "t", 3500)
    file = tmp_path / "jobs"
    proxy = Proxy(server, lambda call, _: "before" if call >= 4 else None)  # the topic, then two pages
    cut = tocsin(proxy, "export", "t", "--output", file)
    proxy.close()
    assert cut.returncode == 3
    assert "--resume" in cut.stderr
    whole = len(lines_of(file))
    assert 0 < whole < 3500
    with file.open("a") as tail:
        tail.write('{"half a li')  # as of a run that was killed while it wrote
    assert tocsin(server, "export", "t", "--output", file).returncode == 2
    assert tocsin(server, "export", "t", "--state", "dead", "--output", file, "--resume").returncode == 2
    done = tocsin(server, "export", "t", "--output", file, "--resume")
    assert done.returncode == 0, done.stderr
    ids = [job["id"] for job in lines_of(file)]
    assert len(ids) == 3500 and len(set(ids)) == 3500
    assert tocsin(server, "export", "t", "--output", file, "--resume").returncode == 2


def test_a_place_that_the_server_forgot_is_told(start, client, tmp_path):
    server = start()
    fill(client, server, "t", 2500)
    file = tmp_path / "jobs"
    proxy = Proxy(server, lambda call, _: "before" if call >= 3 else None)
    assert tocsin(proxy, "export", "t", "--output", file).returncode == 3
    proxy.close()
    server.kill()
    server = start(folder=server.folder, listen=f"127.0.0.1:{server.port}")
    kept = file.read_bytes()
    done = tocsin(server, "export", "t", "--output", file, "--resume")
    assert done.returncode == 3
    assert "export again" in done.stderr and f"{file}.progress" in done.stderr
    assert file.read_bytes() == kept


def test_an_export_that_was_cut_off_before_its_first_page_goes_on(start, client, tmp_path):
    server = start()
    fill(client, server, "t", 5)
    file = tmp_path / "jobs"
    proxy = Proxy(server, lambda call, _: "before" if call >= 2 else None)
    assert tocsin(proxy, "export", "t", "--output", file).returncode == 3
    proxy.close()
    assert tocsin(server, "export", "t", "--output", file, "--resume").returncode == 0
    assert len(lines_of(file)) == 5
    file.write_text("")  # as of a run that was killed before it wrote anything
    done = tocsin(server, "export", "t", "--output", file, "--resume", "--json")
    assert json.loads(done.stdout) == {"jobs": 5, "topics": 1, "file": str(file)}
    assert len(lines_of(file)) == 5


def test_an_import_that_was_killed_goes_on_and_stores_nothing_twice(start, client, tmp_path):
    server = start()
    file = tmp_path / "jobs"
    file.write_text("".join(f'{{"topic":"t","payload":"p{i % 7}","delay_ms":1000000}}\n' for i in range(950)))
    # The fourth batch is stored, and nobody is told.
    stuck = threading.Event()
    mended = threading.Event()

    def cut(call, _):
        if call == 4:
            stuck.set()
        return "after" if call >= 4 and not mended.is_set() else None

    proxy = Proxy(server, cut)
    importer = subprocess.Popen([BIN / "tocsin", "import", "--server", proxy.url, "--batch", "100", file],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert stuck.wait(DEADLINE_S)
    while accepted(client, server, "t") < 400:
        pass
    importer.kill()
    importer.communicate(timeout=DEADLINE_S)
    mended.set()
    progress = json.loads((tmp_path / "jobs.progress").read_text())
    assert progress["line"] == 300
    done = tocsin(proxy, "import", "--batch", "100", file)
    proxy.close()
    assert done.returncode == 0, done.stderr
    assert "continuing after line 300" in done.stderr
    assert done.stdout == "850 accepted, 100 duplicate, 0 conflict, 0 refused\n"
    assert accepted(client, server, "t") == 950
    again = tocsin(server, "import", file)
    assert again.stdout == "0 accepted, 950 duplicate, 0 conflict, 0 refused\n"


def test_a_lost_answer_is_asked_for_again(start, client, tmp_path):
    server = start()
    file = tmp_path / "jobs"
    file.write_text("".join(f'{{"topic":"t","payload":"{i}"}}\n' for i in range(20)))
    proxy = Proxy(server, lambda call, _: "after" if call == 1 else None)
    done = tocsin(proxy, "import", "--batch", "10", file)
    proxy.close()
    assert (done.returncode, done.stdout) == (0, "10 accepted, 10 duplicate, 0 conflict, 0 refused\n"), done.stderr


def test_a_gateway_without_its_server_is_asked_again(start, tmp_path):
    server = start()
    file = tmp_path / "jobs"
    file.write_text('{"topic":"t","payload":"p"}\n')
    proxy = Proxy(server, lambda call, _: 502 if call == 1 else None)
    done = tocsin(proxy, "import", file)
    proxy.close()
    assert (done.returncode, done.stdout) == (0, "1 accepted, 0 duplicate, 0 conflict, 0 refused\n"), done.stderr


def test_a_full_topic_stops_an_import_and_keeps_its_place(server, client, tmp_path):
    assert client.put(server.topic("t"), json={"capacity_jobs": 15}).status_code in (200, 201)
    file = tmp_path / "jobs"
    file.write_text("".join(f'{{"id":"j{i}","topic":"t","payload":"p","delay_ms":1000000}}\n' for i in range(30)))
    done = tocsin(server, "import", "--batch", "10", file)
    assert (done.returncode, done.stdout) == (3, "")
    assert "over_capacity" in done.stderr and "the same command again" in done.stderr
    assert json.loads((tmp_path / "jobs.progress").read_text())["line"] == 10
    assert client.put(server.topic("t"), json={"capacity_jobs": 100}).status_code in (200, 201)
    done = tocsin(server, "import", "--batch", "10", file)
    assert done.returncode == 0, done.stderr
    assert len(listed(client, server, "t")) == 30


def test_a_place_belongs_to_one_file_one_server_and_one_topic(server, client, tmp_path):
    client.put(server.topic("t"), json={"capacity_jobs": 2})
    file, progress = tmp_path / "jobs", tmp_path / "jobs.progress"
    lines = "".join(f'{{"id":"j{i}","topic":"t","payload":"p","delay_ms":1000000}}\n' for i in range(9))
    file.write_text(lines)
    assert tocsin(server, "import", "--batch", "2", file).returncode == 3
    assert json.loads(progress.read_text())["line"] == 2

    file.write_text(lines.replace("j0", "x0"))  # as long, and with the same ends of lines
    done = tocsin(server, "import", file)
    assert done.returncode == 2
    assert str(progress) in done.stderr
    file.write_text(lines)
    assert tocsin(server, "import", "--topic", "other", file).returncode == 2
    proxy = Proxy(server, lambda *_: None)
    assert tocsin(proxy, "import", file).returncode == 2
    proxy.close()
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = tocsin(server, "import", file)
        assert done.returncode == 3
        assert "another import" in done.stderr
    progress.write_text('{"bytes":0,"refused_lines":["x"]}')
    assert tocsin(server, "import", file).returncode == 2
    assert list(listed(client, server, "t")) == ["j0", "j1"]


def test_bad_lines_are_named_and_the_others_submitted(server, client, tmp_path):
    file = tmp_path / "jobs"
    lines = [f'{{"id":"j{i}","payload":"p"}}' for i in range(1, 31)]
    lines[2] = "no json"
    lines[6] = '{"id":"j7","payload":"p","dely_ms":5}'
    lines[7] = '{"id":"j8","payload":"p","delay_ms":-5}'
    lines[19] = json.dumps({"id": "j20", "payload": "x" * (2 << 20)})
    lines[24] = '{"id":"j1","payload":"other"}'
    lines[26] = ""
    file.write_text("\n".join(lines))
    done = tocsin(server, "import", "--topic", "t", "--batch", "8", file)
    assert done.returncode == 1
    assert done.stdout == "24 accepted, 0 duplicate, 1 conflict, 4 refused\nrefused: lines 3, 7, 8, 20\n"
    assert "line 7: unknown_field" in done.stderr and "delay_ms" in done.stderr
    assert "line 25: conflict" in done.stderr
    assert set(listed(client, server, "t")) == {f"j{i}" for i in range(1, 31)} - {"j3", "j7", "j8", "j20", "j25", "j27"}


def test_an_import_finds_the_lines_that_are_wrong_among_thousands(server, tmp_path):
    good = [{"id": f"g{i}", "payload": "x" * i, "delay_ms": 1000} for i in range(2500)]
    bad = [{"id": "b1", "delay_ms": -5}, {"id": "b2", "dealy_ms": 5}, {"id": "b3", "delay_ms": "5"}, {"id": "b4", "payload": None},
           {"id": "b5", "payload_base64": "?"}, {"id": "b6", "payload": "x" * (2 << 20)}, {"id": ""},
           {"id": "b7", "delay_ms": 1.5}, {"id": "b8", "max_attempts": 0}]
    mixed = good[:700] + bad[:5] + good[700:1500] + bad[5:] + good[1500:] + [{"id": "g1", "payload": "other"}]
    file = tmp_path / "jobs"
    file.write_text("".join(json.dumps(job) + "\n" for job in mixed))
    done = tocsin(server, "import", "--topic", "t", file, "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert (told["accepted"], told["refused"], told["conflict"]) == (2500, len(bad), 1)
    assert told["refused_lines"] == [*range(701, 706), *range(1506, 1510)]
    assert all(f"line {number}: " in done.stderr for number in told["refused_lines"])


def test_an_import_finds_the_line_that_no_request_can_hold(server, tmp_path):
    jobs = [{"id": f"g{i}", "delay_ms": 1000} for i in range(50)]
    jobs.insert(20, {"id": "huge", "payload": "x" * (17 << 20)})
    file = tmp_path / "jobs"
    file.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    done = tocsin(server, "import", "--topic", "t", file, "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["refused_lines"] == [21], done.stderr[:500]
    assert told["accepted"] + told["duplicate"] == 50


def test_a_line_without_a_topic_is_refused(server, tmp_path):
    file = tmp_path / "jobs"
    file.write_text('{"payload":"p"}\n')
    done = tocsin(server, "import", file)
    assert done.returncode == 1
    assert "--topic" in done.stderr


def test_progress_of_another_file_is_refused(server, tmp_path):
    file = tmp_path / "jobs"
    file.write_text('{"topic":"t","payload":"p"}\n')
    (tmp_path / "jobs.progress").write_text('{"line":3,"bytes":500}')
    done = tocsin(server, "import", file)
    assert done.returncode == 2
    assert "jobs.progress" in done.stderr


@pytest.mark.parametrize("words", [["export"], ["export", "t", "--all"], ["export", "t", "--resume"],
                                   ["import", "--batch", "0"]])
def test_wrong_usage(shared_server, words):
    assert tocsin(shared_server, *words).returncode == 2


def test_files_and_topics_that_are_missing(shared_server):
    assert tocsin(shared_server, "import", "/no/such/file").returncode == 3
    assert tocsin(shared_server, "export", "no-such-topic").returncode == 1
