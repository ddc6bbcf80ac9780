"""Who holds what: consumers say their names, leases are listed and revoked, and single dead letters are mended."""

import json
import socket

import pytest

from conftest import BIN, ack, now_ms, reserve, run, submit
from resp_wire import Error, Wire
from test_audit import await_act
from test_auth import bearer, create


def leases(client, server, topic=None, **query):
    url = server.topic(topic) + "/leases" if topic else server.url + "/v1/leases"
    found, pages = [], 0
    while True:
        answer = client.get(url, params=query)
        assert answer.status_code == 200, answer.text
        found += answer.json()["leases"]
        pages += 1
        if "cursor" not in answer.json():
            return found, pages
        query["cursor"] = answer.json()["cursor"]


def tocsin(server, *words):
    return run("tocsin", *words, "--server", server.url)


def lines(server, *words):
    return [json.loads(line) for line in tocsin(server, *words, "--json").stdout.splitlines()]


def fields(reply):
    """A map of RESP2."""
    return {name.decode(): value for name, value in zip(reply[::2], reply[1::2], strict=True)}


def test_a_consumer_says_its_name_and_the_list_shows_it(server, client):
    submit(client, server, payload="x", id="a")
    before = now_ms()
    reserve(client, server, consumer="worker-3", lease_ms=60_000)
    (lease,), _ = leases(client, server, "t")
    assert (lease["topic"], lease["id"], lease["holder"]) == ("t", "a", "worker-3")
    assert (lease["attempt"], lease["extensions"]) == (1, 0)
    assert before <= lease["leased_ms"] <= now_ms()
    assert lease["lease_deadline_ms"] >= lease["leased_ms"] + 60_000
    assert "payload" not in lease
    shown = client.get(server.topic("t") + "/jobs/a").json()
    assert shown["holder"] == "worker-3"
    assert shown["leased_ms"] == lease["leased_ms"]
    assert before - 1000 <= shown["created_ms"] <= shown["last_attempt_ms"]


def test_a_lease_is_revoked_only_from_the_consumer_that_was_seen(server, client):
    submit(client, server, payload="x", id="a")
    reserve(client, server, consumer="slow", lease_ms=60_000)
    lease = server.topic("t") + "/leases/a"
    assert client.delete(lease).json() == {"outcome": "revoked"}
    reserve(client, server, consumer="other", lease_ms=60_000)
    assert client.delete(lease, params={"attempt": 1}).json() == {"outcome": "changed_meanwhile"}
    late = tocsin(server, "lease", "revoke", "t", "a", "--attempt", "1")
    assert late.returncode == 1 and "changed_meanwhile" in late.stdout
    with Wire(server) as wire:
        assert wire.call("LEASE.REVOKE", "t", "a", "ATTEMPT", 1) == "changed_meanwhile"
    assert leases(client, server, "t")[0][0]["holder"] == "other"
    assert client.delete(lease, params={"attempt": 2}).json() == {"outcome": "revoked"}


def test_a_payload_is_changed_only_at_the_attempt_that_was_seen(server, client):
    submit(client, server, payload="x", id="a")
    (job,) = reserve(client, server)
    client.post(server.topic("t") + "/nack", json={"tokens": [job["token"]], "delay_ms": 60_000}).raise_for_status()
    change = lambda **body: client.patch(server.topic("t") + "/jobs/a", json=body).json()["outcome"]
    assert change(payload="y", attempt=0) == "changed_meanwhile", "it was tried since"
    assert change(payload="y", attempt=1) == "amended"
    with Wire(server) as wire:
        assert wire.call("JOB.AMEND", "t", "a", "PAYLOAD", "z", "ATTEMPT", 2)[0] == "changed_meanwhile"
    assert client.get(server.topic("t") + "/jobs/a").json()["payload"] == "y"


