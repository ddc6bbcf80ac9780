"""Mistakes that are easy to make, and what the server says about them."""

import json

import pytest

from conftest import now_ms, reserve, run, submit
from resp_wire import Error, Wire

DAY = 86_400_000


def refusal(client, server, **job):
    answer = client.post(server.topic("t") + "/jobs", json=job)
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]


@pytest.mark.parametrize("per_ms, unit", [(0.001, "seconds"), (1000, "microseconds"), (1_000_000, "nanoseconds")])
def test_a_due_time_in_another_unit_is_refused_with_a_hint(server, client, per_ms, unit):
    wanted = now_ms() // 1000 * 1000 + 60_000
    error = refusal(client, server, payload="x", due_ms=int(wanted * per_ms))
    assert error["field"] == "due_ms"
    assert f"it looks like {unit}: {wanted} ms" in error["message"]
    with Wire(server) as wire:
        answer = wire.call("JOB.SUBMIT", "t", "x", "AT", int(wanted * per_ms))
        assert isinstance(answer, Error) and unit in answer
    assert client.get(server.topic("t")).status_code == 404, "nothing was stored"


@pytest.mark.parametrize("due_ms", [0, 1, 946_684_799_999, 4_102_444_800_000, 2**62])
def test_a_time_of_another_century_is_refused(server, client, due_ms):
    assert "this century" in refusal(client, server, due_ms=due_ms)["message"]


def test_a_due_time_of_last_week_has_to_be_meant(server, client):
    old = now_ms() - 7 * DAY
    error = refusal(client, server, payload="x", due_ms=old)
    assert "7 days ago" in error["message"] and "past" in error["message"]
    assert submit(client, server, payload="x", due_ms=old, past="fire")["due_ms"] >= old + 7 * DAY, "it counts as now"
    assert submit(client, server, payload="x", due_ms=now_ms() - DAY + 60_000)["outcome"] == "accepted"
    assert len(reserve(client, server, max=5, wait_ms=5000)) == 2

    job = submit(client, server, payload="x", delay_ms=DAY)
    url = f"{server.topic('t')}/jobs/{job['id']}"
    assert client.patch(url, json={"due_ms": old}).status_code == 400
    assert client.patch(url, json={"due_ms": old, "past": "fire"}).json()["outcome"] == "amended"
    with Wire(server) as wire:
        assert "past" in wire.call("JOB.SUBMIT", "t", "x", "AT", old)
        assert wire.call("JOB.SUBMIT", "t", "x", "AT", old, "PAST", "fire")[1] == "accepted"
    flags = ["--server", server.url, "--at", f"@{old}"]
    assert run("tocsin", "submit", "t", "x", *flags).returncode == 2
    assert run("tocsin", "submit", "t", "x", *flags, "--past", "fire").returncode == 0


PAYLOADS = ['{"a": 1,  "b":[true,null,"\\u00e4"]}', "[1,2 ,3]", "12345678901234567890123", "0.10", "-1e400", "true", "false"]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_of_json_is_delivered_as_it_was_sent(server, client, payload):
    body = '{"headers":{"h":"}"},"payload": %s ,"id":"a"}' % payload
    answer = client.post(server.topic("t") + "/jobs", content=body)
    assert answer.status_code == 201, answer.text
    (job,) = reserve(client, server, wait_ms=5000)
    assert job["payload"] == payload
    assert job["headers"] == {"h": "}", "content-type": "application/json"}


