"""The log: one event when something begins that operators look for, and one when it ends; the same fields as text and as JSON."""

import http.server
import json
import socket
import threading
import time

import pytest
from conftest import DEADLINE_S, ack, doors_of, reserve, submit
from programs import wait_for
from resp_wire import Error, Wire
from test_audit import fields
from test_auth import create
from test_disk_full import FLAGS as SMALL_DISK, fill

LIFE = ["start", "ready", "stopping", "stopped"]
MADE_UP = "tocsin_" + "a" * 8 + "_" + "b" * 52
SECRET = "b3-payload-that-no-log-may-show"


def event_of(line):
    """Its level, its name and its fields; None for a line that is no event."""
    if line.startswith("{"):
        found = json.loads(line)
        return found.pop("level"), found.pop("event"), {name: str(value).lower() if isinstance(value, bool) else str(value)
                                                        for name, value in found.items() if name != "time"}
    words = line.split()
    return (words[1], words[2], fields(line)) if len(words) > 2 else None


def events(server, name, **wanted):
    """The fields of each event of this name that has these, in their order."""
    found = [event_of(line) for line in list(server.errors)]
    return [each[2] for each in found if each and each[1] == name and wanted.items() <= each[2].items()]


def await_event(server, name, count=1, **wanted):
    wait_for(lambda: len(events(server, name, **wanted)) >= count, DEADLINE_S,
             lambda: f"{name} {wanted} in {''.join(server.errors)}", between_s=0.02)
    return events(server, name, **wanted)[-1]


def life(server):
    found = [event_of(line) for line in server.errors]
    return [each for each in found if each and each[1] in LIFE]


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_life_of_a_server(start, client, tmp_path, form):
    server = start("--log-format", form, "--shards", "2")
    submit(client, server, delay_ms=3_600_000)
    submit(client, server, payload=SECRET)
    assert reserve(client, server)
    assert server.stop() == 0
    begun, ready, stopping, stopped = life(server)
    assert [each[:2] for each in (begun, ready, stopping, stopped)] == [("info", name) for name in LIFE]
    assert list(begun[2]) == ["version", "store", "folder", "shards"]
    assert (begun[2]["store"], begun[2]["folder"], begun[2]["shards"]) == ("journal", str(tmp_path / "data"), "2")
    assert list(ready[2]) == ["http", "resp", "jobs_recovered", "took_ms"]
    assert ready[2]["http"] == f"127.0.0.1:{server.port}" and ready[2]["resp"] == f"127.0.0.1:{server.resp_port}"
    assert ready[2]["jobs_recovered"] == "0"
    assert list(stopping[2]) == ["signal", "connections"]
    assert stopping[2] == {"signal": "SIGTERM", "connections": "1"}
    assert list(stopped[2]) == ["took_ms", "scheduled", "leased", "dead", "clean"]
    del stopped[2]["took_ms"]
    assert stopped[2] == {"scheduled": "1", "leased": "1", "dead": "0", "clean": "true"}
    again = start("--log-format", form)
    assert events(again, "ready")[0]["jobs_recovered"] == "2"
    assert SECRET not in "".join(server.errors)


def test_the_start_message_is_for_terminals(start, tmp_path):
    piped = start()
    assert piped.stop() == 0
    assert piped.banner == []
    shown = start(terminal=True)
    assert shown.banner[0].startswith("tocsind ")
    assert doors_of(shown.errors) == (f"127.0.0.1:{shown.port}", f"127.0.0.1:{shown.resp_port}")


def test_the_ready_line_is_there_at_every_level(start):
    server = start("--log-level", "error")
    assert server.stop() == 0
    assert [each[1] for each in life(server)] == ["ready"]


def test_a_full_disk_begins_and_ends(small_disk, start, client):
    server = start(*SMALL_DISK, folder=small_disk / "data")
    fill(client, server)
    assert "No space left on device" in await_event(server, "disk_full", state="begin")["error"]
    while jobs := reserve(client, server, max=20):
        assert ack(client, server, *jobs) == ["ok"] * len(jobs)
    ended = await_event(server, "disk_full", state="end")
    assert int(ended["lasted_ms"]) > 0 and ended["times"] == "1"
    assert len(events(server, "disk_full")) == 2


def test_a_memory_limit_begins_and_ends(start, client):
    server = start("--memory-limit", "64MiB", "--shards", "1", "--limits-payload-size", "64KiB", "--journal-segment-size", "8MiB")
    jobs = [{"payload": SECRET + "x" * 60_000, "delay_ms": 3_600_000}] * 20

    def refused():
        answer = client.post(server.topic("t") + "/jobs", json={"jobs": jobs}).json()
        return answer["jobs"][-1]["outcome"] == "over_capacity"

    wait_for(refused, DEADLINE_S, "memory that is full", between_s=0)
    assert refused()
    begun = await_event(server, "memory_limit", state="begin")
    assert int(begun["used_bytes"]) > int(begun["limit_bytes"]) * 0.9
    assert client.post(server.topic("t") + "/purge").json()["purged"] > 900
    assert int(await_event(server, "memory_limit", state="end")["lasted_ms"]) > 0
    assert len(events(server, "memory_limit")) == 2
    assert SECRET not in "".join(server.errors)


