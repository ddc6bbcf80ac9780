"""The audit: a line for every act of an administrator, with who, from where, through which door, what, how many, and how it ended.
No line for what only looks, and no payload, header or secret in any."""

import json
import os
import re
import stat

import programs
import pytest
from conftest import DEADLINE_S, Server, run, submit
from resp_wire import Wire
from test_auth import bearer, create

SECRET = "b3-payload-that-no-log-may-show"


def fields(line):
    """Of a line of text."""
    found = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', line)
    return {name: json.loads(value) if value.startswith('"') else value for name, value in found}


def acts(server, **wanted):
    """The audit's lines in the log with these fields."""
    lines = [fields(line) for line in list(server.errors) if " info audit " in line]
    return [line for line in lines if wanted.items() <= line.items()]


def await_act(server, **wanted):
    programs.wait_for(lambda: acts(server, **wanted), DEADLINE_S, lambda: f"{wanted} in {acts(server)}", between_s=0.02)
    return acts(server, **wanted)[-1]


@pytest.fixture
def guarded(tmp_path, start):
    tokens = {
        "ann": create(tmp_path / "tokens", "--scope", "admin", name="ann"),
        "shop": create(tmp_path / "tokens", "--scope", "submit", "--scope", "consume", name="shop"),
    }
    server = start("--auth-token-file", tmp_path / "tokens")
    server.tokens = tokens
    return server


def test_who_did_what_over_http(guarded, client):
    client.headers.update(bearer(guarded.tokens["ann"]))
    client.put(guarded.topic("orders"), json={"lease_ms": 5000, "capacity_jobs": 10}).raise_for_status()
    port = client.get(guarded.url + "/v1/stats").extensions["network_stream"].get_extra_info("client_addr")[1]
    for i in range(3):
        submit(client, guarded, "orders", payload=SECRET, headers={"h": SECRET})
    client.post(guarded.topic("orders") + "/pause").raise_for_status()
    client.put(guarded.topic("orders"), json={"max_attempts": 4}).raise_for_status()
    assert client.post(guarded.topic("orders") + "/purge").json() == {"purged": 3}
    client.delete(guarded.topic("orders")).raise_for_status()
    assert client.delete(guarded.topic("orders")).status_code == 404

    made = await_act(guarded, act="putTopic", outcome="created")
    assert (made["who"], made["door"], made["topic"]) == ("ann", "http", "orders")
    assert set(made["what"].split()) == {"lease_ms=5000", "capacity_jobs=10"}
    assert made["from"] == f"127.0.0.1:{port}"
    assert await_act(guarded, act="pauseTopic")["outcome"] == "ok"
    assert await_act(guarded, act="putTopic", outcome="ok")["what"] == "max_attempts=4"
    assert await_act(guarded, act="purgeTopic")["purged"] == "3"
    assert await_act(guarded, act="dropTopic", outcome="dropped")["who"] == "ann"
    await_act(guarded, act="dropTopic", outcome="topic_not_found")
    assert len(acts(guarded)) == 6, acts(guarded)
    hook = {"sink": "webhook", "url": f"https://shop.example/{SECRET}"}
    client.put(guarded.topic("hooked"), json={"delivery": hook}).raise_for_status()
    assert await_act(guarded, topic="hooked")["what"] == "sink=webhook url"
    assert SECRET not in "".join(guarded.errors)


def test_who_did_what_over_resp(guarded):
    with Wire(guarded, auth=guarded.tokens["ann"]) as wire:
        wire.call("TOPIC.SET", "mail", "LEASE_MS", "5000")
        wire.call("JOB.SUBMIT", "mail", SECRET)
        assert wire.call("TOPIC.PURGE", "mail") == 1
        wire.call("TOPIC.PURGE", "mail", "DEAD")
        wire.call("TOPIC.GET", "mail")
        address = dict(word.split("=", 1) for word in wire.call("CLIENT", "INFO").decode().split())["addr"]
    act = await_act(guarded, act="purgeTopic", what="dead")
    assert (act["who"], act["from"], act["door"], act["purged"]) == ("ann", address, "resp", "0")
    assert await_act(guarded, act="putTopic")["what"] == "lease_ms=5000"
    assert [act["act"] for act in acts(guarded)] == ["putTopic", "purgeTopic", "purgeTopic"]
    assert SECRET not in "".join(guarded.errors)


def test_an_operation_has_a_line_when_it_begins_and_one_when_it_is_over(guarded, client):
    client.headers.update(bearer(guarded.tokens["ann"]))
    for _ in range(3):
        submit(client, guarded, "orders", payload=SECRET, delay_ms=60_000, headers={"h": SECRET})
    where = {"state": ["scheduled", "ready"], "header": f"h={SECRET}", "payload": SECRET, "due_from_ms": 5, "attempts_max": 9}
    body = {"action": "cancel", "where": where, "rate": 1000}
    client.post(guarded.topic("orders") + "/operations", json=body).raise_for_status()
    what = "cancel state=scheduled header payload due_from_ms=5 attempts_max=9 rate=1000"
    over = await_act(guarded, act="operate", outcome="ended")
    assert (over["who"], over["topic"], over["what"], over["cancelled"]) == ("ann", "orders", what, "3")
    begun = await_act(guarded, act="operate", outcome="ok")
    assert (begun["who"], begun["what"]) == ("ann", what)
    client.post(guarded.topic("orders") + "/operations", json={"action": "purge", "all": True, "dry_run": True}).raise_for_status()
    assert await_act(guarded, act="operate", matched="0", outcome="ok")["what"] == "purge dry_run all"
    assert len(acts(guarded)) == 3, acts(guarded)
    assert SECRET not in "".join(guarded.errors)


