"""How a topic delivers, as every door sets, shows and refuses it; and what becomes of its jobs, with a webhook as the sink."""

import http.server
import json
import queue
import re
import threading
import urllib.parse

import pytest

from conftest import DEADLINE_S, Server, run
from resp_wire import Error, Wire
from test_cli import NO, USAGE, Cli

SECRET = "whsec_dG9wLXNlY3JldC1vZi10aGUtb3JkZXJz"
PULL = {"sink": "pull"}
HOOK = {"sink": "webhook", "url": "https://shop.example/hook?a=b", "secret": "orders", "in_flight": 7, "retry_4xx": True}
HOOK_FLAGS = ["--sink", "webhook", "--url", HOOK["url"], "--secret", "orders", "--in-flight", 7, "--retry-4xx", "yes"]
HOOK_WORDS = ["SINK", "webhook", "URL", HOOK["url"], "SECRET", "orders", "in_flight", 7, "Retry_4xx", "TRUE"]


class Receiver:
    """A webhook's receiver: keeps what it gets, and answers as `answers` says for the path."""

    def __init__(self):
        self.got = queue.Queue()
        self.answers = {}
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.put(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(receiver.answers.get(self.path, 204))
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def url(self, path="/hook"):
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def next(self):
        return self.got.get(timeout=DEADLINE_S)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(DEADLINE_S)


@pytest.fixture(scope="module")
def secrets_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "orders").write_text(SECRET + "\n")
    return folder


def flags_of(secrets_dir):
    return ["--webhook-allow", "127.0.0.0/8", "--secrets-dir", str(secrets_dir)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory, secrets_dir):
    one = Server(tmp_path_factory.mktemp("push") / "data", *flags_of(secrets_dir))
    yield one
    assert one.stop() == 0, "".join(one.errors)


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


@pytest.fixture
def topic(request):
    return re.sub(r"\W+", "-", request.node.name)[:80]


def put(client, server, topic, delivery, **settings):
    answer = client.put(server.topic(topic), json={"delivery": delivery, **settings})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()["delivery"]


def shown(client, server, topic):
    return client.get(server.topic(topic)).json()["delivery"]


def nested(value):
    """A reply with its maps as dicts, texts as texts."""
    if isinstance(value, dict):
        return {nested(key): nested(each) for key, each in value.items()}
    return value.decode() if isinstance(value, bytes) else value


def test_a_new_topic_is_pulled_from(client, shared, topic):
    assert client.put(shared.topic(topic)).json()["delivery"] == PULL
    assert client.put(shared.topic(topic), json={"delivery": {}}).json()["delivery"] == PULL
    assert shown(client, shared, topic) == PULL


def test_http_sets_and_shows_a_delivery(client, shared, topic):
    made = put(client, shared, topic, HOOK)
    assert made.items() >= HOOK.items()
    assert (made["timeout_ms"], made["batch"], made["rate"]) == (5000, 1, 0), "what was not named has its default"
    assert shown(client, shared, topic) == made
    [listed] = [one for one in client.get(shared.url + "/v1/topics").json()["topics"] if one["topic"] == topic]
    assert listed["delivery"] == made
    assert put(client, shared, topic, made) == made, "what is shown can be set"
    assert put(client, shared, topic, {"in_flight": 9}) == {**made, "in_flight": 9}
    assert put(client, shared, topic, {"sink": "webhook", "secret": ""}) == {**made, "in_flight": 9, "secret": ""}
    assert client.put(shared.topic(topic), json={"lease_ms": 60_000}).json()["delivery"]["in_flight"] == 9
    assert put(client, shared, topic, PULL) == PULL
    assert put(client, shared, topic, {"sink": "webhook", "url": HOOK["url"]})["in_flight"] == 64, "a sink begins anew"


@pytest.mark.parametrize("protocol", [2, 3])
def test_resp_sets_and_shows_the_same(client, shared, topic, protocol):
    with Wire(shared, protocol) as wire:
        made = wire.map(wire.call("TOPIC.SET", topic, *HOOK_WORDS))["delivery"]
        by_http = shown(client, shared, topic)
        assert by_http.items() >= HOOK.items()
        if protocol == 3:
            assert nested(made) == by_http
        else:
            flat = dict(zip(made[::2], made[1::2], strict=True))
            assert {nested(name): nested(value) for name, value in flat.items()} == by_http, "true is 1"
        assert wire.map(wire.call("TOPIC.GET", topic))["delivery"] == made
        assert [one for one in map(wire.map, wire.call("TOPIC.LIST")) if one["topic"] == topic.encode()][0]["delivery"] == made
        wire.call("TOPIC.SET", topic, "in_flight", 9)
        assert shown(client, shared, topic) == {**by_http, "in_flight": 9}
        back = wire.map(wire.map(wire.call("TOPIC.SET", topic, "sink", "PULL"))["delivery"])
        assert nested(back) == PULL


