"""What bounds a connection, and what every client may rely on: time, memory, order, encodings, and the stop."""

import contextlib
import gzip
import json
import re
import resource
import signal
import socket
import threading
import time

import httpx
import pytest

from conftest import DEADLINE_S, ack, await_metric, metric, reserve, submit

BODY_MAX = 16 << 20


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S)


def read_all(wire):
    """Until the server closes."""
    got = b""
    while piece := wire.recv(65536):
        got += piece
    return got


def request(method, target, body=b"", *fields):
    head = [f"{method} {target} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def statuses(answers):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d\d\d) ", answers)]


def test_large_answers_are_packed_for_those_who_take_that(shared_server, client):
    url = shared_server.url + "/metrics"
    packed = client.get(url)
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "Accept-Encoding"
    assert "# TYPE tocsin_transfer_memory_bytes gauge" in packed.text
    for plain in ("identity", "gzip;q=0, *;q=0", ""):
        answer = client.get(url, headers={"Accept-Encoding": plain})
        assert "content-encoding" not in answer.headers
        assert answer.num_bytes_downloaded > 3 * packed.num_bytes_downloaded
    assert "content-encoding" not in client.get(shared_server.url + "/healthz").headers


def test_a_connection_goes_on_after_a_large_packed_delivery(server, client):
    payloads = [str(i) * 60_000 for i in range(10)]
    for i, payload in enumerate(payloads):
        submit(client, server, id=str(i), key="same", payload=payload)
    for _ in range(5):
        jobs = reserve(client, server, max=10)
        assert [job["payload"] for job in jobs] == payloads[: len(jobs)]
        del payloads[: len(jobs)]
        assert ack(client, server, *jobs) == ["ok"] * len(jobs)
        if not payloads:
            return
    raise AssertionError(f"{len(payloads)} jobs did not come")


def test_packed_deliveries_are_whole(server, client):
    payloads = [f"payload {i} " * 20 for i in range(100)]
    for payload in payloads:
        submit(client, server, payload=payload)
    with connect(server) as wire:
        fields = ("Accept-Encoding: gzip", "Connection: close")
        wire.sendall(request("POST", "/v1/topics/t/reserve", b'{"max":100,"wait_ms":20000}', *fields))
        head, body = read_all(wire).split(b"\r\n\r\n", 1)
    assert b"Content-Encoding: gzip" in head
    assert f"Content-Length: {len(body)}".encode() in head
    jobs = json.loads(gzip.decompress(body))["jobs"]
    assert {job["payload"] for job in jobs} <= set(payloads) and jobs