def test_what_was_refused_is_there_too_but_not_a_flood_of_it(guarded, client):
    client.headers.update(bearer(guarded.tokens["shop"]))
    for _ in range(50):
        assert client.delete(guarded.topic("orders")).status_code == 403
    with Wire(guarded, auth=guarded.tokens["shop"]) as wire:
        assert wire.call("TOPIC.DROP", "orders").code == "NOPERM"
    act = await_act(guarded, act="dropTopic", outcome="forbidden")
    assert (act["who"], act["door"], act["topic"]) == ("shop", "http", "orders")
    # Ten a second: 51 calls take no five seconds, and if they do, every line is there.
    assert 1 <= len(acts(guarded)) <= 51
    client.headers.clear()
    client.delete(guarded.topic("orders"), headers={"Authorization": "Bearer nobody"})
    assert acts(guarded, outcome="unauthenticated") == []


def test_looking_submitting_and_consuming_is_no_act(guarded, client):
    client.headers.update(bearer(guarded.tokens["ann"]))
    job = submit(client, guarded, "t", payload=SECRET, delay_ms=60_000)
    client.get(guarded.topic("t")).raise_for_status()
    client.get(guarded.topic("t") + "/jobs").raise_for_status()
    client.delete(guarded.topic("t") + f"/jobs/{job['id']}").raise_for_status()
    client.post(guarded.topic("t") + "/pause").raise_for_status()
    await_act(guarded, act="pauseTopic")
    assert len(acts(guarded)) == 1


def test_access_tokens_that_come_and_go(guarded, tmp_path):
    create(tmp_path / "tokens", "--scope", "admin", name="bob")
    act = await_act(guarded, act="tokensChanged")
    assert (act["who"], act["added"]) == ("-", "bob") and "removed" not in act
    token = guarded.tokens["shop"].split("_")[1]
    assert run("tocsin", "token", "revoke", "--file", tmp_path / "tokens", token).returncode == 0
    assert await_act(guarded, removed="shop")["act"] == "tokensChanged"


def test_an_access_token_that_may_do_more_in_its_place(guarded, client, tmp_path):
    file = tmp_path / "tokens"
    file.write_text(file.read_text().replace("submit,consume", "admin"))
    act = await_act(guarded, act="tokensChanged")
    assert (act["who"], act["changed"]) == ("-", "shop") and "added" not in act and "removed" not in act
    client.put(guarded.topic("orders"), json={}, headers=bearer(guarded.tokens["shop"])).raise_for_status()


def test_without_access_tokens_and_with_the_log_at_error(start, client):
    server = start("--log-level", "error")
    client.put(server.topic("t"), json={}).raise_for_status()
    assert await_act(server, act="putTopic")["who"] == "-"


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_file_of_its_own_as_json_that_may_be_rotated(tmp_path, start, client):
    file = tmp_path / "audit.log"
    server = start("--log-audit-file", file, "--log-format", "json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    client.put(server.topic("one"), json={}).raise_for_status()
    programs.wait_for(lambda: lines_of(file), DEADLINE_S, "a line in the file", between_s=0.02)
    (line,) = lines_of(file)
    assert line["event"] == "audit" and line["level"] == "info" and line["topic"] == "one" and line["outcome"] == "created"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", line["time"])
    os.rename(file, tmp_path / "audit.log.1")
    client.put(server.topic("two"), json={}).raise_for_status()
    programs.wait_for(lambda: lines_of(file), DEADLINE_S, "a line in the new file", between_s=0.02)
    assert [each["topic"] for each in lines_of(file)] == ["two"]
    assert server.stop() == 0
    assert not any('"event":"audit"' in each for each in server.errors)
    assert all(json.loads(each)["event"] for each in server.errors)


def test_a_file_that_cannot_be_written_loses_no_line(tmp_path, start, client):
    folder = tmp_path / "gone"
    folder.mkdir()
    server = start("--log-audit-file", folder / "audit.log")
    (folder / "audit.log").unlink()
    folder.rmdir()
    client.put(server.topic("t"), json={}).raise_for_status()
    await_act(server, act="putTopic")
    assert sum("cannot write" in line for line in server.errors) == 1


def test_a_file_that_cannot_be_opened_is_no_start(tmp_path):
    with pytest.raises(AssertionError, match="log.audit_file"):
        Server(tmp_path / "data", "--log-audit-file", tmp_path / "missing" / "audit.log")
