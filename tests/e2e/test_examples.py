"""The programs in examples/, against a real server, and that they notice one which misbehaves."""

import http.server
import os
import re
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from conftest import BIN, DEADLINE_S, ENVIRONMENT, ROOT, Server, run

EXAMPLES = {
    "order_timeout.sh": [
        r"accepted A-1, due .* \(in 30m\)",
        r"A-1 paid, timeout: cancelled",
        r"delivered: close order A-2",
        r"A-2 paid too late, timeout: in_flight",
        r"A-2 paid even later, timeout: finished",
        r"nothing else is delivered",
    ],
    "reminders.py": [
        r"ming: reminder at \d{4}-\d\d-\d\dT09:00\+08:00, which is \d{4}-\d\d-\d\dT01:00\+00:00",
        r"nora: moved to .*T09:00\+01:00",
        r"T09:00\+08:00 ming: dentist today",
        r"T09:00-05:00 ann: dentist today",
        r"T09:00\+01:00 nora: dentist today",
    ],
    "retry.py": [
        r"attempt 1 of 3 failed: ok",
        r"next attempt in 1[0-2]\d{3} ms",
        r"attempt 2 of 3 failed: ok",
        r"next attempt in 2[0-5]\d{3} ms",
        r"attempt 3 of 3 failed: dead",
        r"dead letter: hook-1, 502 from the receiver, attempt 3",
        r"attempt 1 of 3 went through: done",
    ],
    "debounce.sh": [
        r"doc-7 changed to version 3",
        r"indexed: doc-7, version 3",
        r"three changes, one delivery",
    ],
    "group_buy.py": [
        r"kettles: ann joins: counted, 2 to go",
        r"kettles: ann joins: repeated, 1 to go",
        r"kettles: cy joins: fired, 0 to go",
        r"kettles: ship",
        r"lamps: dee joins: counted, 2 to go",
        r"lamps: refund",
        r"lamps: eve joins: unknown",
    ],
}


@pytest.fixture(scope="module")
def virtual(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("examples") / "data", "--clock", "virtual")
    yield server
    assert server.stop() == 0


def run_example(name, url, **environment):
    environment |= {"TOCSIN_SERVER": url, "PATH": f"{BIN}:{os.environ['PATH']}"}
    command = ["/usr/bin/python3", "-B"] if name.endswith(".py") else ["bash"]
    return subprocess.run([*command, ROOT / "examples" / name], capture_output=True, text=True, timeout=2 * DEADLINE_S,
                          env=ENVIRONMENT | environment)


def assert_says(done, lines):
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(".*".join(lines), done.stdout, re.DOTALL), done.stdout
    assert done.stderr == ""


def test_every_example_is_here_and_in_the_readme():
    programs = {path.name for path in (ROOT / "examples").iterdir() if os.access(path, os.X_OK) and path.is_file()}
    assert programs == set(EXAMPLES)
    readme = (ROOT / "examples/README.md").read_text()
    assert [name for name in EXAMPLES if f"| [{name}]({name}) |" not in readme] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_does_what_it_says(virtual, client, name):
    assert_says(run_example(name, virtual.url), EXAMPLES[name])
    assert client.get(virtual.url + "/v1/topics").json() == {"topics": []}, "it leaves something behind"


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_without_a_server_fails(name):
    done = run_example(name, "http://127.0.0.1:9")
    assert done.returncode != 0
    assert "127.0.0.1:9" in done.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_fails_where_the_server_asks_for_a_token_and_gets_none(start, tmp_path, name):
    file = tmp_path / "tokens"
    made = run("tocsin", "token", "create", "--file", file, "--name", "me", "--scope", "admin")
    server = start("--clock", "virtual", "--auth-token-file", file)
    assert run_example(name, server.url).returncode != 0
    assert_says(run_example(name, server.url, TOCSIN_TOKEN=made.stdout.strip()), EXAMPLES[name])


class Changing(http.server.BaseHTTPRequestHandler):
    """Passes calls on to a real server, and changes a word of its answers."""

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = urllib.request.Request(self.server.url + self.path, method=self.command, data=body)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as reply:
                status, text = reply.status, reply.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        text = text.replace(*self.server.change)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def changing(virtual):
    """A server that lies: makes one that changes `old` to `new` in every answer."""
    servers = []

    def make(old, new):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Changing)
        server.url, server.change = virtual.url, (old.encode(), new.encode())
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield make
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join(DEADLINE_S)


LIES = [
    ("order_timeout.sh", '"in_flight"', '"cancelled"'),
    ("order_timeout.sh", '"outcome":"cancelled"', '"outcome":"unknown"'),
    ("order_timeout.sh", '"id":"A-2"', '"id":"A-1"'),
    ("reminders.py", "ann: dentist", "nora: dentist"),
    ("reminders.py", '"amended"', '"in_flight"'),
    ("retry.py", '"attempt":2', '"attempt":1'),
    ("retry.py", '"dead"', '"ok"'),
    ("retry.py", '"redriven":1', '"redriven":0'),
    ("debounce.sh", "version 3", "version 2"),
    ("debounce.sh", '"accepted"', '"duplicate"'),
    ("debounce.sh", '"outcome":"ok"', '"outcome":"stale"'),
    ("group_buy.py", '"repeated"', '"counted"'),
    ("group_buy.py", '"count_left":2', '"count_left":0'),
    ("group_buy.py", '"id":"kettles"', '"id":"lamps"'),
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_works_through_one_that_changes_nothing(changing, name):
    assert_says(run_example(name, changing("never said", "")), EXAMPLES[name])


@pytest.mark.parametrize("name,old,new", LIES, ids=[f"{lie[0]}-{i}" for i, lie in enumerate(LIES)])
def test_an_example_notices_a_server_that_misbehaves(changing, name, old, new):
    done = run_example(name, changing(old, new))
    assert done.returncode != 0, done.stdout
    assert done.stderr != ""
