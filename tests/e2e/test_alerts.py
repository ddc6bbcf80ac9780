"""The rules for Prometheus and the board for Grafana: every rule has tests, and a real Prometheus and Alertmanager see rules
fire and resolve."""

import http.server
import json
import re
import subprocess
import threading

import httpx
import programs
import prometheus_server
import pytest
from conftest import DEADLINE_S, ROOT, ack, reserve, submit
from test_auth import bearer, create

RULES = ROOT / "deploy/prometheus/rules.yml"
RULE_TESTS = ROOT / "deploy/prometheus/rules_test.yml"
BOARD = ROOT / "deploy/grafana/tocsin.json"


def run_promtool(*arguments):
    if why := prometheus_server.promtool():
        pytest.skip(why)
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=DEADLINE_S)


def alerts():
    return re.findall(r"^ +- alert: (\w+)$", RULES.read_text(), re.MULTILINE)


def test_the_rules_do_what_their_tests_say():
    done = run_promtool("test", "rules", RULE_TESTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_is_tested_quiet_and_firing():
    text = RULE_TESTS.read_text()
    quiet = re.findall(r"alertname: (\w+), eval_time: \w+, exp_alerts: \[\]", text)
    firing = re.findall(r"- alertname: (\w+)\n +eval_time: \w+\n +exp_alerts:\n +- exp_labels:", text)
    assert len(alerts()) == len(set(alerts())) > 20
    assert set(quiet) == set(firing) == set(alerts())


def test_a_threshold_that_moves_fails_a_test(tmp_path):
    text = RULES.read_text()
    (tmp_path / "rules_test.yml").write_text(RULE_TESTS.read_text())
    for before, after in [("> 100000", "> 99999"), ("_seconds) > 5\n", "_seconds) > 9\n"), (">= 0.9 * tocsin_memory", ">= 0.8 * tocsin_memory")]:
        assert text.count(before) >= 1, before
        (tmp_path / "rules.yml").write_text(text.replace(before, after, 1))
        assert run_promtool("test", "rules", tmp_path / "rules_test.yml").returncode != 0, after


def test_the_configuration_of_the_compose_file_is_valid():
    done = run_promtool("check", "config", ROOT / "deploy/prometheus/prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr


class Receiver:
    """Where Alertmanager sends alerts: whatever it said, in its order."""

    def __init__(self):
        said = self.said = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                said.extend((alert["labels"]["alertname"], alert["status"], alert["labels"]) for alert in body["alerts"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def await_alert(self, name, status, **labels):
        def came():
            return any(each[:2] == (name, status) and labels.items() <= each[2].items() for each in list(self.said))

        programs.wait_for(came, DEADLINE_S, lambda: f"{name} {status} (said: {self.said})", between_s=0.05)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


@pytest.fixture
def watch(tmp_path, receiver):
    """Starts a Prometheus that watches a server with the rules, which wait for a second instead of minutes."""
    if why := prometheus_server.why_not():
        pytest.skip(why)
    rules = tmp_path / "rules.yml"
    rules.write_text(re.sub(r"^( +for:) \w+$", r"\1 1s", RULES.read_text(), flags=re.MULTILINE))
    started = []

    def make(server, token=None):
        alertmanager = prometheus_server.Alertmanager(tmp_path / "alertmanager", receiver.url)
        started.append(alertmanager)
        target, peer = (url.removeprefix("http://") for url in (server.url, alertmanager.url))
        started.append(prometheus_server.Prometheus(tmp_path / "prometheus", target, rules, peer, token))
        return started[-1]

    yield make
    for program in reversed(started):
        program.close()


def test_an_alert_fires_and_resolves(start, client, watch, receiver):
    server = start()
    client.put(server.topic("small"), json={"capacity_jobs": 10}).raise_for_status()
    prometheus = watch(server)
    for _ in range(9):
        submit(client, server, "small", payload="p")
    receiver.await_alert("TocsinTopicNearlyFull", "firing", topic="small", severity="warning")
    assert [each["metric"]["topic"] for each in prometheus.query('ALERTS{alertname="TocsinTopicNearlyFull"}')] == ["small"]
    jobs = reserve(client, server, "small", max=9)
    assert ack(client, server, *jobs, topic="small") == ["ok"] * 9
    receiver.await_alert("TocsinTopicNearlyFull", "resolved", topic="small")


def test_a_server_that_is_away_is_an_alert_until_it_is_back(start, client, watch, receiver):
    server = start()
    watch(server)
    assert server.stop() == 0
    receiver.await_alert("TocsinDown", "firing", severity="critical")
    start(listen=f"127.0.0.1:{server.port}")
    receiver.await_alert("TocsinDown", "resolved")


def test_prometheus_needs_no_more_than_the_scope_observe(start, watch, tmp_path):
    tokens = {scope: create(tmp_path / "tokens", "--scope", scope) for scope in ("observe", "submit")}
    server = start("--auth-token-file", tmp_path / "tokens")
    prometheus = watch(server, tokens["observe"])
    programs.wait_for(lambda: prometheus.query('up{job="tocsin"} == 1'), DEADLINE_S, "a scrape", between_s=0.1)
    assert prometheus.query("tocsin_build_info")
    assert httpx.get(server.url + "/metrics", headers=bearer(tokens["submit"])).status_code == 403


def board_expressions():
    board = json.loads(BOARD.read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"]
            for name, value in (("$job", "tocsin"), ("$topic", ".*"), ("$__rate_interval", "5s")):
                text = text.replace(name, value)
            yield panel["title"], text


def test_prometheus_answers_every_query_of_the_board(start, client, watch):
    server = start()
    submit(client, server, payload="p", delay_ms=3_600_000)
    submit(client, server, payload="p")
    ack(client, server, *reserve(client, server))
    prometheus = watch(server)
    scraped = 'count_over_time(tocsin_jobs_accepted_total{topic="t"}[1m]) >= 3'
    programs.wait_for(lambda: prometheus.query(scraped), DEADLINE_S, "three scrapes", between_s=0.1)
    silent = set()
    for title, text in board_expressions():
        try:
            if not prometheus.query(text):
                silent.add(title)
        except httpx.HTTPStatusError as error:
            raise AssertionError(f"{title}: {text}: {error.response.text}") from None
    of_other_servers = {"Outcomes", "Failures in a row, the ten worst", "Time of the receiver", "Round trip", "Commands"}
    nothing_happened = {"The first due job has waited for", "RESP commands", "RESP errors"}
    assert silent <= of_other_servers | nothing_happened
