"""Tokens: who may call what, how they are made and taken back, and that they appear nowhere."""

import os
import re
import signal
import subprocess
import threading
import time

import httpx
import pytest

from conftest import DEADLINE_S, Server, run

ANYONE, KNOWN, SUBMIT, CONSUME, EITHER, TOPIC, ADMIN, LIST, LOOK, NODE = range(10)

# What each call needs. {topic} is filled in by the tests.
ROUTES = [
    ("GET", "/healthz", None, ANYONE),
    ("GET", "/readyz", None, ANYONE),
    ("GET", "/v1/openapi.json", None, ANYONE),
    ("POST", "/v1/topics/{topic}/jobs", {"payload": "p"}, SUBMIT),
    ("PATCH", "/v1/topics/{topic}/jobs/x", {"delay_ms": 1}, SUBMIT),
    ("DELETE", "/v1/topics/{topic}/jobs/x", None, SUBMIT),
    ("POST", "/v1/topics/{topic}/jobs/x/fire", None, SUBMIT),
    ("POST", "/v1/topics/{topic}/jobs/x/count", {"event": "e"}, SUBMIT),
    ("POST", "/v1/topics/{topic}/reserve", {}, CONSUME),
    ("POST", "/v1/topics/{topic}/ack", {"tokens": ["AAABAAAAAAAAAAEAAAAAAQAA"]}, CONSUME),
    ("POST", "/v1/topics/{topic}/nack", {"tokens": ["AAABAAAAAAAAAAEAAAAAAQAA"]}, CONSUME),
    ("POST", "/v1/topics/{topic}/extend", {"tokens": ["AAABAAAAAAAAAAEAAAAAAQAA"]}, CONSUME),
    ("GET", "/v1/topics/{topic}/jobs/x", None, EITHER),
    ("GET", "/v1/topics/{topic}/jobs", None, TOPIC),
    ("PUT", "/v1/topics/{topic}", {}, ADMIN),
    ("GET", "/v1/topics/{topic}", None, TOPIC),
    ("POST", "/v1/topics/{topic}/pause", None, ADMIN),
    ("POST", "/v1/topics/{topic}/test", None, ADMIN),
    ("POST", "/v1/topics/{topic}/resume", None, ADMIN),
    ("POST", "/v1/topics/{topic}/purge", None, ADMIN),
    ("POST", "/v1/topics/{topic}/dead/redrive", None, ADMIN),
    ("POST", "/v1/topics/{topic}/dead/x/redrive", None, ADMIN),
    ("DELETE", "/v1/topics/{topic}/dead/x", None, ADMIN),
    ("GET", "/v1/topics/{topic}/leases", None, TOPIC),
    ("GET", "/v1/leases", None, LIST),
    ("DELETE", "/v1/topics/{topic}/leases/x", None, ADMIN),
    ("GET", "/", None, ANYONE),
    ("POST", "/v1/topics/{topic}/dead/purge", None, ADMIN),
    ("DELETE", "/v1/topics/{topic}", None, ADMIN),
    ("GET", "/v1/topics/{topic}/load", None, TOPIC),
    ("GET", "/v1/topics/{topic}/tally", None, TOPIC),
    ("POST", "/v1/topics/{topic}/operations", {"action": "fire", "where": {"key": "x"}}, ADMIN),
    ("GET", "/v1/topics/{topic}/operations", None, TOPIC),
    ("GET", "/v1/topics/{topic}/operations/x", None, TOPIC),
    ("DELETE", "/v1/topics/{topic}/operations/x", None, ADMIN),
    ("GET", "/v1/topics/{topic}/history", None, TOPIC),
    ("GET", "/v1/topics/{topic}/lateness", None, TOPIC),
    ("GET", "/v1/session", None, KNOWN),
    ("DELETE", "/v1/session", None, ANYONE),
    ("GET", "/v1/alerts", None, LIST),
    ("GET", "/v1/deliveries", None, LIST),
    ("GET", "/v1/history", None, LOOK),
    ("GET", "/v1/load", None, LIST),
    ("GET", "/v1/topics", None, LIST),
    ("GET", "/v1/stats", None, LOOK),
    ("GET", "/v1/cluster", None, LOOK),
    ("GET", "/metrics", None, LOOK),
    ("POST", "/v1/clock/advance", {"ms": 1}, NODE),
]
# A stream without an end (test_events.py), and a login, whose access token is in the body (test_ui.py).
OTHERS = {("GET", "/v1/events"), ("POST", "/v1/session")}

