"""Fixtures: the real server program on free loopback ports, with its data in the test's own folder.

TOCSIN_BIN_DIR names the folder of the programs; build/release/bin unless set.
"""

import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import httpx
import mysql_server
import netns
import pytest
import redis_servers
import turns
import zookeeper_server
from certificates import Authority
from mysql_server import Outbox
from programs import LOOPBACK
from redis_cluster import RedisCluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TOCSIN_BIN_DIR", ROOT / "build/release/bin"))
DEADLINE_S = 30
# The server takes TOCSIN_ variables for options; the tests' own are not. Whoever starts one and says nothing gets a free
# port for RESP, so that runs beside each other do not meet on the default.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
ENVIRONMENT["TOCSIN_RESP_LISTEN"] = "127.0.0.1:0"
# Segments are written when they are made, and three of the default size for each test's server would keep the disk busy.
SMALL_SEGMENTS = ["--journal-segment-size", "8MiB"]
SAYS_OTHERWISE = {"--store", "--config", "--journal-segment-size", "--limits-payload-size"}
OWN_FOLDER = pytest.StashKey()
FAILED_MODULES = pytest.StashKey()
KEPT_FOLDERS = pytest.StashKey()

# A run that was started in the background, or with nohup, ignores these, and so would every program that the tests start.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


def pytest_configure(config):
    config.addinivalue_line("markers", "torture: kill -9 again and again; TOCSIN_TORTURE_CYCLES sets how often")
    config.addinivalue_line("markers", "alone: compares times of a millisecond: no other test runs beside it")
    config.addinivalue_line("markers", "turns(load): a load under which no turn of a shard is long; make turns runs these")
    if not (BIN / "tocsind").exists():
        raise pytest.UsageError(f"{BIN}/tocsind does not exist: build the release preset or set TOCSIN_BIN_DIR")


