"""The documents against the programs: what they name exists, what exists is named, and what they show is what happens.

TOCSIN_UPDATE_DOCS=1 writes the answers that the server gives now into docs/http.md, instead of comparing them.
"""

import json
import os
import re
import shlex
import subprocess
import threading
import time

import httpx
import pytest

from certificates import Authority
from conftest import BIN, DEADLINE_S, ENVIRONMENT, ROOT, ack, reserve, run, submit
from resp_wire import Wire

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
EXAMPLE = re.compile(r"^```sh\n(.*?)\n```\n```json\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
DEFAULT_URL = "http://127.0.0.1:7420"


def read(name):
    return (ROOT / name).read_text()


def without_code(text):
    """Without fenced blocks, in which # begins a comment and [x](y) is no link."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text):
    """The names that headings get from GitHub."""
    names = []
    for heading in re.findall(r"^#+ +(.+?)\s*$", without_code(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        seen = sum(1 for other in names if other == name or re.fullmatch(re.escape(name) + r"-\d+", other))
        names.append(f"{name}-{seen}" if seen else name)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    dead = []
    for target in LINK.findall(without_code(page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            dead.append(target)
    assert dead == []


def test_links_that_lead_nowhere_are_noticed():
    text = "# One `GET /x/{y}`\n```\n# no heading\n```\n## Two, and two\n## Two, and two\n"
    assert anchors(text) == ["one-get-xy", "two-and-two", "two-and-two-1"]


@pytest.fixture
def metrics(start, tmp_path):
    """What a server with TLS serves once there is a topic, one that pushes, one with limits and one with an alert: some series are of such topics alone."""
    authority = Authority(tmp_path / "ca")
    certificate, key = authority.issue("server")
    tls = ["--tls-certificate", certificate, "--tls-key", key, "--resp-tls", "off"]
    server = start("--alerts-webhook-url", "http://127.0.0.1:9/", "--alerts-hold", "1ms", *tls, ca=authority.ca)
    client = httpx.Client(verify=server.ca, timeout=DEADLINE_S)
    submit(client, server, payload="x")
    ack(client, server, *reserve(client, server))
    pushes = {"delivery": {"sink": "webhook", "url": "https://shop.example/"}}
    client.put(server.topic("pushes"), json=pushes).raise_for_status()
    limited = {"capacity_jobs": 9, "capacity_bytes": 1000, "paused": True}
    client.put(server.topic("limited"), json=limited).raise_for_status()
    submit(client, server, "limited", payload="due, and it stays so")
    client.put(server.topic("waits"), json={"alert_due_jobs": 1}).raise_for_status()
    for _ in range(2):
        submit(client, server, "waits", payload="x")
    with Wire(server) as wire:
        wire.call("TOPIC.GET", "limited")
        wire.call("TOPIC.GET", "absent")  # errors that never happened have no series
        wire.call("JOB.OPERATE", "limited", "attempts", "ALL", "ATTEMPTS", 3)
    late = (
        'tocsin_alerts_firing{rule="backlog"}',
        'tocsin_jobs_scheduled{topic="pushes"}',
        'tocsin_jobs_oldest_due_seconds{topic="limited"}',
        "tocsin_operations_total",
    )
    end = time.monotonic() + DEADLINE_S
    while not all(series in (text := client.get(server.url + "/metrics").text) for series in late):
        assert time.monotonic() < end  # the shards publish their figures every second
    return text


def metric_rows(text):
    return re.findall(r"^\| `((?:tocsin|process)_\w+)` \| (\w+) \|", text, re.MULTILINE)


def test_every_metric_is_explained_and_no_other(metrics):
    served = re.findall(r"^# TYPE (\w+) (\w+)$", metrics, re.MULTILINE)
    sections = re.split(r"^(?=## )", read("docs/metrics.md"), flags=re.MULTILINE)
    others = [section for section in sections if section.startswith(("## Redis\n", "## The outbox\n"))]
    assert len(others) == 2 and all(map(metric_rows, others)), "what only a server on Redis, or with an outbox, has"
    here = [section for section in sections if section not in others]
    assert sorted(metric_rows("".join(here))) == sorted(served)


def test_metrics_that_a_page_names_exist(metrics):
    served = set(re.findall(r"^(?:# TYPE )?((?:tocsin|process)_\w+)", metrics, re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"\btocsin_(?:http|resp|transfer|journal|jobs|lateness|memory|push|shard|conservation)_\w+", page.read_text())
        assert set(named) - served == set(), page


def rule_expressions():
    return re.findall(r"^ +expr: (\|\n(?: {10}.*\n)+|.*\n)", read("deploy/prometheus/rules.yml"), re.MULTILINE)


def board_expressions():
    panels = json.loads(read("deploy/grafana/tocsin.json"))["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


@pytest.mark.parametrize("expressions", [rule_expressions, board_expressions])
def test_the_alerts_and_the_board_use_metrics_and_labels_that_exist(metrics, expressions):
    labels = {}
    for name, pairs in re.findall(r"^((?:tocsin|process)_\w+)(?:\{(.*)\})? \S+$", metrics, re.MULTILINE):
        labels.setdefault(name, set()).update(re.findall(r'(\w+)="', pairs))
    of_redis = {name for name, _ in metric_rows(read("docs/metrics.md"))} - set(labels)
    assert len(expressions()) > 20
    used = 0
    for expression in expressions():
        # A quantile is by `le`, too, and Prometheus itself adds two labels.
        wanted = {label for group in re.findall(r"(?:by|on) \(([^)]*)\)", expression) for label in group.split(", ")}
        for name, selector in re.findall(r"\b((?:tocsin|process)_\w+)(?:\{([^}]*)\})?", expression):
            used += 1
            if name.removesuffix("_bucket") in of_redis:
                continue
            assert name in labels, expression
            named = {matcher[0] for matcher in re.findall(r'(\w+)(=~?|!=|!~)"', selector)}
            assert (named | wanted) - {"instance", "job", "le"} <= labels[name], expression
    assert used >= len(expressions()) - 1, "all but the one on up"


def test_every_call_has_a_heading_and_no_other(shared_server, client):
    served = set()
    for path, methods in client.get(shared_server.url + "/v1/openapi.json").json()["paths"].items():
        served |= {f"{method.upper()} {path}" for method in methods if method != "parameters"}
    headings = re.findall(r"^### `([A-Z]+ /[^`]*)`$", read("docs/http.md"), re.MULTILINE)
    assert sorted(headings) == sorted(served)


def test_every_command_has_a_row_with_its_syntax_and_no_other(shared_server):
    with Wire(shared_server, protocol=3) as wire:
        docs = wire.call("COMMAND", "DOCS")
    served = set()
    for name, about in docs.items():
        syntax = [argument[b"display_text"].decode() for argument in about.get(b"arguments", [])]
        served.add(" ".join([name.decode().upper(), *syntax]))
    rows = re.findall(r"^- `([A-Z.]+(?: [^`]*)?)`$", read("docs/resp.md"), re.MULTILINE)
    assert sorted(rows) == sorted(served)


def test_every_limit_is_explained():
    options = re.findall(r"^### `(limits\.\w+)`$", read("docs/configuration.md"), re.MULTILINE)
    assert options
    for page in ("docs/http.md", "docs/resp.md", "docs/operations.md"):
        assert [option for option in options if f"`{option}`" not in read(page)] == [], page


def commands_shown(program):
    """What the pages show of a program: lines of code blocks, and `spans`. Without comments; the words of each."""
    for page in PAGES:
        text = page.read_text()
        lines = [line for block in re.findall(r"^```\w*\n(.*?)^```$", text, re.M | re.S) for line in block.splitlines()]
        for line in [*lines, *re.findall(r"`([^`\n]+)`", without_code(text))]:
            if found := re.match(rf"(?:sudo -u \w+ )?{program} (?!=)(.*)", line):
                yield page.name, shlex.split(found[1].replace("...", " "), comments=True)


def test_flags_that_a_page_shows_exist():
    """Of tocsin by the help of its command, of tocsind by its own."""
    helps = {}
    def known(*command):
        if command not in helps:
            helps[command] = set(re.findall(r"--[\w-]+", run(*command, "--help").stdout))
        return helps[command]
    seen = 0
    for page, words in commands_shown("tocsind"):
        seen += 1
        flags = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert flags <= known("tocsind") | {"--help", "--version"}, (page, words)
    for page, words in commands_shown("tocsin"):
        seen += 1
        if "--" in words:
            words = words[: words.index("--")]
        flags = {word.partition("=")[0] for word in words if word.startswith("--")}
        groups = {"topic", "dead", "token", "journal", "clock", "mysql"}
        command = words[:2] if words[0] in groups else words[:1]
        if command[0].startswith("-") or command[0].isupper():
            continue
        assert run("tocsin", *command, "--help").returncode == 0, (page, words)
        assert flags <= known("tocsin", *command) | known("tocsin") | {"--help", "--version"}, (page, words)
    assert seen > 60


def test_the_packages_that_the_programs_need_are_listed():
    listed = re.search(r"^apt-get install ((?:.*\\\n)*.*)$", read("docs/operations.md"), re.MULTILINE)[1]
    programs = [str(BIN / name) for name in ("tocsind", "tocsin")]
    needed = subprocess.run([ROOT / "tools/runtime_packages.sh", *programs], capture_output=True, text=True, check=True)
    assert listed.replace("\\\n", " ").split() == needed.stdout.split()


START = "5f0c27d1"  # what cursors begin with in the page; with each start of a server it is another


def comparable(answer):
    """Without what differs from run to run."""
    answer = re.sub(r'"cursor":"[0-9a-f]{8}\.', f'"cursor":"{START}.', answer)
    return re.sub(r'"(uptime_ms|connections)":\d+', r'"\1":1', answer)


def test_the_examples_answer_what_the_page_says(start):
    server = start("--clock", "virtual", "--shards", "1")
    text = read("docs/http.md")
    examples = EXAMPLE.findall(text)
    assert len(examples) > 30
    got = []
    start_of_cursors = START
    for command, _ in examples:
        command = command.replace(START, start_of_cursors)
        line = "set -e; curl() { command curl -sS \"$@\"; }; " + command.replace(DEFAULT_URL, server.url)
        path = {"PATH": f"{BIN}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=DEADLINE_S,
                              env=ENVIRONMENT | path)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        if cursor := re.search(r'"cursor":"([0-9a-f]{8})\.', done.stdout):
            start_of_cursors = cursor[1]
        got.append(comparable(done.stdout.replace(server.url, DEFAULT_URL).strip()))
    if os.environ.get("TOCSIN_UPDATE_DOCS"):
        answers = iter(got)
        text = EXAMPLE.sub(lambda match: f"```sh\n{match[1]}\n```\n```json\n{next(answers)}\n```", text)
        (ROOT / "docs/http.md").write_text(text)
        return
    for (command, answer), real in zip(examples, got):
        assert real == comparable(answer), command


QUICK = re.compile(r"^```(sh|bash)\n(.*?)\n```\n```json\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def without_what_differs(answer):
    """Without ids and delivery tokens of the server, and without times."""
    answer = re.sub(r"\bj[0-9a-z]{13}\b", "ID", answer)
    answer = re.sub(r"\b[A-Za-z0-9_-]{24}\b", "TOKEN", answer)
    answer = re.sub(r"\b1[789]\d{11}\b", "T", answer)
    return re.sub(r", due .*", ", due T", answer).split()


@pytest.mark.parametrize("language, options", [("sh", []), ("bash", ["--clock", "virtual"])])
def test_the_quick_start_does_what_the_page_says(start, language, options):
    """Blocks marked sh go to one server, those marked bash to one with a virtual clock. Delays of seconds become short."""
    server = start(*options)
    examples = [(command, answer) for marked, command, answer in QUICK.findall(read("docs/quickstart.md")) if marked == language]
    assert examples
    for command, answer in examples:
        command = command.replace(DEFAULT_URL, server.url).replace("-p 7421", f"-p {server.resp_port}")
        command = re.sub(r"\b5000\b", "50", command).replace("--in 5s", "--in 50ms")
        line = 'set -eo pipefail; curl() { command curl -sS "$@"; echo; }; ' + command
        path = {"PATH": f"{BIN}:{os.environ['PATH']}", "TOCSIN_SERVER": server.url, "TZ": "UTC"}
        done = subprocess.run(["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=DEADLINE_S, env=ENVIRONMENT | path)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        assert without_what_differs(done.stdout) == without_what_differs(answer), command


def snippets(language):
    """The programs of docs/resp.md, whose delays are made short."""
    return [text.replace("5000", "50") for text in re.findall(rf"^```{language}\n(.*?)^```$", read("docs/resp.md"), re.M | re.S)]


def lines_of(command, count):
    """What a program that never ends prints at first."""
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    hanging = threading.Timer(DEADLINE_S, program.kill)
    hanging.start()
    lines = [program.stdout.readline().strip() for _ in range(count)]
    hanging.cancel()
    program.kill()
    program.wait()
    program.stdout.close()
    return lines


def test_the_python_of_the_resp_page_runs_as_it_is(server):
    pytest.importorskip("redis")
    [text] = snippets("python")
    told = lines_of(["/usr/bin/python3", "-u", "-c", text.replace("7421", str(server.resp_port))], 4)
    assert sorted(told) == ["b'any bytes'", "b'order 18'", "b'order 19'", "b'order 20'"]


def test_the_redis_cli_of_the_resp_page_prints_what_it_says(server):
    page = re.search(r"^```\n(\$ redis-cli .*?)^```$", read("docs/resp.md"), re.M | re.S)[1]
    token, told = "", ""
    for command in re.findall(r"^\$ redis-cli (.*)$", page, re.M):
        words = [word.replace("BAABAAAAAAAAAAEAAAAAAQAA", token) for word in shlex.split(command.replace("5000", "50"))]
        words[words.index("-p") + 1] = str(server.resp_port)
        printed = subprocess.run(["redis-cli", "--no-raw", *words], capture_output=True, text=True, timeout=DEADLINE_S,
                                 env=ENVIRONMENT).stdout
        if found := re.search(r'"([\w-]{24})"', printed):
            token = found[1]
        told += f"$ redis-cli {command}\n{printed.replace(token or 'no token yet', 'BAABAAAAAAAAAAEAAAAAAQAA')}"
    assert re.sub(r"\b1[78]\d{11}\b", "T", told) == re.sub(r"\b1[78]\d{11}\b", "T", page)


def test_the_tables_are_what_the_program_prints():
    check = subprocess.run([ROOT / "tools/fill_tables.py", "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr
