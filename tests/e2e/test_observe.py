"""The scope observe, through curl and redis-cli: it sees figures, metrics, topics and jobs, but no payload and no path of a webhook, and
changes nothing."""

import json
import shutil
import subprocess

import pytest
from conftest import BIN, DEADLINE_S, ENVIRONMENT, Server, submit
from test_auth import bearer, create

SECRET = "a payload that only consumers read"
ORIGIN = "https://hooks.example.com:8443"
HOOK = ORIGIN + "/T1/only-the-receiver-knows?key=and-this"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("observed")
    scopes = {"ops": ["admin"], "grafana": ["observe"], "both": ["observe", "consume"], "shop": ["submit", "observe"]}
    flags = {name: [word for scope in each for word in ("--scope", scope)] for name, each in scopes.items()}
    tokens = {name: create(folder / "tokens", *each, name=name) for name, each in flags.items()}
    tokens["team"] = create(folder / "tokens", "--scope", "admin", "--topic-prefix", "hook", name="team")
    server = Server(folder / "data", "--auth-token-file", folder / "tokens")
    server.tokens = tokens
    yield server
    assert server.stop() == 0


@pytest.fixture
def job(guarded, client):
    """One of a fresh topic."""
    client.headers.update(bearer(guarded.tokens["ops"]))
    if "watched" in json.dumps(client.get(guarded.url + "/v1/topics").json()):
        client.delete(guarded.topic("watched")).raise_for_status()
    return submit(client, guarded, "watched", payload=SECRET, delay_ms=3_600_000, headers={"tenant": "acme"})


def curl(server, who, path, *arguments):
    """The status and the text of the answer."""
    line = ["curl", "-s", "-w", "\n%{http_code}", "-H", f"Authorization: Bearer {server.tokens[who]}", *arguments, server.url + path]
    done = subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    text, _, status = done.stdout.rpartition("\n")
    return int(status), text


def redis_cli(server, who, *words):
    if not shutil.which("redis-cli"):
        pytest.skip("the program redis-cli is not installed (Debian: redis-tools)")
    line = ["redis-cli", "-3", "-p", str(server.resp_port), *map(str, words)]
    environment = {**ENVIRONMENT, "REDISCLI_AUTH": server.tokens[who]}
    return subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S, env=environment).stdout


LOOKS = ["/v1/topics", "/v1/topics/watched", "/v1/topics/watched/jobs", "/v1/stats", "/v1/cluster", "/metrics"]


@pytest.mark.parametrize("path", LOOKS)
def test_curl_sees_figures_and_no_payload(guarded, job, path):
    status, text = curl(guarded, "grafana", path)
    assert status == 200, text
    assert SECRET not in text


def test_curl_sees_a_job_without_its_payload(guarded, job):
    for path in (f"/v1/topics/watched/jobs/{job['id']}", "/v1/topics/watched/jobs"):
        status, text = curl(guarded, "grafana", path)
        shown = json.loads(text)
        shown = shown["jobs"][0] if "jobs" in shown else shown
        assert (status, shown["id"], shown["state"]) == (200, job["id"], "scheduled")
        assert shown["headers"] == {"tenant": "acme"}
        assert "payload" not in shown and "payload_base64" not in shown
        for who in ("ops", "both"):
            assert SECRET in curl(guarded, who, path)[1], (who, path)


@pytest.mark.parametrize("path", ["/v1/topics/watched/jobs", "/v1/topics/watched/tally"])
def test_curl_cannot_ask_what_is_in_payloads(guarded, job, path):
    status, text = curl(guarded, "grafana", f"{path}?payload=consumers")
    error = json.loads(text)["error"]
    assert (status, error["code"], error["field"]) == (403, "forbidden", "payload")
    for who in ("ops", "both"):
        assert curl(guarded, who, f"{path}?payload=consumers")[0] == 200


def test_redis_cli_cannot_ask_what_is_in_payloads(guarded, job):
    for command in ("JOB.LIST", "JOB.TALLY"):
        words = [command, "watched", "PAYLOAD", "consumers"]
        told = redis_cli(guarded, "grafana", *words)
        assert "NOPERM" in told and "payload" in told, told
        assert "NOPERM" not in redis_cli(guarded, "both", *words)