def test_without_a_name_the_holder_is_the_address(server, client):
    submit(client, server, payload="x")
    submit(client, server, payload="y")
    reserve(client, server)
    port = client.get(server.url + "/healthz").extensions["network_stream"].get_extra_info("client_addr")[1]
    with Wire(server) as wire:
        wire.call("JOB.RESERVE", "t")
        holders = {lease["holder"] for lease in leases(client, server, "t")[0]}
        assert holders == {f"127.0.0.1:{port}", "127.0.0.1:%d" % wire.socket.getsockname()[1]}


def test_on_resp_the_word_wins_over_the_name_of_the_connection(server, client):
    for i in range(2):
        submit(client, server, payload="x", id=f"j{i}", due_ms=now_ms() - 10 + i)
    with Wire(server) as wire:
        assert wire.call("CLIENT", "SETNAME", "from-setname") == "OK"
        wire.call("JOB.RESERVE", "t")
        wire.call("JOB.RESERVE", "t", "CONSUMER", "from word")
        cursor, found = wire.call("LEASE.LIST", "t")
        assert cursor is None
        assert {fields(each)["id"]: fields(each)["holder"] for each in found} == {b"j0": b"from-setname", b"j1": b"from word"}
        assert [fields(each)["id"] for each in wire.call("LEASE.LIST", "t", "HOLDER", "from word")[1]] == [b"j1"]
        assert [fields(each)["topic"] for each in wire.call("LEASE.ALL")[1]] == [b"t", b"t"]


@pytest.mark.parametrize("name, says", [("x" * 129, "the most is 128"), ("a\nb", "control character"), ("", "1 to 128")])
def test_a_name_that_nobody_can_read_is_refused(server, client, name, says):
    answer = client.post(server.topic("t") + "/reserve", json={"consumer": name})
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "consumer"
    assert says in answer.json()["error"]["message"]
    with Wire(server) as wire:
        refusal = wire.call("JOB.RESERVE", "t", "CONSUMER", name)
        assert isinstance(refusal, Error) and says in refusal


def test_a_parked_reserve_keeps_its_name(server, client):
    with Wire(server) as wire:
        wire.send("JOB.RESERVE", "late", "WAIT", 20_000, "CONSUMER", "patient")
        submit(client, server, "late", payload="x")
        assert len(wire.read()) == 1
        (lease,), _ = leases(client, server, "late")
        assert lease["holder"] == "patient"


def test_extensions_are_counted(server, client):
    submit(client, server, payload="x")
    (job,) = reserve(client, server)
    for _ in range(3):
        client.post(server.topic("t") + "/extend", json={"tokens": [job["token"]], "lease_ms": 90_000}).raise_for_status()
    (lease,), _ = leases(client, server, "t")
    assert lease["extensions"] == 3


def test_all_leases_come_in_pages_and_only_those_that_the_caller_may_see(tmp_path, start, client):
    tokens = {
        "all": create(tmp_path / "tokens", "--scope", "admin", name="all"),
        "shop": create(tmp_path / "tokens", "--scope", "observe", "--topic-prefix", "shop-", name="shop"),
    }
    server = start("--auth-token-file", tmp_path / "tokens")
    client.headers.update(bearer(tokens["all"]))
    for topic in ["bank", "shop-a", "shop-b", "shop-empty", "zoo"]:
        client.put(server.topic(topic), json={}).raise_for_status()
    for topic in ["bank", "shop-a", "shop-b", "zoo"]:
        for i in range(5):
            submit(client, server, topic, payload="x", id=f"{topic}-{i}")
        assert len(reserve(client, server, topic, max=10, consumer="w-" + topic)) == 5
    found, pages = leases(client, server, limit=3)
    assert sorted(lease["id"] for lease in found) == sorted(f"{t}-{i}" for t in ["bank", "shop-a", "shop-b", "zoo"] for i in range(5))
    assert pages >= 7
    assert {lease["topic"] for lease in leases(client, server, holder="w-zoo")[0]} == {"zoo"}

    client.headers.update(bearer(tokens["shop"]))
    assert {lease["topic"] for lease in leases(client, server, limit=4)[0]} == {"shop-a", "shop-b"}
    stolen = client.get(server.url + "/v1/leases", params={"cursor": "bank/"})
    assert stolen.status_code == 400 and stolen.json()["error"]["field"] == "cursor"
    assert client.delete(server.topic("shop-a") + "/leases/shop-a-0").status_code == 403


