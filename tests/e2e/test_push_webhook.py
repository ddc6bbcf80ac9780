"""Jobs that the server pushes to a real HTTP receiver in another process: what is confirmed is done, what is not comes again, and
what receivers are told to verify verifies."""

import base64
import email.utils
import hashlib
import hmac
import json
import re
import socket
import time

import pytest
import webhook_verifiers

from certificates import Authority
from conftest import DEADLINE_S, submit
from programs import wait_for
from push_world import outcomes
from test_auth import bearer, create
from webhook_receiver import WebhookReceiver

SECRET = "whsec_" + base64.b64encode(b"the orders' own secret, 32 bytes").decode()
OLD_SECRET = "raw-secret-of-last-year"
LOOPBACK = ["--webhook-allow", "127.0.0.0/8"]


@pytest.fixture
def receiver(tmp_path):
    one = WebhookReceiver(tmp_path / "receiver")
    yield one
    one.close()


@pytest.fixture
def secrets(tmp_path):
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "orders").write_text(f"{SECRET} {OLD_SECRET}\n")
    return folder


@pytest.fixture
def server(start, secrets):
    return start(*LOOPBACK, "--secrets-dir", secrets)


def put(client, server, topic="t", expect=(200, 201), **delivery):
    """Sets the topic's webhook; a failed attempt is followed by the next one at once."""
    body = {"backoff_base_ms": 1, "backoff_max_ms": 1, "delivery": {"sink": "webhook", **delivery}}
    answer = client.put(server.topic(topic), json=body)
    assert answer.status_code in expect, answer.text
    return answer


def answers(*list_of_them):
    return {"answers": json.dumps(list_of_them)}


def figures(client, server, topic="t"):
    return client.get(server.topic(topic)).json()["figures"]


def await_figures(client, server, topic="t", **wanted):
    def reached():
        now = figures(client, server, topic)
        return all(now[name] == value for name, value in wanted.items())

    wait_for(reached, DEADLINE_S, f"{wanted}, but {figures(client, server, topic)}")


def dead(client, server, topic="t"):
    return client.get(server.topic(topic) + "/jobs", params={"state": "dead"}).json()["jobs"]


def test_a_job_is_posted_once_and_done(server, client, receiver):
    put(client, server, url=receiver.url("/hook?a=b"), secret="orders")
    before_s = int(time.time())
    job = submit(client, server, id="order 7%", key="Köln", payload="pay now",
                 headers={"trace": "a\r\nx-evil: 1", "content-type": "text/plain", "größe": "50 %"})
    await_figures(client, server, acked=1)
    [request] = receiver.requests()
    fields = request["fields"]
    assert (request["path"], request["body"]) == ("/hook?a=b", b"pay now")
    assert fields["content-type"] == "text/plain"
    assert re.fullmatch(r"t/j[0-9a-z]{13}", fields["webhook-id"])
    assert before_s <= int(fields["webhook-timestamp"]) <= time.time()
    assert re.fullmatch(r"tocsin/\d+\.\d+\.\d+", fields["user-agent"])
    assert fields["tocsin-topic"] == "t"
    assert fields["tocsin-job-id"] == "order 7%25"
    assert fields["tocsin-attempt"] == "1"
    assert fields["tocsin-due-ms"] == str(job["due_ms"])
    assert fields["tocsin-key"] == "K%C3%B6ln"
    assert fields["tocsin-header-trace"] == "a%0D%0Ax-evil: 1"
    assert fields["tocsin-header-gr%c3%b6%c3%9fe"] == "50 %25"
    assert "x-evil" not in fields
    assert len(fields["tocsin-token"]) == 24


def test_500_is_tried_again_until_it_is_confirmed(server, client, receiver):
    put(client, server, url=receiver.url())
    submit(client, server, id="a", headers=answers(500, 503, 200), payload="x")
    await_figures(client, server, acked=1)
    requests = receiver.of("a")
    assert [request["fields"]["tocsin-attempt"] for request in requests] == ["1", "2", "3"]
    assert len({request["fields"]["webhook-id"] for request in requests}) == 1
    assert len({request["fields"]["tocsin-token"] for request in requests}) == 3
    assert figures(client, server)["nacked"] == 2


