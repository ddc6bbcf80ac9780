"""The values of metrics that people alert on: as set, as counted, and gone when there is nothing to say. On both stores."""

import json
import re

import pytest

from conftest import DEADLINE_S, metric, reserve, submit
from programs import wait_for
from webhook_receiver import WebhookReceiver

HOUR = 3_600_000


@pytest.fixture(name="run", params=["embedded", "redis"])
def _run(request, start):
    """Starts a server on one of the stores."""
    if request.param == "embedded":
        return start
    node, redis = request.getfixturevalue("node"), request.getfixturevalue("redis_single")
    return lambda *flags: node("one", redis, *flags)


class Metrics:
    def __init__(self, client, server):
        self.client, self.url = client, server.url

    def values(self, name, label="topic"):
        """Label -> value of the series of a metric; those without the label are left out."""
        text = self.client.get(self.url + "/metrics").text
        found = re.findall(rf'^{name}{{(?:[^}}]*,)?{label}="([^"]*)"[^}}]*}} (\S+)$', text, re.MULTILINE)
        return {label: float(value) for label, value in found}

    def become(self, name, **expected):
        """The shards publish theirs every second."""
        def told():
            return f"{name} {expected}, but {self.values(name)}"
        wait_for(lambda: self.values(name) == expected, DEADLINE_S, told)


def test_capacities_and_pauses_are_told_as_they_are_set(run, client):
    server = run()
    metrics = Metrics(client, server)
    for topic, settings in {"jobs": {"capacity_jobs": 9}, "both": {"capacity_jobs": 40, "capacity_bytes": 1000, "paused": True}, "none": {}}.items():
        client.put(server.topic(topic), json=settings).raise_for_status()
    metrics.become("tocsin_topic_capacity_jobs", jobs=9, both=40)
    metrics.become("tocsin_topic_capacity_bytes", both=1000)
    metrics.become("tocsin_topic_paused", both=1)
    client.put(server.topic("jobs"), json={"capacity_jobs": 12}).raise_for_status()
    client.put(server.topic("both"), json={"capacity_jobs": 0}).raise_for_status()
    client.post(server.topic("both") + "/resume").raise_for_status()
    client.post(server.topic("none") + "/pause").raise_for_status()
    metrics.become("tocsin_topic_capacity_jobs", jobs=12)
    metrics.become("tocsin_topic_paused", none=1)
    client.post(server.topic("none") + "/resume").raise_for_status()
    metrics.become("tocsin_topic_paused")
    assert metrics.values("tocsin_topic_capacity_bytes") == {"both": 1000}


def test_memory_and_syncs_are_measured(start, client):
    limit, jobs, size = 256 << 20, 200, 10_000
    server = start("--memory-limit", str(limit), "--shards", "2")
    assert 0.9 * limit <= metric(client, server, "tocsin_memory_limit_bytes") <= limit
    held = metric(client, server, "tocsin_memory_jobs_bytes")
    synced = metric(client, server, "tocsin_journal_sync_seconds_count")
    for _ in range(jobs):  # each is answered after a sync of its own
        submit(client, server, payload="x" * size, delay_ms=HOUR)

    def grown():
        return metric(client, server, "tocsin_memory_jobs_bytes") - held >= jobs * size

    wait_for(grown, DEADLINE_S, "memory that the jobs take")
    assert metric(client, server, "tocsin_memory_jobs_bytes") - held < 2 * jobs * size + (1 << 20)
    count = metric(client, server, "tocsin_journal_sync_seconds_count")
    assert count - synced >= jobs and metric(client, server, "tocsin_journal_syncs_total") >= count - 1
    assert 0 < metric(client, server, "tocsin_journal_sync_seconds_sum") / count < 1
    assert metric(client, server, 'tocsin_journal_sync_seconds_bucket{le="+Inf"}') >= count


def test_what_is_due_and_what_is_not_are_counted_apart(run, client):
    server = run("--clock", "virtual")
    metrics = Metrics(client, server)
    for _ in range(4):
        submit(client, server)
    for _ in range(3):
        submit(client, server, delay_ms=HOUR)
    for _ in range(2):
        submit(client, server, trigger="count", count=5)
    submit(client, server, "other", delay_ms=2 * HOUR)

    def become(scheduled, ready, future):
        metrics.become("tocsin_jobs_scheduled", t=scheduled, other=1)
        metrics.become("tocsin_jobs_ready", t=ready, other=0)
        metrics.become("tocsin_jobs_future", t=future, other=1)

    become(scheduled=9, ready=4, future=5)
    assert len(reserve(client, server, max=1)) == 1
    become(scheduled=8, ready=3, future=5)
    client.post(server.url + "/v1/clock/advance", json={"ms": HOUR}).raise_for_status()
    # The lease has ended too, and its job rests until its back-off is over.
    metrics.become("tocsin_jobs_leased", t=0, other=0)
    client.post(server.url + "/v1/clock/advance", json={"ms": HOUR // 2}).raise_for_status()
    become(scheduled=9, ready=7, future=2)


def test_the_age_of_the_oldest_due_job_is_exact(start, client):
    server = start("--clock", "virtual", "--shards", "2")
    metrics = Metrics(client, server)
    age = "tocsin_jobs_oldest_due_seconds"
    for delay_s in (0, 10, 40):
        submit(client, server, delay_ms=delay_s * 1000)
    submit(client, server, "later", delay_ms=HOUR)
    client.post(server.url + "/v1/clock/advance", json={"ms": 100_000}).raise_for_status()
    metrics.become(age, t=100)
    assert len(reserve(client, server, max=1, lease_ms=HOUR)) == 1
    metrics.become(age, t=90)
    assert len(reserve(client, server, max=1, lease_ms=HOUR)) == 1
    client.post(server.url + "/v1/clock/advance", json={"ms": 1500}).raise_for_status()
    metrics.become(age, t=61.5)
    assert len(reserve(client, server, max=1, lease_ms=HOUR)) == 1
    metrics.become(age)


def test_failures_in_a_row_are_counted_until_one_is_confirmed(start, client, tmp_path):
    receiver = WebhookReceiver(tmp_path / "receiver")
    try:
        server = start("--webhook-allow", "127.0.0.0/8")
        metrics = Metrics(client, server)
        body = {"backoff_base_ms": HOUR, "backoff_max_ms": HOUR, "delivery": {"sink": "webhook", "url": receiver.url("/hook")}}
        client.put(server.topic("t"), json=body).raise_for_status()
        for number in range(5):
            submit(client, server, id=f"fails-{number}", headers={"answers": json.dumps([500])})
        metrics.become("tocsin_push_failures_in_a_row", t=5)
        submit(client, server, id="refused", headers={"answers": json.dumps([410])})
        metrics.become("tocsin_push_failures_in_a_row", t=6)
        submit(client, server, id="good")
        metrics.become("tocsin_push_failures_in_a_row", t=0)
        submit(client, server, id="fails-again", headers={"answers": json.dumps([500])})
        metrics.become("tocsin_push_failures_in_a_row", t=1)
        assert client.get(server.topic("t")).json()["figures"]["acked"] == 1
    finally:
        receiver.close()
