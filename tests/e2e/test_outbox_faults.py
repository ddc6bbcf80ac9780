"""The outbox while MySQL, the server, a node or the store is killed: every committed row becomes one job, no other row
does."""

import collections
import threading

import pytest
from conftest import await_metric, metric, now_ms
from mysql_server import Outbox, add_many
from programs import wait_for
from test_outbox import HOUR_MS, await_event, job_of, jobs_of, take

BATCH = 50
FIRING = 'tocsin_alerts_firing{rule="outbox_away"}'


class Application(threading.Thread):
    """Inserts rows, and rolls every fifth transaction back, until it is told to stop. `committed` and `rolled_back` hold
    payloads; what was under way when MySQL died is in neither, because nobody knows."""

    def __init__(self, outbox, with_ids):
        super().__init__(daemon=True)
        self.outbox, self.with_ids = outbox, with_ids
        self.committed, self.rolled_back = set(), set()
        self.stopping = threading.Event()
        self.start()

    def run(self):
        import pymysql

        number = 0
        while not self.stopping.is_set():
            try:
                with self.outbox.connect() as connection:
                    while not self.stopping.is_set():
                        number += 1
                        self._transact(connection, number)
            except pymysql.err.Error:
                self.stopping.wait(0.05)

    def _transact(self, connection, number):
        names = [f"{number}-{i}" for i in range(BATCH)]
        add_many(connection, [("orders", name if self.with_ids else None, name, HOUR_MS) for name in names])
        if number % 5 == 0:
            connection.rollback()
            self.rolled_back.update(names)
        else:
            connection.commit()
            self.committed.update(names)
        self.stopping.wait(0.01)

    def await_more(self, rows):
        before = len(self.committed)
        wait_for(lambda: len(self.committed) >= before + rows, what=f"{rows} more rows")

    def close(self):
        self.stopping.set()
        self.join(30)


@pytest.fixture(params=["own ids", "ids of the rows"])
def application(request, outbox):
    one = Application(outbox, with_ids=request.param == "own ids")
    yield one
    one.close()


def check_jobs(client, server, application):
    """Every committed row is one job, and no row that was rolled back is any."""
    application.close()
    application.outbox.await_empty(60)
    counted = collections.Counter(job["payload"] for job in jobs_of(client, server, "orders"))
    assert [name for name, times in counted.items() if times > 1] == []
    assert application.committed - counted.keys() == set()
    assert application.rolled_back & counted.keys() == set()
    assert application.outbox.refused() == []


def test_the_server_is_killed_during_pick_up(start, application, outbox, client):
    for _ in range(4):
        server = start(*outbox.flags())
        application.await_more(400)
        server.kill()
        server.process.returncode = 0  # as it was meant to end
    check_jobs(client, start(*outbox.flags()), application)


def test_mysql_is_killed_under_load(start, application, outbox, client):
    server = start(*outbox.flags(), "--alerts-hold", "0ms")
    for _ in range(2):
        application.await_more(400)
        outbox.mysql.kill()
        await_event(server, "mysql_away", "state=begin")
        outbox.mysql.start()
    application.await_more(400)
    check_jobs(client, server, application)
    assert client.get(server.url + "/readyz").status_code == 200


def test_two_nodes_share_an_outbox_and_one_takes_over(node, redis_single, application, outbox, client):
    nodes = {name: node(name, redis_single, *outbox.flags()) for name in ("a", "b")}

    def active():
        return [name for name, one in nodes.items() if metric(client, one, "tocsin_outbox_active") == 1]

    wait_for(active, what="a node that picks up")
    application.await_more(400)
    assert len(active()) == 1
    [first] = active()
    nodes[first].kill()
    nodes[first].process.returncode = 0
    del nodes[first]
    wait_for(active, what="the other node that picks up")
    application.await_more(400)
    [left] = nodes.values()
    check_jobs(client, left, application)


def test_a_node_that_cannot_reach_its_store_leaves_the_rows(node, redis_single, outbox, client):
    server = node("a", redis_single, *outbox.flags(), "--redis-timeout", "500ms")
    outbox.insert(topic="orders", payload="1", delay_ms=0)
    take(client, server, "orders", 1)
    redis_single.pause()
    outbox.insert(topic="orders", payload="2", delay_ms=0)
    await_event(server, "outbox_waits", "state=begin")
    assert outbox.waiting() == 1
    redis_single.resume()
    assert [job["payload"] for job in take(client, server, "orders", 1)] == ["2"]
    await_event(server, "outbox_waits", "state=end")