def test_compressed_bodies_are_refused(shared_server, client):
    body = gzip.compress(b'{"payload":"x"}')
    answer = client.post(shared_server.topic("t") + "/jobs", content=body, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "content-encoding"


def test_head_is_get_without_the_body(shared_server, client):
    for path in ("/healthz", "/metrics"):
        answer = client.head(shared_server.url + path)
        assert (answer.status_code, answer.content) == (200, b"")
        assert int(answer.headers["content-length"]) > 10
    assert client.head(shared_server.topic("t") + "/reserve").status_code == 405


def test_targets_as_proxies_send_them(shared_server):
    with connect(shared_server) as wire:
        wire.sendall(request("GET", "http://x/healthz"))
        wire.sendall(request("OPTIONS", "*") + request("GET", "https://x", b"", "Connection: close"))
        assert statuses(read_all(wire)) == [200, 404, 200], "the last is the root"
    with connect(shared_server) as wire:
        wire.sendall(request("GET", "http://other/healthz"))
        assert b'"field":"host"' in read_all(wire)


BROWSER = "User-Agent: Mozilla/5.0 (X11; Linux x86_64)"


@pytest.mark.parametrize("sign", [BROWSER, "Accept-Language: en", "Sec-Fetch-Site: none", "Origin: http://evil.example"])
def test_a_site_whose_name_resolves_to_this_machine_gets_nothing(shared_server, sign):
    with connect(shared_server) as wire:
        wire.sendall(f"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n{sign}\r\n\r\n".encode())
        answer = read_all(wire)
    assert statuses(answer) == [403]
    assert b'"field":"host"' in answer


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_cannot_call_also_without_an_origin(shared_server, site):
    fields = (f"Sec-Fetch-Site: {site}", "Connection: close")
    with connect(shared_server) as wire:
        wire.sendall(request("POST", "/v1/topics/foreign/jobs", b'{"payload":"x"}', *fields))
        answer = read_all(wire)
    assert statuses(answer) == [403]
    assert b'"field":"origin"' in answer
    with connect(shared_server) as wire:
        link = f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: {site}\r\nConnection: close\r\n\r\n"
        wire.sendall(link.encode())
        assert statuses(read_all(wire)) == [200]
    for path in ("/v1/events", "/v1/topics", "/metrics"):
        for mode, status in (("no-cors", 403), ("navigate", 200)):
            if (path, mode) == ("/v1/events", "navigate"):
                continue  # it has no end
            with connect(shared_server) as wire:
                fields = f"Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: {mode}\r\nConnection: close"
                wire.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n\r\n".encode())
                assert statuses(read_all(wire)) == [status], (path, mode)


@pytest.mark.parametrize("host", ["localhost:7420", "127.0.0.1", "[::1]:7420", "tocsin.localhost"])
def test_browsers_on_this_machine_are_served(shared_server, host):
    with connect(shared_server) as wire:
        wire.sendall(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n{BROWSER}\r\nConnection: close\r\n\r\n".encode())
        assert statuses(read_all(wire)) == [200]


def test_a_client_that_sends_no_more_gets_all_its_answers(shared_server):
    with connect(shared_server) as wire:
        job = request("POST", "/v1/topics/half/jobs", b'{"payload":"x"}')
        wire.sendall(request("GET", "/healthz") + job + request("GET", "/nothing"))
        wire.shutdown(socket.SHUT_WR)
        assert statuses(read_all(wire)) == [200, 201, 404]


def test_a_long_poll_ends_when_its_client_sends_no_more(shared_server, client):
    with connect(shared_server) as wire:
        wire.sendall(request("POST", "/v1/topics/gone/reserve", b'{"wait_ms":50000}'))
        await_metric(client, shared_server, "tocsin_http_parked", 1)
        wire.shutdown(socket.SHUT_WR)
        assert read_all(wire) == b""
    await_metric(client, shared_server, "tocsin_http_parked", 0)


def test_a_thousand_pipelined_submits_are_answered_in_their_order(server):
    ids = [f"job-{i}" for i in range(1000)]
    with connect(server) as wire:
        jobs = [request("POST", "/v1/topics/t/jobs", json.dumps({"id": one}).encode()) for one in ids]
        sender = threading.Thread(target=lambda: (wire.sendall(b"".join(jobs)), wire.shutdown(socket.SHUT_WR)))
        sender.start()
        answers = read_all(wire)
        sender.join()
    assert statuses(answers) == [201] * len(ids)
    assert re.findall(rb'"id":"([^"]*)"', answers) == [one.encode() for one in ids]


def test_bytes_behind_a_long_poll_do_not_hang_it(server):
    with connect(server) as wire:
        wire.sendall(request("POST", "/v1/topics/t/reserve", b'{"wait_ms":500}'))
        flood = request("GET", "/healthz") * 10_000  # more than the server keeps
        sender = threading.Thread(target=lambda: (wire.sendall(flood), wire.shutdown(socket.SHUT_WR)))
        sender.start()
        answers = read_all(wire)
        sender.join()
    assert statuses(answers) == [200] * 10_001


def test_bodies_beyond_the_memory_budget_are_refused_and_small_requests_go_on(start, client):
    server = start("--memory-limit", "256MiB", "--limits-body-size", str(BODY_MAX))
    submit(client, server)
    # 48 MiB for requests, 36 MiB for those of one address: two have room, whatever small ones are under way beside them,
    # and three do not.
    held = 15 << 20
    announced = f"POST /v1/topics/t/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: {held}\r\n\r\n".encode()
    holding = [connect(server) for _ in range(2)]
    for wire in holding:
        wire.sendall(announced)
    await_metric(client, server, "tocsin_transfer_memory_bytes", 2 * held)
    with connect(server) as wire:
        wire.sendall(announced)
        answer = read_all(wire)
        assert statuses(answer) == [503]
        assert b'"overloaded"' in answer and b"Connection: close" in answer
    jobs = reserve(client, server, wait_ms=20000)
    assert ack(client, server, *jobs) == ["ok"]
    for wire in holding:
        wire.close()
    await_metric(client, server, "tocsin_transfer_memory_bytes", 0)
    submit(client, server, payload="x" * 500_000)


def test_deliveries_beyond_the_memory_budget_come_back(start, client):
    server = start("--memory-limit", "512MiB")  # 64 MiB for requests and answers
    payload = "x" * 1_000_000
    for _ in range(5):
        answer = client.post(server.topic("t") + "/jobs", json={"jobs": [{"payload": payload}] * 15})
        assert answer.status_code == 201
    holding = [connect(server) for _ in range(5)]
    for wire in holding:
        wire.sendall(request("POST", "/v1/topics/t/reserve", b'{"max":15,"wait_ms":20000,"lease_ms":1000000}'))
    end = time.monotonic() + DEADLINE_S
    while metric(client, server, "tocsin_transfer_memory_bytes") < 32 << 20:  # beside what is in the sockets' buffers
        assert time.monotonic() < end
    for wire in holding:
        wire.setblocking(False)
        with contextlib.suppress(BlockingIOError):  # it is parked
            assert wire.recv(12) == b"HTTP/1.1 200"
        wire.close()
    await_metric(client, server, "tocsin_transfer_memory_bytes", 0)
    again = reserve(client, server, max=15, wait_ms=20000)
    assert again and {job["attempt"] for job in again} == {1}


@pytest.mark.parametrize("shards", [1, 16])
def test_a_server_without_topics_serves_few_lines_of_metrics(start, client, shards):
    server = start("--shards", str(shards))
    for _ in range(3):  # the scrapes themselves count, too
        text = client.get(server.url + "/metrics").text
    assert len(text.splitlines()) < 300, text
    assert 'tocsin_http_requests_total{method="GET",route="/metrics",status="2xx"} 2' in text


@pytest.mark.parametrize("shards", [1, 2])
def test_a_node_on_redis_without_topics_serves_few_lines_of_metrics(node, redis_single, client, shards):
    server = node("one", redis_single, "--shards", str(shards))
    await_metric(client, server, "tocsin_owned_groups", 64)
    for _ in range(3):
        text = client.get(server.url + "/metrics").text
    assert len(text.splitlines()) < 300, text


def test_figures_of_metrics_balance(server, client):
    for i in range(5):
        submit(client, server, delay_ms=60_000 * (i % 2))
    jobs = reserve(client, server, max=2, wait_ms=20000)
    ack(client, server, jobs[0])

    def figures():
        text = client.get(server.url + "/metrics").text
        return {name: int(value) for name, value in re.findall(r'^tocsin_jobs_(\w+)\{topic="t"\} (\d+)$', text, re.M)}

    end = time.monotonic() + DEADLINE_S
    while figures().get("acked_total") != 1:  # the shards publish theirs every second
        assert time.monotonic() < end
    f = figures()
    held = f["scheduled"] + f["leased"] + f["dead"]
    assert f["recovered_total"] + f["accepted_total"] == held + f["acked_total"] + f["cancelled_total"] + f["purged_total"]
    assert "redriven_total" in f


def test_a_stop_under_load_loses_nothing_that_was_answered(start, client):
    server = start()
    answered, lock, enough = [], threading.Lock(), threading.Event()

    def submit_on(name):
        with httpx.Client(timeout=DEADLINE_S) as own:
            for i in range(1_000_000):
                try:
                    answer = own.post(server.topic("t") + "/jobs", json={"id": f"{name}-{i}", "delay_ms": 1})
                except httpx.HTTPError:
                    return
                if answer.status_code != 201:
                    assert answer.json()["error"]["code"] == "shutting_down"
                    return
                with lock:
                    answered.append(f"{name}-{i}")
                    if len(answered) >= 300:
                        enough.set()

    workers = [threading.Thread(target=submit_on, args=(name,)) for name in range(16)]
    for worker in workers:
        worker.start()
    assert enough.wait(DEADLINE_S)
    begin = time.monotonic()
    assert server.stop(signal.SIGTERM) == 0
    assert time.monotonic() - begin < 9  # before the time that the server allows at most
    for worker in workers:
        worker.join(DEADLINE_S)
    again = start()
    seen = set()
    while not seen >= set(answered):
        jobs = reserve(client, again, max=1000, wait_ms=20000)
        assert jobs, "an answered job is gone"
        ack(client, again, *jobs)
        seen |= {job["id"] for job in jobs}


def test_a_stop_with_many_connections_is_quick(start, client):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        server = start()
        idle = [connect(server) for _ in range(1000)]
        parked = [connect(server) for _ in range(100)]
        for wire in parked:
            wire.sendall(request("POST", "/v1/topics/t/reserve", b'{"wait_ms":50000}'))
        await_metric(client, server, "tocsin_http_parked", 100)
        begin = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begin < 5
        for wire in parked:
            answer = read_all(wire)
            assert answer.endswith(b'{"jobs":[]}') and b"Connection: close" in answer
        for wire in idle:
            assert wire.recv(1) == b""
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
