"""What the HTTP front end refuses, and how it says so."""

import base64
import json
import socket
import time

import httpx
import pytest

from conftest import DEADLINE_S, await_metric, reserve, run, submit

TEN_YEARS_MS = 3653 * 86_400_000


def refuse(client, url, body, status=400, method="POST"):
    content = body if isinstance(body, (str, bytes)) else json.dumps(body)
    answer = client.request(method, url, content=content)
    assert answer.status_code == status, answer.text
    return answer.json()["error"]


BAD_JOBS = [
    ("id", 7, "string"),
    ("id", "", "256"),
    ("id", "x" * 257, "256"),
    ("id", "a\nb", "control"),
    ("key", ["k"], "string"),
    ("key", "x" * 257, "256"),
    ("delay_ms", "5", "integer"),
    ("delay_ms", 1.5, "integer"),
    ("delay_ms", -1, str(TEN_YEARS_MS)),
    ("delay_ms", TEN_YEARS_MS + 1, str(TEN_YEARS_MS)),
    ("delay_ms", 2**64 - 1, str(TEN_YEARS_MS)),
    ("delay_ms", 2**70, str(TEN_YEARS_MS)),
    ("due_ms", "tomorrow", "integer"),
    ("due_ms", -1, "0"),
    ("due_ms", 2**62, "due_ms is"),
    ("due_ms", 1_800_000_000, "seconds"),
    ("past", "ignore", "refuse, fire"),
    ("payload", None, "string"),
    ("payload_base64", "no base64!", "base64"),
    ("headers", "x", "object"),
    ("headers", {f"h{i}": "" for i in range(33)}, "32"),
    ("headers", {"h": "x" * 9000}, "8192"),
    ("trigger", "sometimes", "time, count, either"),
    ("count", 0, "1"),
    ("count", 2**40, "100000"),
    ("max_attempts", 0, "1"),
    ("max_attempts", 2**40, "1000"),
    ("on_conflict", "ignore", "reject, replace, keep"),
]


@pytest.mark.parametrize("field,value,words", BAD_JOBS, ids=[f"{row[0]}-{i}" for i, row in enumerate(BAD_JOBS)])
def test_a_wrong_field_is_named_with_its_limit(shared_server, client, field, value, words):
    for body in ({field: value}, {"jobs": [{"payload": "good"}, {field: value}]}):
        too_large = field == "headers" and isinstance(value, dict)
        error = refuse(client, shared_server.topic("bad") + "/jobs", body, 413 if too_large else 400)
        assert error["code"] == ("too_large" if too_large else "invalid_argument")
        assert field in error["field"]
        assert words in error["message"]
    assert reserve(client, shared_server, topic="bad") == []


BAD_CALLS = [
    ("jobs", {"jobs": []}, "jobs"),
    ("jobs", {"jobs": [{}] * 10_001}, "jobs"),
    ("jobs", {"delay_ms": 1, "due_ms": 1}, "due_ms"),
    ("jobs", {"payload": "", "payload_base64": ""}, "payload_base64"),
    ("reserve", {"max": 0}, "max"),
    ("reserve", {"max": "1"}, "max"),
    ("reserve", {"max": 10_001}, "max"),
    ("reserve", {"wait_ms": -1}, "wait_ms"),
    ("reserve", {"wait_ms": 10**9}, "wait_ms"),
    ("reserve", {"lease_ms": 0}, "lease_ms"),
    ("reserve", {"lease_ms": 10**12}, "lease_ms"),
    ("ack", {}, "tokens"),
    ("ack", {"tokens": "x"}, "tokens"),
    ("ack", {"tokens": []}, "tokens"),
    ("ack", {"tokens": ["nonsense"]}, "tokens[0]"),
]


@pytest.mark.parametrize("call,body,field", BAD_CALLS, ids=[f"{row[0]}-{i}" for i, row in enumerate(BAD_CALLS)])
def test_a_wrong_call_is_named_with_its_field(shared_server, client, call, body, field):
    error = refuse(client, shared_server.topic("bad") + "/" + call, body)
    assert error["code"] == "invalid_argument"
    assert error["field"] == field


def test_an_unknown_field_is_named_with_the_nearest_known_one(shared_server, client):
    error = refuse(client, shared_server.topic("t") + "/jobs", {"jobs": [{"delay": 1, "playload": "x"}]})
    assert error["code"] == "unknown_field"
    assert error["field"] == "jobs[0].delay"
    error = refuse(client, shared_server.topic("t") + "/reserve", {"wait_sm": 1})
    assert error["field"] == "wait_sm"
    assert '"wait_ms"' in error["message"]
    error = refuse(client, shared_server.topic("t") + "/jobs/x?kye=1", "", method="DELETE")
    assert error["field"] == "kye"
    error = refuse(client, shared_server.topic("t") + "/jobs?delay_ms=5", {"payload": "x"})
    assert (error["code"], error["field"]) == ("unknown_field", "delay_ms")