def test_mysql_is_away_at_the_start(start, outbox, client):
    outbox.insert(topic="orders", job_id="A-1", payload="x", delay_ms=HOUR_MS)
    outbox.mysql.stop()
    server = start(*outbox.flags(), "--alerts-hold", "0ms")
    await_event(server, "mysql_away", "state=begin")
    assert client.get(server.url + "/readyz").status_code == 200
    assert client.post(server.topic("other") + "/jobs", json={"payload": "x"}).status_code == 201
    wait_for(lambda: FIRING in client.get(server.url + "/metrics").text, what="the alert")
    assert "outbox_away" in client.get(server.url + "/v1/alerts").text
    assert metric(client, server, "tocsin_outbox_connected") == 0
    outbox.mysql.start()
    outbox.await_empty()
    await_event(server, "mysql_away", "state=end")
    assert metric(client, server, "tocsin_outbox_connected") == 1
    wait_for(lambda: FIRING not in client.get(server.url + "/metrics").text, what="the end of the alert")
    assert job_of(client, server, "orders", "A-1")["payload"] == "x"


def test_delays_count_while_no_server_runs(start, outbox, client):
    """Rows of the day before yesterday: their time has come, however long ago that was."""
    created = "NOW(3) - INTERVAL 2 DAY"
    outbox.ask(f"INSERT INTO tocsin_outbox (topic, payload, delay_ms, created) VALUES ('orders', 'delay', %s, {created})", 24 * HOUR_MS)
    outbox.ask(f"INSERT INTO tocsin_outbox (topic, payload, due_ms, created) VALUES ('orders', 'due', %s, {created})",
               now_ms() - 47 * HOUR_MS)
    outbox.ask(f"INSERT INTO tocsin_outbox (topic, job_id, delay_ms, created) VALUES ('orders', 'later', %s, {created})", 49 * HOUR_MS)
    server = start(*outbox.flags())
    assert {job["payload"] for job in take(client, server, "orders", 2)} == {"delay", "due"}
    assert 0 < job_of(client, server, "orders", "later")["due_ms"] - now_ms() < 2 * HOUR_MS


def test_rows_that_the_application_holds_are_for_later(start, outbox, client):
    """A lock on rows that were picked up: their removal fails for a while, and their jobs are not made twice, although
    they are done meanwhile."""
    with outbox.connect() as connection, connection.cursor() as cursor:
        add_many(connection, [("orders", None, str(i), 0) for i in range(100)])
        connection.commit()
        cursor.execute("SELECT id FROM tocsin_outbox FOR UPDATE")
        server = start(*outbox.flags())
        take(client, server, "orders", 100)
        await_event(server, "mysql_away", "Lock wait timeout")
        connection.rollback()
    outbox.await_empty()
    assert jobs_of(client, server, "orders") == []
    assert metric(client, server, 'tocsin_outbox_rows_total{outcome="accepted"}') == 100
    assert outbox.refused() == []


def test_the_server_is_killed_between_the_jobs_and_the_removal_of_their_rows(start, outbox, client):
    with outbox.connect() as connection, connection.cursor() as cursor:
        add_many(connection, [("orders", None, str(i), HOUR_MS) for i in range(100)])
        connection.commit()
        cursor.execute("SELECT id FROM tocsin_outbox FOR UPDATE")
        server = start(*outbox.flags())
        wait_for(lambda: len(jobs_of(client, server, "orders")) == 100, what="the jobs")
        server.kill()
        server.process.returncode = 0  # as it was meant to end
        connection.rollback()
    server = start(*outbox.flags())
    outbox.await_empty()
    assert sorted(int(job["payload"]) for job in jobs_of(client, server, "orders")) == list(range(100))
    await_metric(client, server, 'tocsin_outbox_rows_total{outcome="duplicate"}', 100)


def test_the_server_stops_soon_although_mysql_hangs(start, outbox):
    server = start(*outbox.flags(), "--outbox-timeout", "2s")
    wait_for(lambda: any("connected to the outbox" in line for line in server.errors), what="the connection")
    outbox.mysql.pause()
    try:
        assert server.stop() == 0
    finally:
        outbox.mysql.resume()
    assert not any("stopping without them" in line for line in server.errors)


def test_another_database_of_the_same_mysql_has_an_outbox_of_its_own(start, outbox, client, tmp_path):
    """The lock of one does not keep the other waiting."""
    with Outbox(outbox.mysql) as other:
        other.ask(f"CREATE TABLE tocsin_schema AS SELECT * FROM {outbox.database}.tocsin_schema")
        other.ask(f"CREATE TABLE tocsin_outbox LIKE {outbox.database}.tocsin_outbox")
        servers = [start(*each.flags(), folder=tmp_path / each.database) for each in (outbox, other)]
        for each, server in zip((outbox, other), servers, strict=True):
            each.insert(topic="orders", payload=each.database)
            assert [job["payload"] for job in take(client, server, "orders", 1)] == [each.database]
        for server in servers:
            assert server.stop() == 0