def test_payloads_of_json_in_a_batch_and_in_a_change(server, client):
    jobs = ",".join('{"id":"j%d","payload":%s,"delay_ms":0}' % (i, payload) for i, payload in enumerate(PAYLOADS))
    body = '{"jobs":[{"id":"text","payload":"[\\"jobs\\"]"},%s,{"id":"none"}]}' % jobs
    assert client.post(server.topic("t") + "/jobs", content=body).status_code == 201
    got = {job["id"]: job for job in reserve(client, server, max=100, wait_ms=5000)}
    assert [got[f"j{i}"]["payload"] for i in range(len(PAYLOADS))] == PAYLOADS
    assert got["text"]["payload"] == '["jobs"]' and "headers" not in got["text"]
    assert got["none"]["payload"] == ""
    submit(client, server, "u", id="a", payload="x", headers={"Content-Type": "text/x"}, delay_ms=DAY)
    url = server.topic("u") + "/jobs/a"
    assert client.patch(url, content='{"payload":{"n":9007199254740993}}').json()["outcome"] == "amended"
    shown = client.get(url).json()
    assert (shown["payload"], shown["headers"]) == ('{"n":9007199254740993}', {"Content-Type": "text/x"})
    assert "leave it out" in refusal(client, server, payload=None)["message"]
    huge = '{"payload":[%s]}' % ",".join(["1"] * 600_000)
    assert client.post(server.topic("t") + "/jobs", content=huge).json()["error"]["code"] == "too_large"


def test_a_conflict_says_what_can_be_done(server, client):
    submit(client, server, id="a", payload="one", delay_ms=DAY)
    done = run("tocsin", "submit", "t", "two", "--id", "a", "--server", server.url)
    assert done.returncode == 1
    assert "conflict a" in done.stdout and "--on-conflict replace" in done.stderr


def test_one_job_is_not_jobs(server, client):
    for count, text in [(1, "1 job is removed"), (2, "2 jobs are removed"), (0, "0 jobs are removed")]:
        for i in range(count):
            submit(client, server, payload="x", delay_ms=DAY)
        client.put(server.topic("t"), json={}).raise_for_status()
        assert text in run("tocsin", "topic", "purge", "t", "--yes", "--server", server.url).stdout


def test_suggestions_are_near(server, client):
    assert 'did you mean "delay_ms"' in refusal(client, server, delay=5)["message"]
    assert "did you mean" not in refusal(client, server, colour=5)["message"]
    assert "did you mean" not in refusal(client, server, when="x")["message"]


def test_the_root_says_what_this_is(tmp_path, server, client):
    answer = client.get(server.url + "/")
    assert answer.status_code == 200
    root = answer.json()
    assert root["name"] == "tocsin"
    assert root["version"] == client.get(server.url + "/v1/stats").json()["version"]
    for path in root["links"].values():
        assert client.get(server.url + path).status_code == 200, path


def size_of(folder):
    """What the files take on the disk."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


def test_a_virtual_clock_starts_where_it_is_told_and_moves_to_a_moment(tmp_path, start, client):
    begin = 1_796_122_800_000
    # --journal-segment-size is what a user has who says nothing: 0.
    server = start("--clock", "virtual", "--clock-start", "2026-12-01T11:00:00Z", "--journal-segment-size", "0")
    assert client.get(server.url + "/v1/stats").json()["now_ms"] == begin
    advance = server.url + "/v1/clock/advance"
    assert client.post(advance, json={"to_ms": begin + 5000}).json() == {"now_ms": begin + 5000}
    assert client.post(advance, json={"to_ms": begin}).json()["error"]["field"] == "to_ms"
    assert client.post(advance, json={"to_ms": begin + 9000, "ms": 1}).status_code == 400
    assert client.post(advance, json={}).status_code == 400
    done = run("tocsin", "clock", "advance", "--to", "2026-12-02T11:00Z", "--server", server.url, "--json")
    assert json.loads(done.stdout) == {"now_ms": begin + DAY}
    for i in range(100):
        submit(client, server, payload="x" * 1000)
    submit(client, server, payload="x" * 1_000_000)
    assert size_of(tmp_path / "data") < 10_000_000
    server.stop()
    again = start("--clock", "virtual", "--clock-start", "1796122800000", "--journal-segment-size", "0")
    assert client.get(again.url + "/v1/stats").json()["now_ms"] == begin + DAY, "time never goes back"


def test_a_start_that_is_no_time_or_has_no_effect_is_refused(tmp_path):
    for flags in [["--clock", "virtual", "--clock-start", "tomorrow"], ["--clock-start", "2026-12-01T11:00:00Z"]]:
        done = run("tocsind", "--data-dir", tmp_path / "data", *flags)
        assert done.returncode != 0 and "clock_start" in done.stderr