def test_a_producer_reads_the_payload_of_a_job_that_it_names_but_lists_none(guarded, job):
    assert SECRET in curl(guarded, "shop", f"/v1/topics/watched/jobs/{job['id']}")[1]
    status, text = curl(guarded, "shop", "/v1/topics/watched/jobs")
    assert status == 200 and job["id"] in text and SECRET not in text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/topics/watched/jobs", '{"payload":"p"}'),
        ("POST", "/v1/topics/watched/reserve", "{}"),
        ("POST", "/v1/topics/watched/jobs/{id}/fire", "{}"),
        ("PATCH", "/v1/topics/watched/jobs/{id}", '{"delay_ms":1}'),
        ("DELETE", "/v1/topics/watched/jobs/{id}", None),
        ("PUT", "/v1/topics/watched", "{}"),
        ("POST", "/v1/topics/watched/pause", None),
        ("POST", "/v1/topics/watched/purge", None),
        ("POST", "/v1/topics/watched/dead/redrive", None),
        ("DELETE", "/v1/topics/watched", None),
    ],
)
def test_curl_changes_nothing(guarded, job, method, path, body):
    before = curl(guarded, "ops", f"/v1/topics/watched/jobs/{job['id']}")
    data = ["-d", body] if body else []
    status, text = curl(guarded, "grafana", path.replace("{id}", job["id"]), "-X", method, *data)
    assert status == 403, text
    assert curl(guarded, "ops", f"/v1/topics/watched/jobs/{job['id']}") == before


def test_redis_cli_sees_figures_and_no_payload(guarded, job):
    assert "totals_accepted:" in redis_cli(guarded, "grafana", "INFO")
    assert "watched" in redis_cli(guarded, "grafana", "TOPIC.LIST")
    assert "scheduled" in redis_cli(guarded, "grafana", "TOPIC.GET", "watched")
    for words in (["JOB.GET", "watched", job["id"]], ["JOB.LIST", "watched"]):
        told = redis_cli(guarded, "grafana", *words)
        assert job["id"] in told and "acme" in told and SECRET not in told and "payload" not in told
        assert SECRET in redis_cli(guarded, "ops", *words)


def test_redis_cli_changes_nothing(guarded, job):
    before = redis_cli(guarded, "ops", "JOB.GET", "watched", job["id"])
    for words in (
        ["JOB.SUBMIT", "watched", "p"],
        ["JOB.RESERVE", "watched"],
        ["JOB.CANCEL", "watched", job["id"]],
        ["JOB.FIRE", "watched", job["id"]],
        ["JOB.REDRIVE", "watched"],
        ["TOPIC.SET", "watched", "PAUSED", "true"],
        ["TOPIC.PURGE", "watched"],
        ["TOPIC.DROP", "watched"],
    ):
        assert "NOPERM" in redis_cli(guarded, "grafana", *words), words
    assert redis_cli(guarded, "ops", "JOB.GET", "watched", job["id"]) == before


def test_the_command_line_lists_without_payloads(guarded, job):
    for words in (["list", "watched"], ["get", "watched", job["id"]], ["stats"], ["topic", "get", "watched"]):
        line = [BIN / "tocsin", *words, "--server", guarded.url]
        environment = {**ENVIRONMENT, "TOCSIN_TOKEN": guarded.tokens["grafana"]}
        done = subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S, env=environment)
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stdout


def tocsin(server, who, *words):
    line = [BIN / "tocsin", *words, "--server", server.url]
    environment = {**ENVIRONMENT, "TOCSIN_TOKEN": server.tokens[who]}
    return subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S, env=environment, check=True).stdout


@pytest.mark.parametrize(
    "look",
    [
        lambda *whom: curl(*whom, "/v1/topics/hooked")[1],
        lambda *whom: curl(*whom, "/v1/topics")[1],
        lambda *whom: redis_cli(*whom, "TOPIC.GET", "hooked"),
        lambda *whom: redis_cli(*whom, "TOPIC.LIST"),
        lambda *whom: tocsin(*whom, "topic", "get", "hooked"),
        lambda *whom: tocsin(*whom, "topics", "--json"),
    ],
    ids=["GET topic", "GET topics", "TOPIC.GET", "TOPIC.LIST", "topic get", "topics"],
)
def test_only_administrators_see_the_path_of_a_webhook(guarded, client, look):
    """It is often a secret of the receiver."""
    client.headers.update(bearer(guarded.tokens["ops"]))
    client.put(guarded.topic("hooked"), json={"delivery": {"sink": "webhook", "url": HOOK}}).raise_for_status()
    for who in ("ops", "team"):
        assert HOOK in look(guarded, who), who
    for who in ("grafana", "both", "shop"):
        shown = look(guarded, who)
        assert ORIGIN + "/..." in shown, who
        assert "only-the-receiver-knows" not in shown and "and-this" not in shown, who


def test_an_export_without_payloads_fails(guarded, job, tmp_path):
    """Its lines would be jobs with empty payloads when they are imported."""
    for who in ("grafana", "ops"):
        line = [BIN / "tocsin", "export", "watched", "--output", tmp_path / who, "--server", guarded.url]
        environment = {**ENVIRONMENT, "TOCSIN_TOKEN": guarded.tokens[who]}
        done = subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S, env=environment)
        assert (done.returncode == 0) == (who == "ops"), done.stdout + done.stderr
        assert ("no payloads" in done.stderr) == (who == "grafana"), done.stderr
    assert SECRET in (tmp_path / "ops").read_text() and SECRET not in (tmp_path / "grafana").read_text()