def test_the_command_sets_and_shows_the_same(client, shared, topic):
    cli = Cli(shared)
    made = cli.one("topic", "set", topic, *HOOK_FLAGS, "--sink-timeout", "2s")["delivery"]
    assert made == {**shown(client, shared, topic), "timeout_ms": 2000}
    assert made.items() >= HOOK.items()
    assert cli.one("topic", "get", topic)["delivery"] == made
    people = cli("topic", "get", topic).stdout
    for name, value in {"sink": "webhook", "url": HOOK["url"], "secret": "orders", "in-flight": "7", "sink-timeout": "2s",
                        "retry-4xx": "yes"}.items():  # fmt: skip
        assert f"{name:<19} {value}\n" in people
    assert re.search(rf"^{topic} .* webhook", cli("topics").stdout, re.M)
    assert cli.one("topic", "set", topic, "--rate", 5)["delivery"] == {**made, "rate": 5}
    assert cli.one("topic", "set", topic, "--sink", "pull")["delivery"] == PULL
    assert f"{'sink':<19} pull\n" in cli("topic", "get", topic).stdout


WRONG = [
    ({"sink": "webhok"}, "delivery.sink", 'did you mean "webhook"'),
    ({"sink": "webhook"}, "delivery.url", "missing"),
    ({"url": "https://shop.example"}, "delivery.url", "the delivery is pull"),
    ({"sink": "webhook", "url": "ftp://shop.example"}, "delivery.url", "http"),
    ({"sink": "webhook", "url": "https://user:word@shop.example"}, "delivery.url", ""),
    ({"sink": "webhook", "url": "http://10.0.0.1/hook"}, "delivery.url", ""),
    ({"sink": "webhook", "url": "https://shop.example", "in_flight": 0}, "delivery.in_flight", "1 to 10000"),
    ({"sink": "webhook", "url": "https://shop.example", "timeout_ms": 99}, "delivery.timeout_ms", "100 to 600000"),
    ({"sink": "webhook", "url": "https://shop.example", "exchange": "x"}, "delivery.exchange", "no setting of the sink webhook"),
    ({"sink": "webhook", "url": "https://shop.example", "secret": "of-nobody"}, "delivery.secret", "of-nobody"),
    ({"sink": "kafka"}, "delivery.sink", "kafka"),
    ({"sink": "rabbitmq"}, "delivery.sink", "rabbitmq"),
]


@pytest.mark.parametrize("delivery, field, says", WRONG, ids=[f"{i}-{field}" for i, (_, field, _) in enumerate(WRONG)])
def test_every_door_names_the_field_that_is_wrong(client, shared, topic, delivery, field, says):
    answer = client.put(shared.topic(topic), json={"delivery": delivery})
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["field"].startswith(field), error
    assert says in error["message"]
    with Wire(shared) as wire:
        reply = wire.call("TOPIC.SET", topic, *[word for pair in delivery.items() for word in pair])
    assert isinstance(reply, Error) and reply.code == "INVALID", reply
    name = field.removeprefix("delivery.")
    assert name in reply.message.lower()
    flags = {"in_flight": "in-flight", "timeout_ms": "sink-timeout", "kafka_topic": "kafka-topic"}
    words = []
    for setting, value in delivery.items():
        words += ["--" + flags.get(setting, setting), f"{value}ms" if setting == "timeout_ms" else value]
    done = Cli(shared)("topic", "set", topic, *words, status=USAGE)
    assert name in done.stderr and says in done.stderr, done.stderr
    assert client.get(shared.topic(topic)).status_code == 404, "nothing was made of it"