def test_bodies_that_are_no_json_object(shared_server, client):
    deep = '{"payload":' + "[" * 40 + "]" * 40 + "}"
    for body in ("", "{", "[]", "nonsense", '{"payload":"\xff"}'.encode("latin-1"), deep):
        assert refuse(client, shared_server.topic("t") + "/jobs", body)["code"] == "invalid_argument"


def test_topics_have_names_with_rules(shared_server, client):
    for name in ("x" * 257, "%00", "%ff", "a%0Ab"):
        error = refuse(client, shared_server.topic(name) + "/jobs", {"payload": ""})
        assert error["field"] == "topic", name


def test_unknown_paths_and_methods(shared_server, client):
    assert refuse(client, shared_server.url + "/v2", {}, 404)["code"] == "not_found"
    answer = client.put(shared_server.topic("t") + "/jobs", json={})
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST, GET, HEAD"
    assert answer.json()["error"]["code"] == "method_not_allowed"
    assert client.get(shared_server.url + "/healthz").json() == {"status": "ok"}
    assert client.head(shared_server.url + "/healthz").status_code == 200
    assert client.head(shared_server.topic("t") + "/reserve").status_code == 405


def test_metrics_are_prometheus_text(shared_server, client):
    answer = client.get(shared_server.url + "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE tocsin_transfer_memory_bytes gauge" in answer.text


def test_a_payload_over_its_limit(start, client):
    server = start("--limits-payload-size", "1KiB")
    submit(client, server, payload="x" * 1024)
    error = refuse(client, server.topic("t") + "/jobs", {"payload": "x" * 1025}, 413)
    assert error["code"] == "too_large"
    assert "payload" in error["field"]
    assert "1024" in error["message"]


def test_a_body_over_its_limit_is_refused_before_it_is_sent(start, client):
    server = start("--limits-body-size", "4KiB", "--limits-payload-size", "4KiB")
    error = refuse(client, server.topic("t") + "/jobs", "x" * 5000, 413)
    assert error["code"] == "too_large"
    assert "4096" in error["message"]
    with connect(server) as wire:
        wire.sendall(b"POST /v1/topics/t/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        assert b" 413 " in read_all(wire)
    with connect(server) as wire:
        wire.sendall(b"POST /v1/topics/t/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(6):
            wire.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")
        assert b" 413 " in read_all(wire)


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S)


def read_all(wire):
    """Until the server closes."""
    got = b""
    while True:
        piece = wire.recv(65536)
        if not piece:
            return got
        got += piece


SMUGGLING = [
    b"Content-Length: 2\r\nContent-Length: 2\r\n",
    b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Content-Length: 2, 2\r\n",
    b"Content-Length: -2\r\n",
    b"Host: other\r\n",
    b"X-Folded: a\r\n b\r\n",
    b"X-Bare: a\nX-Other: b\r\n",
    b"No-Colon\r\n",
    b"Expect: a-miracle\r\n",
    b"Origin: null\r\nOrigin: null\r\n",
]


@pytest.mark.parametrize("header", SMUGGLING)
def test_headers_that_can_be_read_in_two_ways_end_the_connection(shared_server, header):
    with connect(shared_server) as wire:
        wire.sendall(b"POST /v1/topics/t/jobs HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n{}GET /healthz HTTP/1.1\r\n")
        answer = read_all(wire)
        assert answer.startswith(b"HTTP/1.1 400 "), answer
        assert answer.count(b"HTTP/1.1") == 1
        assert b'"code":"invalid_argument"' in answer


def test_a_header_over_its_limit(shared_server):
    with connect(shared_server) as wire:
        wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 17_000)
        answer = read_all(wire)
        assert answer.startswith(b"HTTP/1.1 413 "), answer
        assert b"16384" in answer


def test_a_header_under_its_limit(shared_server, client):
    assert client.get(shared_server.url + "/healthz", headers={"X": "y" * 12_000}).status_code == 200


def test_a_header_that_does_not_come_to_its_end_is_cut_off(shared_server):
    with connect(shared_server) as wire:
        begin = time.monotonic()
        wire.sendall(b"GET /healthz HTTP/1.1\r\nHo")
        answer = wire.makefile("rb").read()  # to the end: the server closes
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"timed_out"' in answer
        assert 9 < time.monotonic() - begin < 20


def test_pipelined_requests_are_answered_in_order(shared_server):
    paths = [b"/healthz", b"/nothing", b"/metrics", b"/healthz"]
    with connect(shared_server) as wire:
        wire.sendall(b"".join(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n" for path in paths[:-1]))
        wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answers = read_all(wire).split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200", b"404", b"200", b"200"]


def test_requests_that_arrive_during_a_long_poll_are_answered_after_it(shared_server):
    with connect(shared_server) as wire:
        body = b'{"wait_ms":300}'
        wire.sendall(b"POST /v1/topics/empty/reserve HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        wire.sendall(b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answers = read_all(wire).split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200", b"404"]


def test_chunked_bodies_and_expect_continue(shared_server, client):
    def pieces():
        yield b'{"payload_base64":"'
        yield base64.b64encode(b"abc")
        yield b'"}'

    assert client.post(shared_server.topic("chunked") + "/jobs", content=pieces()).status_code == 201
    assert reserve(client, shared_server, topic="chunked", wait_ms=20000)[0]["payload"] == "abc"

    body = b'{"payload":"x"}'
    with connect(shared_server) as wire:
        wire.sendall(
            b"POST /v1/topics/expect/jobs HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        )
        assert wire.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.sendall(body)
        assert read_all(wire).startswith(b"HTTP/1.1 201 ")


LARGE = b"x" * 70_000

# Chunked bodies, and the status of their answer; none where the body does not come to its end.
CHUNKED = {
    "a large trailer name": (b"0\r\n" + LARGE + b": x\r\n\r\n", 413),
    "a large trailer value": (b"0\r\nx: " + LARGE + b"\r\n\r\n", 413),
    "many trailers": (b"0\r\n" + b"x: y\r\n" * 10_000 + b"\r\n", 413),
    "a large extension": (b"1;" + LARGE + b"\r\nx\r\n0\r\n\r\n", 413),
    "a large name without an end": (b"0\r\n" + LARGE, 413),
    "a chunk over any limit": (b"f" * 16 + b"\r\n", 413),
    "a size with too many digits": (b"0" * 70_000 + b"\r\n\r\n", 400),
    "a chunk that is longer than it says": (b"1\r\n" + LARGE, 400),
    "a folded trailer": (b"0\r\nx: y\r\n z\r\n\r\n", 400),
    "a trailer without a colon": (b"0\r\nx\r\n\r\n", 400),
    "a trailer that ends in LF": (b"0\r\nx: y\n\r\n", 400),
    "a trailer": (b"0;a=b\r\nx: y\r\n\r\n", 200),
    "a body": (b"1;a=b\r\nx\r\n0\r\nx: y\r\n\r\n", 400),
    "the largest trailer": (b"0\r\nx:" + b"y" * (16_384 - 6) + b"\r\n\r\n", 200),
    "a trailer without an end": (b"0\r\nx: " + b"y" * 10_000, None),
}


@pytest.mark.parametrize("guarded", [False, True])
def test_no_chunked_body_ends_the_server(start, tmp_path, guarded):
    flags = []
    if guarded:
        file = tmp_path / "tokens"
        assert run("tocsin", "token", "create", "--file", file, "--name", "a", "--scope", "admin").returncode == 0
        flags = ["--auth-token-file", file]
    server = start(*flags)
    half_sent = []
    for path in (b"/healthz", b"/readyz", b"/v1/openapi.json"):
        for what, (body, status) in CHUNKED.items():
            wire = connect(server)
            wire.sendall(
                b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + body
            )
            if status is None:
                half_sent.append(wire)
                continue
            answer = read_all(wire)
            assert answer.startswith(b"HTTP/1.1 %d " % status), (path, what, answer[:300])
            wire.close()
    with connect(server) as wire:
        wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert read_all(wire).startswith(b"HTTP/1.1 200 ")
    for wire in half_sent:
        wire.close()


def test_connections_over_the_limit_are_told(start, client):
    server = start("--limits-connections", "1")
    client.get(server.url + "/healthz")
    answer = httpx.get(server.url + "/healthz", timeout=DEADLINE_S)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "overloaded"
    client.close()
    with httpx.Client(timeout=DEADLINE_S) as other:
        end = time.monotonic() + DEADLINE_S
        while other.get(server.url + "/healthz").status_code != 200:
            assert time.monotonic() < end
        await_metric(other, server, "tocsin_http_connections", 1)