def test_410_is_a_dead_letter_at_once_with_the_reason(server, client, receiver):
    put(client, server, url=receiver.url())
    submit(client, server, id="a", headers=answers(410), payload="x")
    await_figures(client, server, dead=1)
    [job] = dead(client, server)
    assert (job["id"], job["reason"]) == ("a", "the receiver answered 410 Gone")
    assert len(receiver.requests()) == 1
    put(client, server, url=receiver.url(), retry_4xx=True)
    submit(client, server, id="c", headers=answers(410, 204), payload="x")
    await_figures(client, server, acked=1)


def test_a_404_during_a_deploy_is_tried_again_unless_the_topic_says_that_it_is_final(server, client, receiver):
    put(client, server, url=receiver.url())
    submit(client, server, id="a", headers=answers(404, 403, 200), payload="x")
    await_figures(client, server, acked=1, nacked=2, dead=0)
    put(client, server, url=receiver.url(), final_statuses="404,422")
    submit(client, server, id="b", headers=answers(404), payload="x")
    await_figures(client, server, dead=1)
    refused = client.put(server.topic("t"), json={"delivery": {"final_statuses": "gone"}})
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "delivery.final_statuses")


def test_a_redirect_is_not_followed_and_tried_again(server, client, receiver):
    put(client, server, url=receiver.url())
    submit(client, server, id="b", headers=answers(302), payload="x", max_attempts=2)
    await_figures(client, server, dead=1)
    [job] = dead(client, server)
    assert "302" in job["reason"] and "redirects are not followed" in job["reason"]
    assert [request["path"] for request in receiver.requests()] == ["/hook", "/hook"]


@pytest.mark.parametrize("status, as_date", [(503, False), (500, True)])
def test_retry_after_is_honoured(server, client, receiver, status, as_date):
    put(client, server, url=receiver.url())
    after = email.utils.formatdate(time.time() + 3, usegmt=True) if as_date else "2"
    first_ms = time.time_ns() // 1_000_000
    busy = {"status": status, "headers": {"Retry-After": after}}
    submit(client, server, id="a", headers=answers(busy, 200), payload="x")
    await_figures(client, server, nacked=1)
    [job] = client.get(server.topic("t") + "/jobs", params={"state": "scheduled"}).json()["jobs"]
    assert job["due_ms"] - first_ms >= 1_000
    await_figures(client, server, acked=1)
    assert len(receiver.of("a")) == 2


def test_a_receiver_that_hangs_is_asked_again_and_delays_no_other_topic(server, client, receiver):
    put(client, server, "slow", url=receiver.url("/slow"), timeout_ms=5000, in_flight=1)
    put(client, server, "quick", url=receiver.url("/quick"))
    submit(client, server, "slow", id="a", headers=answers("hang", 200), payload="x")
    wait_for(lambda: receiver.of("a"), DEADLINE_S, "the request that hangs")
    for number in range(20):
        submit(client, server, "quick", id=str(number), payload="x")
    await_figures(client, server, "quick", acked=20)
    assert figures(client, server, "slow")["acked"] == 0, "the other topic was quicker than a time-out"
    await_figures(client, server, "slow", acked=1)
    assert len(receiver.of("a")) == 2


def test_a_receiver_that_is_killed_gets_everything_when_it_is_back(server, client, receiver):
    put(client, server, url=receiver.url(), timeout_ms=1000, in_flight=8)
    ids = [f"job-{number}" for number in range(60)]
    client.put(server.topic("t"), json={"max_attempts": 2, "backoff_base_ms": 50, "backoff_max_ms": 50})
    for job_id in ids[:20]:
        submit(client, server, id=job_id, payload="x")
    wait_for(lambda: receiver.requests(), DEADLINE_S, "the first request")
    receiver.kill()
    for job_id in ids[20:]:
        submit(client, server, id=job_id, payload="x")
    wait_for(lambda: outcomes(client, server, "t", "retry") >= 24, DEADLINE_S, "tries that fail")
    assert figures(client, server)["nacked"] <= 8, "only what was under way when it died has used up an attempt"
    receiver.start()
    await_figures(client, server, acked=60, dead=0)
    came = [request["fields"]["tocsin-job-id"] for request in receiver.requests()]
    assert set(came) == set(ids)
    # What came twice was not confirmed the first time: it was under way when the receiver died.
    assert len(came) - len(ids) <= 8


def test_what_was_under_way_when_the_server_was_killed_comes_again(start, client, receiver):
    one = start(*LOOPBACK)
    put(client, one, url=receiver.url(), timeout_ms=60000)
    submit(client, one, id="a", headers=answers("hang", 200), payload="x")
    submit(client, one, id="b", headers=answers("hang", 200), payload="x")
    wait_for(lambda: len(receiver.requests()) == 2, DEADLINE_S, "both requests")
    one.kill()
    start(*LOOPBACK)
    wait_for(lambda: len(receiver.requests()) == 4, DEADLINE_S, "both requests again")
    assert sorted(request["fields"]["tocsin-job-id"] for request in receiver.requests()) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("language", webhook_verifiers.LANGUAGES)