def pytest_terminal_summary(terminalreporter):
    turns.report(terminalreporter)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Keeps only what failed tests and their modules wrote: a server's journal is made of large segments, and those of more
    than a thousand tests would fill the disk."""
    session = item.session
    failed_before = session.testsfailed
    yield
    failed = session.stash.setdefault(FAILED_MODULES, set())
    if session.testsfailed > failed_before:
        failed.add(item.module)
    elif OWN_FOLDER in item.stash:
        remove(item.stash[OWN_FOLDER])
    if nextitem is None or nextitem.module is not item.module:
        kept = session.stash.setdefault(KEPT_FOLDERS, set())
        folders = set(session.config._tmp_path_factory.getbasetemp().iterdir())  # pytest offers it to fixtures alone
        if item.module in failed:
            kept |= folders
        for folder in folders - kept:
            remove(folder)


@pytest.fixture
def tmp_path(tmp_path, request):
    request.node.stash[OWN_FOLDER] = tmp_path
    return tmp_path


def remove(folder):
    """As far as it goes: what a process that is still ending writes there is no reason to end all the tests."""
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)


def run(program, *arguments, timeout=DEADLINE_S):
    """Runs a program to its end; the finished process with its text."""
    return subprocess.run(
        [BIN / program, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT
    )


def now_ms():
    return time.time_ns() // 1_000_000


SPEAKS_TLS = re.compile(r" ready http=\S+ resp=\S+ tls=http")
READY = re.compile(r' ready http=(?P<http>\S+) resp=(?P<resp>\S+)|"event":"ready","http":"(?P<http_>[^"]+)","resp":"(?P<resp_>[^"]+)"')


def doors_of(log):
    """The addresses for HTTP and RESP of the last line `ready`; None if there is none."""
    found = [line for line in map(READY.search, list(log)) if line]
    return (found[-1]["http"] or found[-1]["http_"], found[-1]["resp"] or found[-1]["resp_"]) if found else None


class Server:
    """One run of tocsind. Ready when the constructor returns. With `terminal` its stdout is one, so that it prints its
    start-up message. `ca`: the authority of its certificate, for clients, if it speaks TLS."""

    def __init__(self, folder, *flags, listen="127.0.0.1:0", resp_listen="127.0.0.1:0", place=LOOPBACK, terminal=False, ca=None):
        self.folder = folder
        self.ca = None if ca is None else str(ca)
        if place.host != LOOPBACK.host:  # nothing but the tests reaches a namespace
            listen = resp_listen = f"{place.host}:0"
            flags = [*flags, "--auth-allow-unauthenticated", "true"]
        if SAYS_OTHERWISE.isdisjoint(flags):
            flags = [*flags, *SMALL_SEGMENTS]
        doors = ["--http-listen", listen, "--resp-listen", resp_listen]
        ours, its = pty.openpty() if terminal else (None, subprocess.PIPE)
        self.process = subprocess.Popen(
            [*place.prefix, BIN / "tocsind", "--data-dir", folder, *doors, *flags],
            stdout=its,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        if terminal:
            os.close(its)
        self.banner = []  # what it says on stdout
        self.errors = []  # its log
        self._news = threading.Condition()
        self._ended = False  # its log
        self._readers = [
            threading.Thread(target=self._read, args=each, daemon=True)
            for each in ((from_terminal(ours) if terminal else self.process.stdout, self.banner), (self.process.stderr, self.errors))
        ]
        for reader in self._readers:
            reader.start()
        http, resp = self._await_ready(terminal)
        self.url = ("https://" if any(SPEAKS_TLS.search(line) for line in self.errors) else "http://") + http
        self.port = int(http.rsplit(":", 1)[1])
        self.resp_port = int(resp.rsplit(":", 1)[1])

    def _read(self, lines, into):
        for line in lines:
            with self._news:
                into.append(line)
                self._news.notify_all()
        with self._news:
            self._ended |= into is self.errors
            self._news.notify_all()

    def _await_ready(self, terminal):
        """The addresses in its log."""

        def is_ready():
            shown = not terminal or any(line.startswith("Ready") for line in self.banner)
            return self._ended or (shown and doors_of(self.errors))

        with self._news:
            self._news.wait_for(is_ready, DEADLINE_S)
        doors = doors_of(self.errors)
        if doors is None:
            said = "".join(self.errors)
            self.process.kill()
            raise AssertionError(f"tocsind ended with {self.process.wait(DEADLINE_S)}, or is not ready: {said}")
        return doors

    def topic(self, name):
        return f"{self.url}/v1/topics/{name}"

    def stop(self, sig=signal.SIGTERM):
        """Stops it and returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        status = self.process.wait(DEADLINE_S)
        for reader in self._readers:
            reader.join(DEADLINE_S)
        return status

    def kill(self):
        self.process.kill()
        self.process.wait(DEADLINE_S)

    def pause(self):
        """SIGSTOP; returns when it stands still."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)


def from_terminal(ours):
    """The lines that a program prints on the terminal that it was given, until it ends."""
    with open(ours, newline="") as lines:
        try:
            yield from (line.replace("\r\n", "\n") for line in lines)
        except OSError:  # EIO: nobody has the other end
            return


@pytest.fixture
def start(tmp_path, request):
    """Starts servers; each must still be running, or stopped by the test itself, and end with 0 at the end."""
    servers = []

    def make(*flags, folder=None, **options):
        server = Server(folder or tmp_path / "data", *flags, **options)
        servers.append(server)
        return server

    yield make
    try:
        turns.note(request.node, servers)
    finally:
        for server in servers:
            if server.process.returncode is None:
                server.resume()
                assert server.stop() == 0, "".join(server.errors)


@pytest.fixture
def server(start):
    return start()


def _skip_for(why):
    if why:
        pytest.skip(why)


@pytest.fixture
def redis_single(tmp_path):
    _skip_for(redis_servers.why_not())
    one = redis_servers.RedisServer(tmp_path / "redis")
    yield one
    one.close()


@pytest.fixture
def redis_sentinels(tmp_path):
    _skip_for(redis_servers.why_not())
    all_of_them = redis_servers.RedisSentinels(tmp_path / "sentinels")
    yield all_of_them
    all_of_them.close()


@pytest.fixture
def redis_cluster(tmp_path):
    _skip_for(redis_servers.why_not())
    cluster = RedisCluster(tmp_path / "cluster")
    yield cluster
    cluster.close()


@pytest.fixture
def zookeeper(tmp_path):
    _skip_for(zookeeper_server.why_not())
    one = zookeeper_server.ZooKeeperServer(tmp_path / "zookeeper")
    yield one
    one.close()


@pytest.fixture(scope="session")
def mysql():
    """One MariaDB for all tests of the run, each of which has a database of its own."""
    _skip_for(mysql_server.why_not())
    with tempfile.TemporaryDirectory(prefix="tocsin-mysql-") as folder:  # not of a module: those go with it
        one = mysql_server.MySqlServer(pathlib.Path(folder) / "mysql", authority=Authority(pathlib.Path(folder) / "authority"))
        yield one
        one.kill()


@pytest.fixture
def outbox(mysql):
    """An empty outbox in a database of its own."""
    if not mysql.running:
        mysql.start()
    with Outbox(mysql) as one:
        done = run("tocsin", "mysql", "migrate", one.url(), "--password-file", mysql.password_file)
        assert done.returncode == 0, done.stdout + done.stderr
        yield one


@pytest.fixture
def network():
    """Namespaces whose cables can be pulled: network.place(name) is where a server or a node may run. Ask for it before
    what runs there, so that it goes last."""
    _skip_for(netns.why_not())
    one = netns.Network()
    yield one
    one.close()


@pytest.fixture
def node(start, tmp_path):
    """Starts nodes that share a Redis, single, behind Sentinel or a Cluster: node("a", redis_single). With a ZooKeeper they
    find each other there, otherwise in the Redis."""

    def make(name, redis, *flags, zookeeper=None, **options):
        coordination = zookeeper.flags() if zookeeper else ["--coordination", "redis"]
        flags = [*redis.flags(), *coordination, "--node-name", name, *flags]
        return start(*flags, folder=tmp_path / name, **options)

    return make


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 40 MiB. Ask for it before what uses it, so that it goes last."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", folder]
    done = subprocess.run(mount, capture_output=True, text=True) if os.geteuid() == 0 else None
    if done is None or done.returncode != 0:
        pytest.skip(f"cannot mount a small file system here: {done.stderr.strip() if done else 'this needs root'}")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    """One server for tests that only ask, and leave nothing behind that others see."""
    one = Server(tmp_path_factory.mktemp("shared") / "data")
    yield one
    assert one.stop() == 0, "".join(one.errors)


@pytest.fixture
def client():
    with httpx.Client(timeout=DEADLINE_S) as one:
        yield one


def submit(client, server, topic="t", **job):
    answer = client.post(server.topic(topic) + "/jobs", json=job)
    assert answer.status_code == 201, answer.text
    return answer.json()["jobs"][0]


def reserve(client, server, topic="t", **fields):
    answer = client.post(server.topic(topic) + "/reserve", json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()["jobs"]


def ack(client, server, *jobs, topic="t"):
    answer = client.post(server.topic(topic) + "/ack", json={"tokens": [job["token"] for job in jobs]})
    assert answer.status_code == 200, answer.text
    return [result["outcome"] for result in answer.json()["results"]]


def metric(client, server, name):
    """The value of a series without labels."""
    for line in client.get(server.url + "/metrics").text.splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError(f"no metric {name}")


def await_metric(client, server, name, value):
    end = time.monotonic() + DEADLINE_S
    while metric(client, server, name) != value:
        assert time.monotonic() < end, f"{name} never was {value}"