def test_a_field_of_another_type_or_name_is_refused(client, shared, topic):
    for delivery, field in [("webhook", "delivery"), ({"sink": 1}, "delivery.sink"), ({"url": 1}, "delivery.url"),
                            ({"in_flight": "7"}, "delivery.in_flight"), ({"retry_4xx": 1}, "delivery.retry_4xx"),
                            ({"secret": None}, "delivery.secret")]:  # fmt: skip
        error = client.put(shared.topic(topic), json={"delivery": delivery}).json()["error"]
        assert (error["code"], error["field"]) == ("invalid_argument", field)
    error = client.put(shared.topic(topic), json={"delivery": {"in_fligt": 7}}).json()["error"]
    assert (error["code"], error["field"]) == ("unknown_field", "delivery.in_fligt")
    assert 'did you mean "in_flight"?' in error["message"]
    with Wire(shared) as wire:
        assert "did you mean \"IN_FLIGHT\"" in wire.call("TOPIC.SET", topic, "in_fligt", 7)
        assert "twice" in wire.call("TOPIC.SET", topic, "url", "a", "URL", "b")
        assert "true" in wire.call("TOPIC.SET", topic, "retry_4xx", "yes")
    cli = Cli(shared)
    assert 'did you mean "--in-flight"' in cli("topic", "set", topic, "--in-fligt", 7, status=USAGE).stderr
    assert "webhook" in cli("topic", "set", topic, "--sink", "webhok", status=USAGE).stderr


def test_a_lease_that_is_too_short_for_push(client, shared, topic):
    answer = client.put(shared.topic(topic), json={"delivery": HOOK, "lease_ms": 2999})
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "lease_ms")
    put(client, shared, topic, HOOK, lease_ms=3000)


def test_the_openapi_document_has_every_setting(client, shared, topic):
    message = client.put(shared.topic(topic), json={"delivery": {"zzzzzzzzzzzzzzzzzzzzzzz": 1}}).json()["error"]["message"]
    known = set(re.search(r"the known ones are (.*)$", message)[1].split(", "))
    schema = client.get(shared.url + "/v1/openapi.json").json()["components"]["schemas"]["Delivery"]
    assert schema["properties"].keys() == known
    page = run("tocsin", "topic", "set", "--help").stdout
    for name in known - {"sink"}:
        flag = "--" + name.removesuffix("_ms").replace("_", "-")
        assert flag in page or flag.replace("--", "--sink-") in page, name