def test_the_verification_of_the_documents_works(server, client, receiver, tmp_path, language):
    verify = webhook_verifiers.of(language, tmp_path / "verifier")
    put(client, server, url=receiver.url(), secret="orders")
    payload = base64.b64encode(bytes(range(256))).decode()
    submit(client, server, id="a", payload_base64=payload)
    await_figures(client, server, acked=1)
    [request] = receiver.requests()
    fields, body = request["fields"], request["body"]
    assert body == bytes(range(256))
    assert verify(SECRET, "t", fields, body)
    assert verify(OLD_SECRET, "t", fields, body), "both secrets of the file sign"
    assert not verify("another secret", "t", fields, body)
    assert not verify(SECRET, "t", fields, body + b"!")
    assert not verify(SECRET, "t", {**fields, "webhook-id": "t/j0000000000000"}, body)
    assert not verify(SECRET, "other", fields, body), "a request of another topic"
    assert not verify(SECRET, "", fields, body)
    old = str(int(fields["webhook-timestamp"]) - 301)
    key = base64.b64decode(SECRET[6:])
    replayed = base64.b64encode(hmac.new(key, f"{fields['webhook-id']}.{old}.".encode() + body, hashlib.sha256).digest()).decode()
    assert not verify(SECRET, "t", {**fields, "webhook-timestamp": old, "webhook-signature": "v1," + replayed}, body)


def test_an_admin_of_one_prefix_cannot_use_the_secret_of_another(start, client, receiver, secrets, tmp_path):
    file = tmp_path / "tokens"
    admins = {prefix: create(file, "--scope", "admin", "--topic-prefix", prefix) for prefix in ("shop-", "bank-")}
    flags = [*LOOPBACK, "--secrets-dir", secrets, "--auth-token-file", file]
    server = start(*flags, "--push-owners", "secret:orders=shop-,secret:*=ops-")

    def name(prefix, secret):
        body = {"delivery": {"sink": "webhook", "url": receiver.url(), "secret": secret}}
        return client.put(server.topic(prefix + "t"), json=body, headers=bearer(admins[prefix]))

    assert name("shop-", "orders").status_code == 201
    for secret in ("orders", "Orders", "nobodys"):
        refused = name("bank-", secret)
        assert (refused.status_code, refused.json()["error"]["field"]) == (403, "delivery.secret"), refused.text
        assert "shop" not in refused.text, "it does not say whose it is"


def test_without_rules_an_admin_of_a_prefix_names_no_secret_kafka_topic_or_exchange(start, client, receiver, secrets, tmp_path):
    file = tmp_path / "tokens"
    one = create(file, "--scope", "admin", "--topic-prefix", "shop-")
    everybodys = create(file, "--scope", "admin")
    brokers = ["--kafka-brokers", "127.0.0.1:1", "--rabbitmq-url", "amqp://127.0.0.1:1"]  # nobody is asked
    server = start(*LOOPBACK, "--secrets-dir", secrets, "--auth-token-file", file, *brokers)

    def name(token, topic, **delivery):
        return client.put(server.topic(topic), json={"delivery": delivery}, headers=bearer(token))

    hook = {"sink": "webhook", "url": receiver.url()}
    named = [("secret", {**hook, "secret": "orders"}), ("secret", {**hook, "secret": "no-such"}),
             ("kafka_topic", {"sink": "kafka", "kafka_topic": "bank"}), ("kafka_topic", {"sink": "kafka"}),
             ("exchange", {"sink": "rabbitmq", "exchange": "bank"}), ("routing_key", {"sink": "rabbitmq"})]
    for field, delivery in named:
        refused = name(one, "shop-t", **delivery)
        assert (refused.status_code, refused.json()["error"]["field"]) == (403, f"delivery.{field}"), refused.text
        assert "push.owners" in refused.text
    assert name(one, "shop-t", **hook).status_code == 201, "it signs nothing"
    assert name(everybodys, "shop-t", **hook, secret="orders").status_code == 200
    moved = name(one, "shop-t", url=receiver.url("/harvest"))
    assert moved.status_code == 403, "the signature would go elsewhere"
    assert name(everybodys, "shop-k", sink="kafka", kafka_topic="bank").status_code == 201


