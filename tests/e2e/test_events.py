"""GET /v1/events: server-sent events, read with an HTTP client that knows nothing of them."""

import contextlib
import json
import socket
import threading
import time

import httpx
import pytest
from conftest import DEADLINE_S, ack, reserve, submit
from programs import wait_for
from resp_wire import Error, Wire
from test_auth import bearer, create


class Events:
    """A stream that is read on a thread of its own."""

    def __init__(self, server, last_id=None, token=None, **query):
        self.events, self.comments, self.status, self.ended = [], 0, None, False
        headers = ({"Last-Event-ID": last_id} if last_id else {}) | (bearer(token) if token else {})
        self.client = httpx.Client(timeout=httpx.Timeout(DEADLINE_S))
        self.request = self.client.build_request("GET", server.url + "/v1/events", params=query, headers=headers)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        wait_for(lambda: self.status is not None, DEADLINE_S, "an answer")

    def _read(self):
        with contextlib.suppress(httpx.HTTPError):
            answer = self.client.send(self.request, stream=True)
            self.answer, self.status = answer, answer.status_code
            one = {}
            for line in map(str.rstrip, answer.iter_lines()):
                if line == "":
                    if "event" in one:
                        self.events.append((one["event"], json.loads(one["data"]), one["id"]))
                    one = {}
                elif line.startswith(":"):
                    self.comments += 1
                else:
                    name, _, value = line.partition(": ")
                    one[name] = value
        self.ended = True

    def of(self, kind):
        return [data for name, data, _ in list(self.events) if name == kind]

    def await_one(self, kind, suits=lambda data: True):
        wait_for(lambda: any(suits(data) for data in self.of(kind)), DEADLINE_S, lambda: f"{kind} among {self.events[-20:]}")
        return next(data for data in self.of(kind) if suits(data))

    def kinds(self):
        return {name for name, _, _ in list(self.events)}

    def close(self):
        # A reader that waits would notice a closed client only when the next event or comment comes.
        with contextlib.suppress(OSError):  # the server has closed it
            self.answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self.client.close()
        self.thread.join(DEADLINE_S)


@pytest.fixture(name="listen")
def _listen():
    opened = []

    def make(*arguments, **query):
        opened.append(Events(*arguments, **query))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def test_what_happens_is_told(start, client, listen):
    server = start()
    events = listen(server)
    assert events.answer.headers["content-type"] == "text/event-stream" and events.answer.headers["cache-control"] == "no-store"
    assert events.await_one("reset")["reason"] == "start"
    client.put(server.topic("t"), json={"max_attempts": 3}).raise_for_status()
    changed = events.await_one("topic_changed")
    assert changed["created"] and changed["topic"]["topic"] == "t" and changed["topic"]["max_attempts"] == 3
    events.await_one("figures")  # rates are told since the event before
    submit(client, server, payload="p")
    ack(client, server, *reserve(client, server))
    figures = events.await_one("figures", lambda data: data["totals"]["acked"] == 1)
    assert figures["conservation"]["difference"] == 0 and figures["topics"] == 1
    assert sum(each["rates"]["acked"] * each["seconds"] for each in events.of("figures")) == pytest.approx(1, abs=0.01), events.of("figures")
    [named] = events.await_one("topic", lambda data: any(each["figures"]["acked"] == 1 for each in data["topics"]))["topics"]
    assert named["name"] == "t"
    submit(client, server, payload="p", delay_ms=60_000)
    client.post(server.topic("t") + "/operations", json={"action": "cancel", "all": True}).raise_for_status()
    assert events.await_one("operation", lambda data: data["state"] == "done")["outcomes"] == {"cancelled": 1}
    client.delete(server.topic("t")).raise_for_status()
    assert events.await_one("topic_dropped") == {"name": "t"}


def test_kinds_and_topics_are_chosen(start, client, listen):
    server = start()
    changes, of_a = listen(server, kinds="topic_changed,topic_dropped"), listen(server, topics="a")
    for topic in ("a", "b"):
        client.put(server.topic(topic), json={}).raise_for_status()
    changes.await_one("topic_changed", lambda data: data["topic"]["topic"] == "b")
    of_a.await_one("figures", lambda data: data["topics"] == 2)
    assert changes.kinds() == {"reset", "topic_changed"}
    assert [data["topic"]["topic"] for data in of_a.of("topic_changed")] == ["a"]
    for query, field in (({"kinds": "figures,nothing"}, "kinds"), ({"topics": "a," + "b" * 300}, "topics"),
                         ({"topics": ",".join(f"t{i}" for i in range(101))}, "topics")):
        answer = client.get(server.url + "/v1/events", params=query)
        assert answer.status_code == 400 and answer.json()["error"]["field"] == field


def test_a_client_goes_on_where_it_was(start, client, listen):
    server = start()
    before = listen(server, kinds="topic_changed")
    client.put(server.topic("seen"), json={}).raise_for_status()
    before.await_one("topic_changed")
    last_id = before.events[-1][2]
    before.close()
    client.put(server.topic("missed"), json={}).raise_for_status()
    after = listen(server, last_id, kinds="topic_changed")
    after.await_one("topic_changed")
    assert [data["topic"]["topic"] for data in after.of("topic_changed")] == ["missed"] and after.of("reset") == []
    assert server.stop() == 0
    again = start()
    assert listen(again, last_id, kinds="topic_changed").await_one("reset")["reason"] == "unknown"