def test_jobs_of_a_topic_that_pushes_cannot_be_reserved(client, shared, topic):
    put(client, shared, topic, HOOK, paused=True)
    answer = client.post(shared.topic(topic) + "/reserve", json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")
    assert "webhook" in answer.json()["error"]["message"]
    with Wire(shared) as wire:
        assert wire.call("JOB.RESERVE", topic, "WAIT", 20_000).code == "CONFLICT"
    assert "webhook" in Cli(shared)("reserve", topic, status=NO).stderr
    put(client, shared, topic, PULL)
    assert client.post(shared.topic(topic) + "/reserve", json={}).status_code == 200


def test_consumers_that_wait_are_told_when_a_topic_begins_to_push(client, shared, topic):
    client.put(shared.topic(topic))
    with Wire(shared) as waiting, Wire(shared) as other:
        waiting.send("JOB.RESERVE", topic, "WAIT", 60_000)
        for _ in range(3):  # behind it: the reserve is parked, or sees the new setting
            other.call("TOPIC.GET", topic)
        put(client, shared, topic, HOOK, paused=True)
        reply = waiting.read()  # long before a minute is over: the socket's deadline is shorter
        assert reply == [] or reply.code == "CONFLICT"


def test_due_jobs_are_posted(client, shared, receiver, topic):
    put(client, shared, topic, {"sink": "webhook", "url": receiver.url(), "secret": "orders"})
    job = {"id": "order-17", "key": "ann", "payload": "cancel", "headers": {"colour": "blue"}, "delay_ms": 10}
    due_ms = client.post(shared.topic(topic) + "/jobs", json=job).json()["jobs"][0]["due_ms"]
    headers, body = receiver.next()
    assert body == b"cancel"
    expected = {"tocsin-topic": topic, "tocsin-job-id": "order-17", "tocsin-attempt": "1", "tocsin-key": "ann",
                "tocsin-due-ms": str(due_ms), "tocsin-header-colour": "blue"}  # fmt: skip
    assert headers.items() >= expected.items()
    assert headers["tocsin-token"] and "tocsin-probe" not in headers
    await_figure(client, shared, topic, acked=1)


def await_figure(client, server, topic, **wanted):
    """Each answer comes from the server: no faster than it can give one."""
    for _ in range(100_000):
        figures = client.get(server.topic(topic)).json()["figures"]
        if figures.items() >= wanted.items():
            return
    raise AssertionError(f"{topic} has {figures}")


def test_what_a_receiver_refuses_is_a_dead_letter_with_its_reason(client, shared, receiver, topic):
    receiver.answers["/gone"] = 410
    put(client, shared, topic, {"sink": "webhook", "url": receiver.url("/gone")})
    client.post(shared.topic(topic) + "/jobs", json={"id": "a", "payload": "x"})
    await_figure(client, shared, topic, dead=1, died=1)
    assert receiver.got.qsize() == 1, "though fifteen attempts were left"
    [dead] = client.get(shared.topic(topic) + "/jobs", params={"state": "dead", "reason": "410"}).json()["jobs"]
    assert (dead["id"], dead["attempt"]) == ("a", 1)
    assert client.get(shared.topic(topic) + "/jobs", params={"state": "dead", "reason": "411"}).json()["jobs"] == []
    with Wire(shared) as wire:
        [found] = wire.call("JOB.LIST", topic, "STATE", "dead", "REASON", "410")[1]
        assert wire.map(found)["id"] == b"a"
        assert wire.call("JOB.LIST", topic, "STATE", "dead", "REASON", "411")[1] == []
    cli = Cli(shared)
    assert [job["id"] for job in cli.lines("dead", "list", topic, "--reason", "410")] == ["a"]
    assert cli.lines("dead", "list", topic, "--reason", "411") == []
    receiver.answers.clear()
    client.post(shared.topic(topic) + "/dead/redrive")
    await_figure(client, shared, topic, dead=0, acked=1)


def test_a_topic_is_tested_with_a_probe(client, shared, receiver, topic):
    receiver.answers["/gone"], receiver.answers["/busy"] = 410, 503
    cases = {"/hook": "confirmed", "/gone": "refused", "/busy": "retry"}
    for path, outcome in cases.items():
        put(client, shared, topic, {"sink": "webhook", "url": receiver.url(path)}, paused=True)
        answer = client.post(shared.topic(topic) + "/test").json()
        assert answer["outcome"] == outcome
        assert ("reason" in answer) == (outcome != "confirmed")
        headers, _ = receiver.next()
        assert (headers["tocsin-probe"], headers["tocsin-topic"]) == ("true", topic)
        with Wire(shared, 3) as wire:
            assert nested(wire.call("TOPIC.TEST", topic)).items() >= {"outcome": outcome}.items()
        status = 0 if outcome == "confirmed" else NO
        assert Cli(shared)("topic", "test", topic, status=status).stdout.startswith(outcome)
        assert Cli(shared).one("topic", "test", topic, status=status)["outcome"] == outcome
    figures = client.get(shared.topic(topic)).json()["figures"]
    assert all(value == 0 for value in figures.values()), "probes are no jobs"
    put(client, shared, topic, PULL)
    answer = client.post(shared.topic(topic) + "/test")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")
    assert client.post(shared.topic("nowhere") + "/test").status_code == 404
    assert client.post(shared.topic(topic) + "/test", json={"now": True}).status_code == 400
    with Wire(shared) as wire:
        assert wire.call("TOPIC.TEST", "nowhere").code == "NOTOPIC"
    Cli(shared)("topic", "test", "nowhere", status=NO)


def test_consumers_can_make_dead_letters_too(client, shared, topic):
    ids = ["http", "resp", "cli"]
    client.post(shared.topic(topic) + "/jobs", json={"jobs": [{"id": one} for one in ids]})
    jobs = client.post(shared.topic(topic) + "/reserve", json={"max": 3}).json()["jobs"]
    tokens = {job["id"]: job["token"] for job in jobs}
    both = client.post(shared.topic(topic) + "/nack", json={"tokens": [tokens["http"]], "dead": True, "delay_ms": 1})
    assert (both.status_code, both.json()["error"]["field"]) == (400, "dead")
    body = {"tokens": [tokens["http"]], "dead": True, "reason": "no such account"}
    assert client.post(shared.topic(topic) + "/nack", json=body).json()["results"][0]["outcome"] == "dead"
    with Wire(shared) as wire:
        assert "DELAY" in wire.call("JOB.NACK", topic, tokens["resp"], "DEAD", "DELAY", 5)
        assert wire.call("JOB.NACK", topic, tokens["resp"], "dead", "REASON", "no such account") == ["dead"]
        assert "AAAA" not in wire.call("JOB.ACK", topic, tokens["resp"], "DEAD"), "ack knows no such word"
    cli = Cli(shared)
    cli("nack", topic, tokens["cli"], "--dead", "--in", "5s", status=USAGE)
    assert "dead letter" in cli("nack", topic, tokens["cli"], "--dead", "--reason", "no such account").stdout
    dead = client.get(shared.topic(topic) + "/jobs", params={"state": "dead", "reason": "such"}).json()["jobs"]
    assert sorted(job["id"] for job in dead) == sorted(ids)
    assert {job["attempt"] for job in dead} == {1}


def test_a_reason_is_found_over_all_pages(client, shared, topic):
    client.post(shared.topic(topic) + "/jobs", json={"jobs": [{"id": f"j{i}"} for i in range(2500)]})
    jobs = client.post(shared.topic(topic) + "/reserve", json={"max": 2500}).json()["jobs"]
    rare = jobs[7::800]
    assert len(rare) == 4
    for some, reason in ((rare, "100% rare & odd"), ([job for job in jobs if job not in rare], "common")):
        body = {"tokens": [job["token"] for job in some], "dead": True, "reason": reason}
        results = client.post(shared.topic(topic) + "/nack", json=body).json()["results"]
        assert {result["outcome"] for result in results} == {"dead"}
    ids = sorted(job["id"] for job in rare)
    cli = Cli(shared)
    assert sorted(job["id"] for job in cli.lines("dead", "list", topic, "--reason", "% rare &")) == ids
    some = cli("dead", "list", topic, "--reason", "rare", "--limit", 3, "--json")
    assert len(some.stdout.splitlines()) == 3 and "--all" in some.stderr
    assert len(cli.lines("dead", "list", topic, "--reason", "o", "--all")) == 2500
    assert cli("dead", "list", topic, "--reason", "nobody").stdout == f"no dead jobs in {topic}\n"
    seen, cursor = [], ""
    while cursor is not None:
        query = {"state": "dead", "limit": 100, "reason": "rare", **({"cursor": cursor} if cursor else {})}
        page = client.get(f"{shared.topic(topic)}/jobs?{urllib.parse.urlencode(query)}").json()
        seen += [job["id"] for job in page["jobs"]]
        cursor = page.get("cursor")
    assert sorted(seen) == ids
    with Wire(shared) as wire:
        seen, words = [], []
        while words is not None:
            place, found = wire.call("JOB.LIST", topic, "STATE", "dead", "LIMIT", 100, "REASON", "rare", *words)
            seen += [wire.map(job)["id"].decode() for job in found]
            words = None if place is None else ["CURSOR", place]
    assert sorted(seen) == ids


def test_what_a_secret_holds_is_nowhere_to_be_seen(client, start, receiver, secrets_dir, topic):
    server = start(*flags_of(secrets_dir), "--log-level", "debug")
    receiver.answers["/gone"] = 410
    told = []
    put(client, server, topic, {"sink": "webhook", "url": receiver.url("/gone"), "secret": "orders"})
    client.post(server.topic(topic) + "/jobs", json={"id": "a"})
    await_figure(client, server, topic, dead=1)
    headers, _ = receiver.next()
    assert "webhook-signature" in headers
    told.append(json.dumps(headers))
    for path in (f"/v1/topics/{topic}", "/v1/topics", f"/v1/topics/{topic}/jobs?state=dead", "/v1/stats", "/metrics"):
        told.append(client.get(server.url + path).text)
    told.append(client.post(server.topic(topic) + "/test").text)
    (secrets_dir / "bad").write_text("whsec_*not base64*")
    for name in ("bad", "nobody", "../orders", "", "a" * 257, SECRET):
        answer = client.put(server.topic("other"), json={"delivery": {"sink": "webhook", "url": receiver.url(), "secret": name}})
        if name != SECRET:
            told.append(answer.text)
        assert "not base64" not in answer.text
    with Wire(server) as wire:
        told.append(str(wire.call("TOPIC.GET", topic)) + str(wire.call("INFO")))
    cli = Cli(server)
    told.append(cli("topic", "get", topic).stdout + cli("topics").stdout + cli("dead", "list", topic).stdout)
    assert server.stop() == 0
    told += [*server.errors, *server.banner]
    core = SECRET.removeprefix("whsec_")
    assert [text for text in told if core in text or "top-secret" in text] == []


def test_a_delivery_outlives_restarts(client, start, receiver, secrets_dir, topic):
    flags = flags_of(secrets_dir)
    server = start(*flags)
    made = put(client, server, topic, HOOK)
    put(client, server, "pulled", HOOK)
    put(client, server, "pulled", PULL)
    assert server.stop() == 0
    server = start(*flags)
    assert (shown(client, server, topic), shown(client, server, "pulled")) == (made, PULL)
    made = put(client, server, topic, {"url": receiver.url()})
    server.kill()
    server = start(*flags)
    assert (shown(client, server, topic), shown(client, server, "pulled")) == (made, PULL)
    client.post(server.topic(topic) + "/jobs", json={"id": "after"})
    headers, _ = receiver.next()
    assert headers["tocsin-job-id"] == "after", "and it pushes"
    await_figure(client, server, topic, acked=1)