def test_without_a_secret_nothing_is_signed(server, client, receiver):
    put(client, server, url=receiver.url())
    submit(client, server, id="a", payload="x")
    await_figures(client, server, acked=1)
    assert "webhook-signature" not in receiver.requests()[0]["fields"]


@pytest.mark.parametrize("delivery, field", [
    ({"url": "http://127.0.0.1/", "secret": "order"}, "delivery.secret"),
    ({"url": "http://127.0.0.1/", "secret": "../orders"}, "delivery.secret"),
    ({"url": "ftp://127.0.0.1/"}, "delivery.url"),
    ({"url": "http://user@127.0.0.1/"}, "delivery.url"),
    ({"url": "http://10.0.0.1/"}, "delivery.url"),
    ({"url": "http://2130706433/"}, "delivery.url"),
    ({}, "delivery.url"),
    ({"url": "http://127.0.0.1/", "batch": 0}, "delivery.batch"),
])
def test_what_cannot_work_is_refused_with_its_field(server, client, delivery, field):
    answer = put(client, server, expect=(400,), **delivery)
    assert answer.json()["error"]["field"] == field, answer.text
    assert SECRET not in answer.text and OLD_SECRET not in answer.text


def test_loopback_is_refused_without_the_list(start, client):
    server = start()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1", "169.254.169.254"):
            answer = put(client, server, expect=(400,), url=f"http://{host}:{port}/")
            assert answer.json()["error"]["field"] == "delivery.url"
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_batch_has_an_outcome_for_each_job(server, client, receiver, tmp_path):
    verify = webhook_verifiers.of("python", tmp_path)
    put(client, server, url=receiver.url(), batch=10, secret="orders")
    client.post(server.topic("t") + "/pause")
    jobs = [
        {"id": "fine", "payload": "x", "key": "k"},
        {"id": "refused", "payload": "x", "headers": answers({"outcome": "refuse", "reason": "no such order"})},
        {"id": "again", "payload": "x", "headers": answers({"outcome": "retry", "delay_ms": 10}, 204)},
        {"id": "forgotten", "payload_base64": "/w==", "headers": answers("leave out", 204)},
    ]
    answer = client.post(server.topic("t") + "/jobs", json={"jobs": jobs})
    assert answer.status_code == 201, answer.text
    client.post(server.topic("t") + "/resume")
    await_figures(client, server, acked=3, dead=1)
    [letter] = dead(client, server)
    assert (letter["id"], letter["reason"]) == ("refused", "the receiver says: no such order")
    first = receiver.requests()[0]
    assert verify(SECRET, "t", first["fields"], first["body"])
    assert first["fields"]["content-type"] == "application/json"
    sent = {job["id"]: job for request in receiver.requests() for job in json.loads(request["body"])["jobs"]}
    assert set(sent) == {"fine", "refused", "again", "forgotten"}
    assert (sent["fine"]["topic"], sent["fine"]["key"], sent["fine"]["payload"]) == ("t", "k", "x")
    assert sent["forgotten"]["payload_base64"] == "/w=="
    assert (sent["again"]["attempt"], sent["forgotten"]["attempt"]) == (2, 2)


def test_https_needs_a_certificate_of_a_known_authority(start, tmp_path, client):
    authority = Authority(tmp_path / "tls")
    receiver = WebhookReceiver(tmp_path / "receiver", *authority.issue("receiver"))
    try:
        trusting = start(*LOOPBACK, "--webhook-ca-file", authority.ca, folder=tmp_path / "trusting")
        put(client, trusting, url=receiver.url())
        submit(client, trusting, id="a", payload="x")
        await_figures(client, trusting, acked=1)
        wary = start(*LOOPBACK, folder=tmp_path / "wary")
        put(client, wary, url=receiver.url(), outage_ms=0)
        submit(client, wary, id="b", payload="x", max_attempts=1)
        await_figures(client, wary, dead=1)
        assert "its certificate is not accepted" in dead(client, wary)[0]["reason"]
        assert [request["fields"]["tocsin-job-id"] for request in receiver.requests()] == ["a"]
    finally:
        receiver.close()


def test_connections_are_kept(server, client, receiver):
    put(client, server, url=receiver.url(), in_flight=1)
    for number in range(30):
        submit(client, server, id=str(number), payload="x")
    await_figures(client, server, acked=30)
    assert len({request["from"] for request in receiver.requests()}) == 1