def test_an_event_that_is_no_longer_kept(start, client, listen):
    server = start()
    first = listen(server, kinds="topic_changed")
    client.put(server.topic("t"), json={}).raise_for_status()
    first.await_one("topic_changed")
    last_id = first.events[-1][2]
    first.close()
    with Wire(server) as wire:
        for i in range(2_100):
            wire.send("TOPIC.SET", "t", "MAX_ATTEMPTS", 1 + i % 9)
        assert not any(isinstance(wire.read(), Error) for _ in range(2_100))
    assert listen(server, last_id, kinds="topic_changed").await_one("reset")["reason"] == "too_old"


def test_a_token_hears_of_its_own_topics_until_it_is_revoked(start, client, listen, tmp_path):
    file = tmp_path / "tokens"
    admin = create(file, "--scope", "admin", name="admin")
    tenant = create(file, "--scope", "observe", "--topic-prefix", "a-", name="tenant")
    submits = create(file, "--scope", "submit", name="submits")
    server = start("--auth-token-file", file)
    assert client.get(server.url + "/v1/events", headers=bearer(submits)).status_code == 403
    events = listen(server, token=tenant)
    for topic in ("b-1", "a-1"):
        client.put(server.topic(topic), json={}, headers=bearer(admin)).raise_for_status()
        client.post(server.topic(topic) + "/jobs", json={"payload": "p"}, headers=bearer(admin)).raise_for_status()
    events.await_one("topic", lambda data: any(each["figures"]["scheduled"] == 1 for each in data["topics"]))
    assert events.kinds() == {"reset", "topic_changed", "topic"} and "b-1" not in str(events.events)
    file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if "tenant" not in line))
    began = time.monotonic()
    wait_for(lambda: events.ended, DEADLINE_S, "the end of the stream")
    assert time.monotonic() - began < 5


def test_an_alert_that_fires_and_ends_is_told(start, client, listen):
    server = start("--alerts-dead-jobs", "1", "--alerts-hold", "0s")
    alerts, others = listen(server, kinds="alert"), listen(server, kinds="log")
    for i in range(2):
        submit(client, server, payload="p", id=str(i))
    tokens = [job["token"] for job in reserve(client, server, max=2)]
    client.post(server.topic("t") + "/nack", json={"tokens": tokens, "dead": True}).raise_for_status()
    fired = alerts.await_one("alert", lambda data: data["rule"] == "dead_letters")
    assert (fired["state"], fired["topic"]) == ("firing", "t") and "2 dead letters" in fired["summary"]
    client.post(server.topic("t") + "/dead/purge").raise_for_status()
    alerts.await_one("alert", lambda data: data["rule"] == "dead_letters" and data["state"] == "resolved")
    assert alerts.kinds() == {"reset", "alert"} and others.kinds() == {"reset"}


def test_a_condition_of_the_log_is_told(start, listen):
    server = start("--limits-connections", "5")
    events = listen(server, kinds="log")
    with contextlib.ExitStack() as opened:
        for _ in range(6):
            opened.enter_context(socket.create_connection(("127.0.0.1", server.port), DEADLINE_S))
        begun = events.await_one("log")
    assert (begun["event"], begun["state"]) == ("overload", "begin") and "limits.connections" in begun["why"]


def test_nodes_that_come_and_groups_that_are_divided_again(node, redis_single, listen):
    one = node("one", redis_single)
    events = listen(one, kinds="node")
    two = node("two", redis_single)
    joined = events.await_one("node", lambda data: data["what"] == "joined")
    assert joined["node"].startswith("two-") and str(two.port) in joined["http"]
    divided = events.await_one("node", lambda data: data["what"] == "rebalance" and data["nodes"] == 2)
    assert divided["groups"] == 64 and divided["lost"] > 0 and divided["owned"] + divided["lost"] == 64
    assert two.stop() == 0
    assert events.await_one("node", lambda data: data["what"] == "left")["node"] == joined["node"]
    events.await_one("node", lambda data: data["what"] == "rebalance" and data["gained"] == divided["lost"])


def test_one_access_token_leaves_streams_to_others(start, listen, client, tmp_path):
    file = tmp_path / "tokens"
    tenant = create(file, "--scope", "observe", "--topic-prefix", "a-", name="tenant")
    admin = create(file, "--scope", "admin", name="admin")
    server = start("--auth-token-file", file, "--limits-event-streams", "4")
    assert [listen(server, token=tenant).status for _ in range(2)] == [200, 200]
    refused = client.get(server.url + "/v1/events", headers=bearer(tenant))
    assert refused.status_code == 503 and "2 event streams" in refused.json()["error"]["message"]
    assert listen(server, token=admin).status == 200


def test_streams_have_a_limit(start, client, listen):
    server = start("--limits-event-streams", "2")
    first, _ = listen(server), listen(server)
    refused = client.get(server.url + "/v1/events")
    assert refused.status_code == 503 and refused.json()["error"]["code"] == "overloaded"
    first.close()
    wait_for(lambda: listen(server).status == 200, DEADLINE_S, "a place that is free again")


def test_a_stream_ends_with_the_server(start, listen):
    server = start()
    events = listen(server)
    assert server.stop() == 0
    wait_for(lambda: events.ended, DEADLINE_S, "the end of the stream")