def test_one_page_finds_the_only_lease_among_many_topics(server, client):
    with Wire(server) as wire:
        for i in range(1000):
            wire.send("JOB.SUBMIT", f"t{i:03}", "x", "ID", f"job-{i}")
        for _ in range(1000):
            assert not isinstance(wire.read(), Error)
    reserve(client, server, "t777")
    page = client.get(server.url + "/v1/leases").json()
    assert [lease["id"] for lease in page["leases"]] == ["job-777"] and "cursor" not in page


def test_more_topics_with_leases_than_one_page_reads(server, client):
    for i in range(300):
        submit(client, server, f"t{i:03}", payload="x", id=f"job-{i}")
        reserve(client, server, f"t{i:03}", consumer="last" if i == 299 else "others")
    first = client.get(server.url + "/v1/leases?holder=last").json()
    assert first["leases"] == [] and first["cursor"]
    assert [lease["id"] for lease in leases(client, server, holder="last")[0]] == ["job-299"]
    assert len(leases(client, server)[0]) == 300


def test_a_revoked_lease_is_over_and_its_token_stale(guarded_topic):
    server, client = guarded_topic
    submit(client, server, payload="x", id="a")
    (job,) = reserve(client, server, lease_ms=600_000, consumer="hangs")
    answer = client.delete(server.topic("t") + "/leases/a")
    assert answer.json() == {"outcome": "revoked"}
    act = await_act(server, act="revokeLease")
    assert (act["who"], act["topic"], act["id"], act["outcome"]) == ("ann", "t", "a", "revoked")
    assert ack(client, server, job) == ["stale"]
    shown = client.get(server.topic("t") + "/jobs/a").json()
    assert (shown["state"], shown["reason"], shown["attempt"]) == ("scheduled", "lease revoked", 1)
    (again,) = reserve(client, server, wait_ms=5000)
    assert (again["id"], again["attempt"]) == ("a", 2)
    assert ack(client, server, again) == ["ok"]
    assert client.delete(server.topic("t") + "/leases/a").json() == {"outcome": "unknown"}
    submit(client, server, payload="x", id="b", delay_ms=60_000)
    assert client.delete(server.topic("t") + "/leases/b").json() == {"outcome": "finished"}
    assert client.delete(server.topic("absent") + "/leases/b").status_code == 404


@pytest.fixture
def guarded_topic(tmp_path, start, client):
    token = create(tmp_path / "tokens", "--scope", "admin", name="ann")
    client.headers.update(bearer(token))
    return start("--auth-token-file", tmp_path / "tokens"), client


def test_leases_over_the_command_line(server, client):
    for i in range(2):
        submit(client, server, payload="x", id=f"j{i}")
    taken = lines(server, "reserve", "t", "--max", "1", "--consumer", "by-hand")
    lines(server, "reserve", "t")
    found = {lease["holder"]: lease["id"] for lease in lines(server, "leases", "t")}
    assert found["by-hand"] == taken[0]["id"]
    other = next(holder for holder in found if holder != "by-hand")
    assert other.startswith(socket.gethostname() + ":")
    assert lines(server, "leases") == lines(server, "leases", "t")
    table = tocsin(server, "leases", "--holder", "by-hand").stdout
    assert "HOLDER" in table and "by-hand" in table and other not in table
    assert "holder   by-hand, since " in tocsin(server, "get", "t", taken[0]["id"]).stdout
    done = tocsin(server, "lease", "revoke", "t", taken[0]["id"])
    assert done.returncode == 0 and done.stdout.startswith("revoked: ")
    again = tocsin(server, "lease", "revoke", "t", taken[0]["id"])
    assert again.returncode == 1 and "nobody holds it" in again.stdout
    assert tocsin(server, "lease", "revoke", "t", "absent").returncode == 1
    assert "nobody holds a lease" in tocsin(server, "leases", "--holder", "nobody").stdout