# Who reaches which calls: on the topic shop.orders, and on the topic bank.orders.
OPEN = {ANYONE, KNOWN}
ALL = OPEN | {SUBMIT, CONSUME, EITHER, TOPIC, ADMIN, LIST, LOOK, NODE}
HOLDERS = {
    "submit": (["--scope", "submit"], OPEN | {SUBMIT, EITHER}, OPEN | {SUBMIT, EITHER}),
    "consume": (["--scope", "consume"], OPEN | {CONSUME, EITHER}, OPEN | {CONSUME, EITHER}),
    "both": (["--scope", "submit", "--scope", "consume", "--topic-prefix", "shop."],
             OPEN | {SUBMIT, CONSUME, EITHER}, OPEN),
    "observe": (["--scope", "observe"], OPEN | {EITHER, TOPIC, LIST, LOOK}, OPEN | {EITHER, TOPIC, LIST, LOOK}),
    "admin": (["--scope", "admin"], ALL, ALL),
    "narrow": (["--scope", "admin", "--topic-prefix", "shop."], ALL - {LOOK, NODE}, OPEN | {LIST}),
    "watcher": (["--scope", "observe", "--topic-prefix", "shop."], OPEN | {EITHER, TOPIC, LIST}, OPEN | {LIST}),
}


def create(file, *flags, name="someone"):
    done = run("tocsin", "token", "create", "--file", file, "--name", name, *flags)
    assert done.returncode == 0, done.stderr
    token = done.stdout.strip()
    assert re.fullmatch(r"tocsin_[a-z2-7]{8}_[a-z2-7]{52}", token)
    assert token.split("_")[2] not in done.stderr
    return token


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def call(client, server, route, topic, headers):
    method, path, body, _ = route
    return client.request(method, server.url + path.replace("{topic}", topic), json=body, headers=headers)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with a token for each holder; its log must have none of them."""
    folder = tmp_path_factory.mktemp("guarded")
    tokens = {name: create(folder / "tokens", *flags, name=name) for name, (flags, _, _) in HOLDERS.items()}
    server = Server(folder / "data", "--auth-token-file", folder / "tokens", "--clock", "virtual", "--log-level", "debug")
    server.tokens = tokens
    yield server
    assert server.stop() == 0
    said = "".join(server.errors + server.banner)
    for token in tokens.values():
        assert token.split("_")[2] not in said
        assert token.split("_")[2] not in (folder / "tokens").read_text()


@pytest.mark.parametrize("route", ROUTES, ids=[f"{r[0]} {r[1]}" for r in ROUTES])
def test_every_call_takes_the_tokens_that_it_should(guarded, client, route):
    strange = "tocsin_" + "a" * 8 + "_" + "b" * 52
    other = guarded.tokens["admin"][:16] + guarded.tokens["submit"][16:]
    for headers in ({}, bearer(strange), bearer(other), bearer("x"), {"Authorization": guarded.tokens["admin"]}):
        answer = call(client, guarded, route, "shop.orders", headers)
        if route[3] == ANYONE:
            assert answer.status_code == 200
            continue
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "tocsin_" not in answer.text
    for name, (_, *reached) in HOLDERS.items():
        for topic, allowed in zip(("shop.orders", "bank.orders"), reached):
            answer = call(client, guarded, route, topic, bearer(guarded.tokens[name]))
            if route[3] in allowed:
                assert answer.status_code not in (401, 403), (name, topic, answer.text)
                continue
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), (name, topic)
            assert "scope" in answer.json()["error"]["message"]
            assert guarded.tokens[name][7:15] not in answer.text


def test_the_table_above_has_every_call_of_the_server(guarded, client):
    served = set()
    for path, methods in client.get(guarded.url + "/v1/openapi.json").json()["paths"].items():
        served |= {(method.upper(), path.replace("{id}", "x")) for method in methods if method != "parameters"}
    assert served == {(method, path) for method, path, _, _ in ROUTES} | OTHERS


def test_the_list_of_topics_is_that_of_the_prefix(guarded, client):
    admin = bearer(guarded.tokens["admin"])
    for topic in ("shop.a", "bank.b"):
        assert client.put(guarded.topic(topic), json={}, headers=admin).status_code in (200, 201)
    names = [one["topic"] for one in client.get(guarded.url + "/v1/topics", headers=admin).json()["topics"]]
    assert {"shop.a", "bank.b"} <= set(names)
    narrow = client.get(guarded.url + "/v1/topics", headers=bearer(guarded.tokens["narrow"])).json()["topics"]
    assert [one["topic"] for one in narrow] == [name for name in names if name.startswith("shop.")]


def test_a_body_without_a_token_is_refused_before_it_is_sent(guarded):
    line = ["curl", "-s", "-D", "-", "-H", "Expect: 100-continue", "--data-binary", "@-", guarded.topic("t") + "/jobs"]
    done = subprocess.run(line, input=b"x" * 5_000_000, capture_output=True, timeout=DEADLINE_S)
    assert done.stdout.startswith(b"HTTP/1.1 401")
    assert b"100 Continue" not in done.stdout


def test_curl(guarded):
    url = guarded.topic("shop.orders") + "/jobs"
    job = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", '{"payload":"p"}', url]
    for header, status in ((bearer(guarded.tokens["submit"]), "201"), (bearer("wrong"), "401")):
        line = [part for name, value in header.items() for part in ("-H", f"{name}: {value}")]
        assert subprocess.run(["curl", *line, *job], capture_output=True, text=True).stdout == status


def await_status(client, url, token, status):
    end = time.monotonic() + DEADLINE_S
    while client.get(url, headers=bearer(token)).status_code != status:
        assert time.monotonic() < end, f"never answered {status}"


def test_revoking_and_creating_take_effect_without_a_restart(start, client, tmp_path):
    file = tmp_path / "tokens"
    token = create(file, "--scope", "admin")
    server = start("--auth-token-file", file)
    url = server.url + "/v1/stats"
    assert client.get(url, headers=bearer(token)).status_code == 200
    assert run("tocsin", "token", "revoke", "--file", file, token[7:15]).returncode == 0
    await_status(client, url, token, 401)
    await_status(client, url, create(file, "--scope", "admin"), 200)


def test_revoking_ends_a_reserve_that_waits(start, client, tmp_path):
    file = tmp_path / "tokens"
    admin, consumer = create(file, "--scope", "admin"), create(file, "--scope", "consume")
    server = start("--auth-token-file", file)
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(
        httpx.post(server.topic("t") + "/reserve", json={"wait_ms": 60_000}, headers=bearer(consumer), timeout=70)))
    waiting.start()
    end = time.monotonic() + DEADLINE_S
    while "\ntocsin_http_parked 1" not in client.get(server.url + "/metrics", headers=bearer(admin)).text:
        assert time.monotonic() < end
    assert run("tocsin", "token", "revoke", "--file", file, consumer[7:15]).returncode == 0
    waiting.join(DEADLINE_S)
    assert answers[0].json() == {"jobs": []}
    assert client.post(server.topic("t") + "/reserve", headers=bearer(consumer)).status_code == 401


def test_a_broken_file_changes_nothing_and_is_told_once(start, client, tmp_path):
    file = tmp_path / "tokens"
    token = create(file, "--scope", "admin")
    server = start("--auth-token-file", file)
    good = file.read_text()
    file.write_text("nonsense\n")
    server.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + DEADLINE_S
    while not any("stay in force" in line for line in server.errors):
        assert time.monotonic() < end
    assert client.get(server.url + "/v1/stats", headers=bearer(token)).status_code == 200
    file.write_text(good)
    other = create(file, "--scope", "admin")
    await_status(client, server.url + "/v1/stats", other, 200)
    assert len([line for line in server.errors if "stay in force" in line]) <= 2  # of the look, and of the signal


def test_others_must_not_reach_the_file(tmp_path):
    file = tmp_path / "tokens"
    create(file, "--scope", "admin")
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o644)
    done = run("tocsind", "--data-dir", tmp_path / "data", "--http-listen", "127.0.0.1:0", "--auth-token-file", file)
    assert done.returncode == 2
    assert f"chmod 600 {file}" in done.stderr
    refused = run("tocsin", "token", "create", "--file", file, "--name", "n", "--scope", "admin")
    assert refused.returncode == 2
    assert f"chmod 600 {file}" in refused.stderr


def test_other_machines_are_served_with_tokens_alone(start, client, tmp_path):
    data = ["--data-dir", tmp_path / "data", "--http-listen", "0.0.0.0:0"]
    refused = run("tocsind", *data)
    assert refused.returncode == 2
    assert "tocsin token create --file F" in refused.stderr and "--auth-token-file F" in refused.stderr
    file = tmp_path / "tokens"
    file.touch(0o600)
    empty = run("tocsind", *data, "--auth-token-file", file)
    assert empty.returncode == 2
    assert "has no access tokens" in empty.stderr
    assert run("tocsind", *data, "--auth-token-file", tmp_path / "missing").returncode != 0

    token = create(file, "--scope", "admin")
    server = start("--auth-token-file", file, listen="0.0.0.0:0")
    url = f"http://127.0.0.1:{server.port}/v1/stats"
    assert client.get(url).status_code == 401
    assert client.get(url, headers=bearer(token)).status_code == 200
    assert client.get(url, headers=bearer(token) | {"Host": "tocsin.example"}).status_code == 200


def test_a_file_without_tokens_is_a_warning_on_this_machine(start, client, tmp_path):
    file = tmp_path / "tokens"
    file.touch(0o600)
    server = start("--auth-token-file", file)
    assert client.get(server.url + "/v1/stats").status_code == 401
    assert server.stop() == 0
    assert sum(f"{file} has no access tokens: every call is refused" in line for line in server.errors) == 1


def test_doing_without_tokens_has_to_be_said_and_is_logged(start, client):
    server = start("--auth-allow-unauthenticated", "true", listen="0.0.0.0:0")
    url = f"http://127.0.0.1:{server.port}/v1/stats"
    assert client.get(url, headers={"Host": "tocsin.example"}).status_code == 200
    server.stop()
    assert any("auth.allow_unauthenticated" in line for line in server.errors)


def test_list_shows_no_secrets_and_revoke_knows_its_ids(tmp_path):
    file = tmp_path / "tokens"
    token = create(file, "--scope", "submit", "--topic-prefix", "shop.", name="the shop")
    listed = run("tocsin", "token", "list", "--file", file).stdout
    assert token[7:15] in listed and "the shop" in listed and "shop.*" in listed and "submit" in listed
    assert token.split("_")[2] not in listed
    assert run("tocsin", "token", "revoke", "--file", file, "aaaaaaaa").returncode == 1
    assert run("tocsin", "token", "revoke", "--file", file, token[7:15]).returncode == 0
    assert token[7:15] not in run("tocsin", "token", "list", "--file", file).stdout


@pytest.mark.parametrize("flags,word", [
    (["--name", "n"], "--scope"),
    (["--scope", "admin"], "--name"),
    (["--name", "n", "--scope", "submid"], "submit"),
    (["--name", "a\nb", "--scope", "admin"], "control"),
])
def test_wrong_flags_make_no_token(tmp_path, flags, word):
    done = run("tocsin", "token", "create", "--file", tmp_path / "tokens", *flags)
    assert done.returncode == 2
    assert word in done.stderr
    assert os.listdir(tmp_path) == []