def test_overload_begins_and_ends(start):
    server = start("--limits-connections", "2")
    with Wire(server), Wire(server):
        with socket.create_connection(("127.0.0.1", server.resp_port), DEADLINE_S) as refused:
            refused.recv(1000)
        assert await_event(server, "overload", state="begin") == {"state": "begin", "why": "limits.connections is reached"}
    assert int(await_event(server, "overload", state="end")["lasted_ms"]) >= 5_000
    assert len(events(server, "overload")) == 2


def test_a_full_redis_begins_and_ends(node, redis_single, client):
    server = node("a", redis_single)
    submit(client, server, payload="before")
    redis_single.ask("CONFIG", "SET", "maxmemory", 1)
    refused = client.post(server.topic("t") + "/jobs", json={"payload": SECRET})
    assert refused.status_code == 507, refused.text
    begun = await_event(server, "redis_full", state="begin")
    assert begun["error"].startswith("OOM ") and begun["new_jobs"] == "refused"
    redis_single.ask("CONFIG", "SET", "maxmemory", 0)
    assert int(await_event(server, "redis_full", state="end")["lasted_ms"]) >= 5_000
    submit(client, server, payload="after")
    assert len(events(server, "redis_full")) == 2
    assert SECRET not in "".join(server.errors)


@pytest.fixture
def receiver():
    """A receiver that answers `status`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(one.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    one = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    one.status = 500
    threading.Thread(target=one.serve_forever, daemon=True).start()
    yield one
    one.shutdown()
    one.server_close()


def test_a_receiver_that_fails_and_recovers(start, client, receiver):
    server = start("--webhook-allow", "127.0.0.1")
    place = f"http://127.0.0.1:{receiver.server_port}"
    delivery = {"sink": "webhook", "url": f"{place}/hook/{SECRET}?key={SECRET}"}
    settings = {"delivery": delivery, "max_attempts": 100, "backoff_base_ms": 20, "backoff_max_ms": 20}
    client.put(server.topic("orders"), json=settings).raise_for_status()
    submit(client, server, "orders", payload=SECRET)
    begun = await_event(server, "receiver_failing", state="begin")
    assert (begun["topic"], begun["sink"], begun["to"]) == ("orders", "webhook", place)
    assert "500" in begun["error"]
    receiver.status = 200
    ended = await_event(server, "receiver_failing", state="end")
    assert (ended["topic"], ended["to"], ended["times"]) == ("orders", place, "1")
    assert len(events(server, "receiver_failing")) == 2
    assert SECRET not in "".join(server.errors)


def test_refused_logins(start, client, tmp_path):
    create(tmp_path / "tokens", "--scope", "submit")
    server = start("--auth-token-file", tmp_path / "tokens")
    began = time.monotonic()
    for _ in range(50):
        answer = client.get(server.topic("t"), headers={"authorization": f"Bearer {MADE_UP}"})
        assert answer.status_code == 401
    with Wire(server) as wire:

        def over_resp():
            assert isinstance(wire.call("AUTH", MADE_UP), Error)
            return events(server, "login_refused", door="resp")

        wait_for(over_resp, DEADLINE_S, "a line for RESP", between_s=0.05)
        [line] = over_resp()
        assert line["from"].startswith("127.0.0.1:") and "not known" in line["error"]
    took = time.monotonic() - began
    lines = events(server, "login_refused")
    assert lines[0]["door"] == "http" and lines[0]["left_out"] == "0"
    assert len(lines) <= took + 2, "one a second at most"
    assert sum(int(each["left_out"]) for each in lines) + len(lines) >= 51
    assert MADE_UP[-20:] not in "".join(server.errors)


def test_a_node_that_joins_and_one_that_dies(start, redis_single, tmp_path):
    flags = [*redis_single.flags(), "--session-timeout", "1s"]
    a = start(*flags, "--node-name", "a", folder=tmp_path / "a")
    await_event(a, "rebalance", nodes="1")
    assert events(a, "ready")[0].keys() == {"http", "resp", "took_ms"}, "its jobs are not of this node alone"
    b = start(*flags, "--node-name", "b", folder=tmp_path / "b")
    joined = await_event(a, "node_joined")
    assert joined["node"].startswith("b-") and joined["http"] == f"127.0.0.1:{b.port}"
    await_event(a, "rebalance", nodes="2")
    before = len(events(a, "rebalance"))
    b.kill()
    assert await_event(a, "node_left") == {"node": joined["node"], "how": "vanished"}
    whole = await_event(a, "rebalance", before + 1)
    assert whole["nodes"] == "1" and whole["owned"] == whole["groups"] and int(whole["gained"]) > 0
    assert len(events(a, "rebalance")) == before + 1, "one line, whatever it takes over"
    assert not events(b, "node_joined"), "a was there before"
    c = start(*flags, "--node-name", "c", folder=tmp_path / "c")
    await_event(a, "node_joined", 2)
    assert c.stop() == 0
    assert await_event(a, "node_left", 2)["how"] == "left"
