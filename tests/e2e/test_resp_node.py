"""The clients that applications on Node use, ioredis and node-redis, against the RESP door.

They are installed from npm into build/; where that cannot be done, these tests are skipped and say why.
"""

import shutil
import subprocess
import threading
import time

import pytest

from conftest import DEADLINE_S, ENVIRONMENT, ROOT, Server
from resp_wire import Wire
from test_auth import create
from test_docs import lines_of, snippets

SOURCE = ROOT / "tests/e2e/clients"
FOLDER = ROOT / "build/e2e-clients"
CLIENTS = ["ioredis", "node-redis-2", "node-redis-3"]
SCENARIOS = ["life", "pipelines", "binary", "errors", "pubsub", "transactions", "blocking"]


@pytest.fixture(scope="module")
def scripts():
    """The folder with the scripts and their packages."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (Debian: nodejs, npm)")
    lock = (SOURCE / "package-lock.json").read_bytes()
    installed = FOLDER / "installed-lock.json"
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file in SOURCE.iterdir():
        shutil.copy(file, FOLDER)
    if not installed.exists() or installed.read_bytes() != lock:
        done = subprocess.run(["npm", "ci"], cwd=FOLDER, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            pytest.skip("npm could not install the clients: " + " ".join(done.stderr.split())[-300:])
        installed.write_bytes(lock)
    return FOLDER


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("node") / "data")
    yield one
    assert one.stop() == 0, "".join(one.errors)


def node(scripts, client, scenario, port, *token, **options):
    return subprocess.Popen(["node", scripts / "scenarios.mjs", client, scenario, str(port), *token], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, **options)


def expect_well(process):
    """Its output from here on. Not by communicate(), which forgets what readline() has read ahead."""
    if process.stdin:
        process.stdin.close()
    hanging = threading.Timer(2 * DEADLINE_S, process.kill)
    hanging.start()
    out, err = process.stdout.read(), process.stderr.read()
    hanging.cancel()
    assert process.wait(DEADLINE_S) == 0, out[-2000:] + err[-4000:]
    return out


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scripts, serving, client, scenario):
    expect_well(node(scripts, client, scenario, serving.resp_port))


def test_resp3_values_are_what_they_are(scripts, serving):
    expect_well(node(scripts, "node-redis-3", "resp3", serving.resp_port))


@pytest.mark.parametrize("client", CLIENTS)
def test_auth(scripts, start, tmp_path, client):
    token = create(tmp_path / "tokens", "--scope", "submit")
    server = start("--auth-token-file", tmp_path / "tokens")
    expect_well(node(scripts, client, "auth", server.resp_port, token))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_goes_on_after_kill_9_and_nothing_answered_is_lost(scripts, tmp_path, client):
    server = Server(tmp_path / "data")
    port = server.resp_port
    process = node(scripts, client, "reconnect", port, stdin=subprocess.PIPE)
    answered = set()
    try:
        for _ in range(3):
            read_some(process, answered, 200)
            server.kill()
            server = Server(tmp_path / "data", resp_listen=f"127.0.0.1:{port}")
        read_some(process, answered, 200)
        answered |= set(expect_well(process).split())  # closes its input, which stops it
        check_all_there(server, f"{client}-reconnect", answered)
        assert server.stop() == 0
    finally:
        process.kill()
        server.kill()


def test_the_javascript_of_the_resp_page_runs_as_it_is(scripts, server):
    first, second = [text.replace("7421", str(server.resp_port)) for text in snippets("js")]
    (scripts / "page.mjs").write_text(first)
    told = lines_of(["node", scripts / "page.mjs"], 7)
    assert sum("accepted" in line for line in told) == 3
    assert {"order-17 cancel order 17", "order-18 18", "order-19 19", "order-20 20"} <= set(told)
    (scripts / "page.mjs").write_text(second)
    told = lines_of(["node", scripts / "page.mjs"], 2)
    assert "accepted" in told[0] and told[1] == "order-21 cancel order 21 [ 'ok' ]"


def read_some(process, answered, count):
    """So many more answers."""
    end = time.monotonic() + DEADLINE_S
    goal = len(answered) + count
    while len(answered) < goal:
        line = process.stdout.readline()
        assert line, process.stderr.read()[-4000:]
        assert time.monotonic() < end
        answered.add(line.strip())


def check_all_there(server, topic, answered):
    seen = {}
    with Wire(server) as wire:
        while len(seen) < len(answered):
            jobs = wire.call("JOB.RESERVE", topic, "MAX", 1000, "WAIT", 20_000)
            assert jobs, f"{len(answered) - len(seen)} answered jobs are gone"
            assert set(wire.call("JOB.ACK", topic, *[job[1] for job in jobs])) == {"ok"}
            for job in jobs:
                assert job[0] not in seen, "stored twice"
                seen[job[0]] = job[2]
        assert all(payload == job_id for job_id, payload in seen.items())
        assert answered <= {job_id.decode() for job_id in seen}