def test_the_holder_of_a_job_that_a_worker_does_is_the_worker(server, client, tmp_path):
    submit(client, server, payload="x", id="a")
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n{BIN}/tocsin leases t --json --server {server.url} > {tmp_path}/seen\n")
    script.chmod(0o755)
    flags = ["--once", "--consumer", "named", "--server", server.url]
    assert run("tocsin", "worker", "t", *flags, "--", script).returncode == 0
    assert json.loads((tmp_path / "seen").read_text())["holder"] == "named"


def kill(client, server, *ids):
    """Makes dead letters of these jobs."""
    for each in ids:
        submit(client, server, payload=f"payload of {each}", id=each)
    jobs = reserve(client, server, max=100)
    body = {"tokens": [job["token"] for job in jobs], "dead": True, "reason": "no such account"}
    client.post(server.topic("t") + "/nack", json=body).raise_for_status()


def test_one_dead_letter_is_redriven_changed_or_removed(server, client):
    kill(client, server, "a", "b", "c")
    dead = server.topic("t") + "/dead/"
    assert client.patch(server.topic("t") + "/jobs/a", json={"payload": "mended"}).json() == {"outcome": "amended"}
    assert client.patch(server.topic("t") + "/jobs/a", json={"delay_ms": 5}).json() == {"outcome": "finished"}
    assert client.post(dead + "a/redrive").json() == {"outcome": "redriven"}
    assert client.post(dead + "a/redrive").json() == {"outcome": "finished"}
    assert client.delete(dead + "a").json() == {"outcome": "finished"}, "it is scheduled now"
    (job,) = reserve(client, server, wait_ms=5000, max=10)
    assert (job["id"], job["payload"], job["attempt"]) == ("a", "mended", 1)
    assert client.delete(dead + "a").json() == {"outcome": "in_flight"}
    assert client.post(dead + "a/redrive").json() == {"outcome": "in_flight"}
    assert client.delete(dead + "b").json() == {"outcome": "removed"}
    assert client.delete(dead + "b").json() == {"outcome": "unknown"}
    assert client.get(server.topic("t") + "/jobs/b").status_code == 404
    left = client.get(server.topic("t") + "/jobs?state=dead").json()["jobs"]
    assert [job["id"] for job in left] == ["c"]
    assert left[0]["died_ms"] >= left[0]["created_ms"]
    stats = client.get(server.url + "/v1/stats").json()
    assert stats["conservation"]["difference"] == 0


def test_single_dead_letters_over_resp_and_the_command_line(server, client):
    kill(client, server, "a", "b", "c", "d")
    with Wire(server) as wire:
        assert wire.call("DEAD.REDRIVE", "t", "a") == "redriven"
        assert wire.call("DEAD.REMOVE", "t", "a") == "finished"
        assert wire.call("DEAD.REMOVE", "t", "b") == "removed"
        assert wire.call("DEAD.REMOVE", "t", "b") == "unknown"
    assert tocsin(server, "dead", "redrive", "t", "c").stdout.startswith("redriven: ")
    again = tocsin(server, "dead", "redrive", "t", "c")
    assert again.returncode == 1 and "not a dead letter" in again.stdout
    assert tocsin(server, "dead", "redrive", "t").returncode == 2, "nobody can be asked"
    assert tocsin(server, "dead", "redrive", "t", "--yes").stdout == "1 job is due again, with all attempts\n"
    kill(client, server, "e", "f")
    assert tocsin(server, "dead", "remove", "t", "e").stdout.startswith("removed: ")
    assert tocsin(server, "dead", "remove", "t", "e").returncode == 1
    assert tocsin(server, "dead", "redrive", "t", "--key", "k").returncode == 2
