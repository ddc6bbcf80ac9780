"""The life of a job through HTTP: submit, reserve, ack, cancel."""

import base64
import json
import subprocess
import threading

import httpx
import pytest

from conftest import DEADLINE_S, ack, await_metric, now_ms, reserve, submit


def curl(*arguments):
    done = subprocess.run(["curl", "-sS", *arguments], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_submit_reserve_ack_by_curl(server):
    submitted = json.loads(curl("-d", '{"payload":"hello","delay_ms":50}', server.topic("t") + "/jobs"))
    [job] = submitted["jobs"]
    assert job["outcome"] == "accepted"

    [delivered] = json.loads(curl("-d", '{"wait_ms":20000}', server.topic("t") + "/reserve"))["jobs"]
    assert delivered["id"] == job["id"]
    assert delivered["payload"] == "hello"
    assert delivered["attempt"] == 1
    assert delivered["due_ms"] == job["due_ms"]

    tokens = json.dumps({"tokens": [delivered["token"]]})
    assert json.loads(curl("-d", tokens, server.topic("t") + "/ack"))["results"] == [
        {"token": delivered["token"], "outcome": "ok"}
    ]
    assert json.loads(curl("-d", tokens, server.topic("t") + "/ack"))["results"][0]["outcome"] == "stale"


def test_the_first_job_of_the_banner_works_as_printed(start):
    server = start(terminal=True)
    script = "".join(line for line in server.banner if line.startswith("  "))
    assert script.count("\n") == 3
    done = subprocess.run(["sh", "-e", "-c", script], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    assert '"payload":"hello"' in done.stderr
    assert '"outcome":"ok"' in done.stdout


def test_the_first_job_of_the_banner_works_on_a_virtual_clock(start):
    server = start("--clock", "virtual", terminal=True)
    script = "".join(line for line in server.banner if line.startswith("  "))
    done = subprocess.run(["sh", "-e", "-c", script], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    assert '"outcome":"ok"' in done.stdout


def test_a_batch_keeps_its_order_and_its_fields(server, client):
    jobs = [{"id": f"id-{i}", "key": "k", "payload": f"p{i}", "headers": {"n": str(i)}} for i in range(100)]
    answer = client.post(server.topic("t") + "/jobs", json={"jobs": jobs})
    assert answer.status_code == 201
    assert [job["id"] for job in answer.json()["jobs"]] == [job["id"] for job in jobs]

    delivered = reserve(client, server, max=100, wait_ms=20000)
    while len(delivered) < 100:
        delivered += reserve(client, server, max=100, wait_ms=20000)
    # One key is one slot: first attempts leave in (due, sequence) order.
    assert [job["id"] for job in delivered] == [job["id"] for job in jobs]
    assert all(job["key"] == "k" for job in delivered)
    assert [job["headers"] for job in delivered] == [job["headers"] for job in jobs]
    assert ack(client, server, *delivered) == ["ok"] * 100
    assert reserve(client, server, max=100) == []


def test_payloads_come_back_byte_for_byte(server, client):
    texts = ["", "plain", 'quotes " and \\ and \n\r\t\x00\x7f', "grüße 🎉", "x" * 100_000]
    for text in texts:
        submit(client, server, topic="text", payload=text, key="k")
        [job] = reserve(client, server, topic="text", wait_ms=20000)
        assert job["payload"] == text
        assert ack(client, server, job, topic="text") == ["ok"]
    blob = bytes(range(256))
    submit(client, server, topic="bytes", payload_base64=base64.b64encode(blob).decode())
    [job] = reserve(client, server, topic="bytes", wait_ms=20000)
    assert "payload" not in job
    assert base64.b64decode(job["payload_base64"]) == blob


def test_a_long_poll_answers_when_the_job_is_due_and_never_before(server, client):
    for delay in (1, 40, 300):
        job = submit(client, server, delay_ms=delay, payload=str(delay))
        [delivered] = reserve(client, server, wait_ms=20000)
        came = now_ms()
        assert delivered["due_ms"] == job["due_ms"]
        assert came >= delivered["due_ms"]
        assert came - delivered["due_ms"] < 5_000
        ack(client, server, delivered)


def test_a_long_poll_that_was_there_first_is_woken_by_a_submit(server, client):
    got = []
    waiting = threading.Thread(
        target=lambda: got.extend(httpx.post(server.topic("t") + "/reserve", json={"wait_ms": 25000}, timeout=60).json()["jobs"])
    )
    waiting.start()
    await_metric(client, server, "tocsin_http_parked", 1)
    job = submit(client, server, payload="x")
    waiting.join(DEADLINE_S)
    assert [one["id"] for one in got] == [job["id"]]


def test_a_client_that_goes_away_leaves_the_jobs_to_the_others(server, client):
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(server.topic("t") + "/reserve", json={"wait_ms": 50000}, timeout=0.3)
    await_metric(client, server, "tocsin_http_parked", 0)
    submit(client, server, payload="x")
    [job] = reserve(client, server, wait_ms=20000)
    assert job["attempt"] == 1


def test_an_empty_reserve_waits_no_longer_than_asked(server, client):
    begin = now_ms()
    assert reserve(client, server, wait_ms=200) == []
    assert 200 <= now_ms() - begin < 10_000
    assert client.post(server.topic("t") + "/reserve").json() == {"jobs": []}


def test_a_job_that_is_not_acked_comes_back_when_its_lease_ends(server, client):
    job = submit(client, server, payload="x")
    [first] = reserve(client, server, wait_ms=20000, lease_ms=1000)
    again = []
    while not again:
        again = reserve(client, server, wait_ms=20000)
    assert again[0]["id"] == job["id"]
    assert again[0]["attempt"] == 2
    assert ack(client, server, first) == ["stale"]
    assert ack(client, server, again[0]) == ["ok"]


def test_cancel_gives_a_definite_answer(server, client):
    def cancel(job_id, **params):
        answer = client.delete(server.topic("t") + f"/jobs/{job_id}", params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()["outcome"]

    server_id = submit(client, server, delay_ms=60_000)["id"]
    assert cancel(server_id) == "cancelled"
    submit(client, server, id="own/id ?", delay_ms=60_000)
    assert cancel("own%2Fid%20%3F") == "cancelled"
    submit(client, server, id="keyed", key="k&=", delay_ms=60_000)
    assert cancel("keyed", key="k&=") == "cancelled"
    submit(client, server, id="due")
    [job] = reserve(client, server, wait_ms=20000)
    assert cancel("due") == "in_flight"
    ack(client, server, job)
    assert cancel("due") in ("finished", "unknown")
    assert cancel("never-there") == "unknown"
    assert client.delete(server.topic("none") + "/jobs/x").status_code == 404
    assert reserve(client, server, max=10) == []


def test_resubmitting_an_id(server, client):
    url = server.topic("t") + "/jobs"
    first = submit(client, server, id="a", payload="1", delay_ms=60_000)
    assert submit(client, server, id="a", payload="1", delay_ms=60_000) == {**first, "outcome": "duplicate"}
    conflict = client.post(url, json={"id": "a", "payload": "2", "delay_ms": 60_000})
    assert conflict.status_code == 409
    assert conflict.json()["jobs"][0]["outcome"] == "conflict"
    assert submit(client, server, id="a", payload="2", on_conflict="keep")["outcome"] == "duplicate"
    assert submit(client, server, id="a", payload="2", on_conflict="replace")["outcome"] == "accepted"
    [job] = reserve(client, server, wait_ms=20000)
    assert job["payload"] == "2"
    assert client.post(url, json={"id": "a", "payload": "3", "on_conflict": "replace"}).json()["jobs"][0]["outcome"] == "in_flight"
    mixed = client.post(url, json={"jobs": [{"id": "b"}, {"id": "a", "payload": "3"}]})
    assert mixed.status_code == 201
    assert [one["outcome"] for one in mixed.json()["jobs"]] == ["accepted", "conflict"]


@pytest.mark.parametrize("shards", [1, 3])
def test_every_job_is_seen_through_every_connection(start, client, shards):
    server = start("--shards", str(shards))
    ids = [submit(client, server, id=str(i))["id"] for i in range(60)]
    seen = []
    while len(seen) < len(ids):
        with httpx.Client(timeout=DEADLINE_S) as other:
            jobs = reserve(other, server, max=7, wait_ms=5000)
            assert jobs
            assert ack(client, server, *jobs) == ["ok"] * len(jobs)
            seen += [job["id"] for job in jobs]
    assert sorted(seen) == sorted(ids)


def test_a_virtual_clock_reaches_thirty_days_in_no_time(start, client):
    server = start("--clock", "virtual")
    day = 86_400_000
    job = submit(client, server, delay_ms=30 * day, payload="later")
    assert reserve(client, server) == []
    before = client.post(server.url + "/v1/clock/advance", json={"ms": 30 * day - 1})
    assert before.json() == {"now_ms": job["due_ms"] - 1}
    assert reserve(client, server) == []
    client.post(server.url + "/v1/clock/advance", json={"ms": 1})
    [delivered] = reserve(client, server, wait_ms=20000)
    assert delivered["payload"] == "later"
    assert ack(client, server, delivered) == ["ok"]


def test_a_real_clock_cannot_be_advanced(server, client):
    assert client.post(server.url + "/v1/clock/advance", json={"ms": 1}).status_code == 404
