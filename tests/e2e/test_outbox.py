"""The transactional outbox: rows that an application inserts into MySQL within its own transactions become jobs. The
application is written with PyMySQL, against a real MariaDB."""

import base64
import json
import re
import time

import pytest
from conftest import ROOT, ack, await_metric, metric, now_ms, reserve, run
from mysql_server import PASSWORD, USER, add, add_many
from programs import hold, wait_for

HOUR_MS = 3_600_000


def events_of(server, name):
    """The fields of the events of this name in the server's log."""
    return [line.split(f" {name} ", 1)[1] for line in list(server.errors) if f" {name} " in line]


def await_event(server, name, text):
    wait_for(lambda: any(text in event for event in events_of(server, name)), what=f"{name} with {text}")


def take(client, server, topic, count, wait_ms=10_000):
    """Reserves and acknowledges so many jobs, and no more."""
    jobs = []
    while len(jobs) < count:
        got = reserve(client, server, topic, max=count - len(jobs), wait_ms=wait_ms)
        assert got, f"{len(jobs)} of {count} jobs of {topic} came"
        ack(client, server, *got, topic=topic)
        jobs += got
    assert reserve(client, server, topic) == []
    return jobs


def job_of(client, server, topic, job_id):
    return client.get(server.topic(topic) + f"/jobs/{job_id}").json()


def jobs_of(client, server, topic):
    """All jobs of the topic that are not done; none if there is no such topic yet."""
    jobs, cursor = [], ""
    while True:
        answer = client.get(server.topic(topic) + "/jobs", params={"limit": 1000, **({"cursor": cursor} if cursor else {})})
        if answer.status_code == 404:
            return []
        page = answer.json()
        jobs += page["jobs"]
        if not (cursor := page.get("cursor")):
            return jobs


@pytest.fixture(params=["journal", "redis"])
def server(request, start, outbox):
    """One with an outbox, on each kind of store."""
    if request.param == "journal":
        return start(*outbox.flags())
    redis, node = request.getfixturevalue("redis_single"), request.getfixturevalue("node")
    return node("a", redis, *outbox.flags())


@pytest.fixture
def one_server(start, outbox):
    return start(*outbox.flags())


def test_a_committed_row_becomes_a_job_that_is_due_in_time(server, outbox, client):
    with outbox.connect() as connection:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO orders VALUES ('A-1')")
        before = now_ms()
        add(connection, topic="orders", payload="close A-1", delay_ms=300)
        connection.commit()
    [job] = take(client, server, "orders", 1)
    assert job["payload"] == "close A-1"
    assert job["due_ms"] >= before + 300
    assert now_ms() >= job["due_ms"]
    assert job["id"].startswith("outbox-")
    outbox.await_empty()
    assert outbox.ask("SELECT COUNT(*) FROM tocsin_outbox") == ((0,),)


def test_a_rollback_leaves_nothing(one_server, outbox, client):
    with outbox.connect() as connection:
        add(connection, topic="orders", payload="never")
        connection.rollback()
        add(connection, topic="orders", payload="committed")
        connection.commit()
    assert [job["payload"] for job in take(client, one_server, "orders", 1)] == ["committed"]


def test_a_row_that_is_not_committed_holds_up_nobody(one_server, outbox, client):
    with outbox.connect() as slow:
        add(slow, topic="orders", payload="slow")
        outbox.insert(topic="orders", payload="fast")
        assert [job["payload"] for job in take(client, one_server, "orders", 1)] == ["fast"]
        slow.commit()
    assert [job["payload"] for job in take(client, one_server, "orders", 1)] == ["slow"]


def test_a_cancel_takes_effect_after_its_submit(server, outbox, client):
    outbox.insert(topic="orders", job_id="A-1", payload="1", delay_ms=HOUR_MS)
    outbox.insert(op="cancel", topic="orders", job_id="A-1")
    with outbox.connect() as connection:  # all in one transaction, which is mostly one page
        for i in range(200):
            add(connection, topic="orders", job_id=f"B-{i}", job_key="k", payload="first", delay_ms=HOUR_MS)
            add(connection, op="cancel", topic="orders", job_id=f"B-{i}", job_key="k")
        add(connection, topic="orders", job_id="B-7", job_key="k", payload="second", delay_ms=HOUR_MS)
        connection.commit()
    outbox.await_empty()
    assert [(job["id"], job["payload"]) for job in jobs_of(client, server, "orders")] == [("B-7", "second")]
    assert metric(client, server, 'tocsin_outbox_rows_total{outcome="cancelled"}') == 201


def test_a_cancel_that_finds_nothing_to_cancel_is_done(one_server, outbox, client):
    outbox.insert(op="cancel", topic="nowhere", job_id="A-1")
    outbox.insert(topic="orders", job_id="A-1", payload="x")
    [job] = reserve(client, one_server, "orders", wait_ms=10_000)
    outbox.insert(op="cancel", topic="orders", job_id="A-1")  # a consumer has it
    outbox.await_empty()
    await_metric(client, one_server, 'tocsin_outbox_rows_total{outcome="cancelled_late"}', 2)
    assert ack(client, one_server, job, topic="orders") == ["ok"]


def test_every_column_is_used(one_server, outbox, client):
    due = now_ms() + HOUR_MS
    payload = bytes(range(256))
    outbox.insert(topic="orders", job_id="A-1", job_key="customer-9", payload=payload, due_ms=due,
                  headers=json.dumps({"trace": "7f", "town": "Zürich"}))
    outbox.insert(topic="orders", job_id="A-2", payload="x", event_count=2)
    outbox.insert(topic="orders", job_id="A-3", payload="x", event_count=2, delay_ms=HOUR_MS)
    outbox.await_empty()
    job = client.get(one_server.topic("orders") + "/jobs/A-1", params={"key": "customer-9"}).json()
    assert job["due_ms"] == due
    assert job["key"] == "customer-9"
    assert job["headers"] == {"trace": "7f", "town": "Zürich"}
    assert base64.b64decode(job["payload_base64"]) == payload
    assert job_of(client, one_server, "orders", "A-2")["trigger"] == "count"
    assert job_of(client, one_server, "orders", "A-3")["trigger"] == "either"


REFUSED = [
    (dict(topic="orders", op="delete"), "op is delete: it is submit or cancel"),
    (dict(topic="orders", op="cancel"), "a cancel needs job_id"),
    (dict(topic=""), "topic"),
    (dict(topic="orders", headers="{"), "headers is not JSON"),
    (dict(topic="orders", headers='{"a": 1}'), "the value of the header a is not a text"),
    (dict(topic="orders", delay_ms=-5), "delay is -5 ms: the range is 0 to"),
    (dict(topic="orders", due_ms=int(time.time())), "it looks like seconds"),
    (dict(topic="orders", due_ms=1, delay_ms=1), "both delay_ms and due_ms"),
    (dict(topic="orders", payload=b"x" * ((1 << 20) + 1)), "payload has 1048577 bytes: the most is 1048576"),
    (dict(topic="orders", job_id="taken", payload="other"), "job_id is taken: another job has this id"),
]


def test_rows_that_are_wrong_are_refused_and_hold_up_nobody(server, outbox, client):
    outbox.insert(topic="orders", job_id="taken", payload="one", delay_ms=HOUR_MS)
    outbox.await_empty()
    with outbox.connect() as connection:
        for columns, _ in REFUSED:
            add(connection, **columns)
        add(connection, topic="orders", payload="good")
        connection.commit()
    assert [job["payload"] for job in take(client, server, "orders", 1)] == ["good"]
    wait_for(lambda: len(outbox.refused()) == len(REFUSED), what="the refused rows")
    for (_, says), (_, error) in zip(REFUSED, outbox.refused(), strict=True):
        assert says in error
    await_metric(client, server, 'tocsin_outbox_rows_total{outcome="refused"}', len(REFUSED))
    assert any("op is delete" in event or "another job has this id" in event for event in events_of(server, "outbox_refused"))

    outbox.ask("UPDATE tocsin_outbox SET state = 0, error = NULL, op = 'submit', payload = 'mended' WHERE op = 'delete'")
    assert [job["payload"] for job in take(client, server, "orders", 1)] == ["mended"]


def test_a_full_topic_holds_up_no_other(one_server, outbox, client):
    assert client.put(one_server.topic("narrow"), json={"capacity_jobs": 2}).status_code == 201
    with outbox.connect() as connection:
        add_many(connection, [("narrow", None, str(i), 0) for i in range(1_000)])
        add_many(connection, [("orders", None, str(i), 0) for i in range(5)])
        connection.commit()
    take(client, one_server, "orders", 5)
    await_event(one_server, "outbox_waits", "topic=narrow")
    assert outbox.waiting() >= 990
    outbox.insert(topic="orders", payload="late")
    take(client, one_server, "orders", 1)
    client.put(one_server.topic("narrow"), json={"capacity_jobs": 0})
    assert len({job["payload"] for job in take(client, one_server, "narrow", 1_000)}) == 1_000
    await_event(one_server, "outbox_waits", "state=end")


def test_large_payloads(one_server, outbox, client):
    payloads = {f"L-{i}": bytes([65 + i]) * ((1 << 20) - i) for i in range(10)} | {"S-1": b"small", "M-1": b"m" * 5_000}
    with outbox.connect() as connection:
        for job_id, payload in payloads.items():
            add(connection, topic="orders", job_id=job_id, payload=payload)
        connection.commit()
    found = {}
    while len(found) < len(payloads):
        for job in reserve(client, one_server, "orders", max=4, wait_ms=10_000):
            found[job["id"]] = job["payload"].encode()
            ack(client, one_server, job, topic="orders")
    assert found == payloads


def test_two_thousand_rows_a_second(server, outbox, client):
    """How long rows wait while a thread inserts 2,000 a second for 3 s, by the times that the application and the server
    note. The limit is wide, because other tests share the machine."""
    rate, seconds, batch = 2_000, 3, 20
    began = time.monotonic()
    with outbox.connect() as connection:
        for i in range(rate * seconds // batch):
            hold(max(0, began + i * batch / rate - time.monotonic()))
            add_many(connection, [("orders", f"{i}-{j}", str(now_ms()), HOUR_MS) for j in range(batch)])
            connection.commit()
    took = time.monotonic() - began
    outbox.await_empty()
    jobs = jobs_of(client, server, "orders")
    assert len(jobs) == rate * seconds
    waits = sorted(job["created_ms"] - int(job["payload"]) for job in jobs)
    p50, p99 = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    print(f"\n{len(jobs) / took:.0f} rows/s; from the INSERT to the job: p50 {p50} ms, p99 {p99} ms, most {waits[-1]} ms")
    assert p99 < 1_000


def test_rows_of_other_prefixes_are_refused(start, outbox, client):
    server = start(*outbox.flags(), "--outbox-prefix", "shop.")
    outbox.insert(topic="orders", payload="x")
    outbox.insert(topic="shop.orders", payload="y")
    outbox.insert(op="cancel", topic="orders", job_id="A-1")
    take(client, server, "shop.orders", 1)
    wait_for(lambda: len(outbox.refused()) == 2, what="the refused rows")
    assert all("allows topics that begin with shop." in error for _, error in outbox.refused())


def test_an_id_of_the_row_outlives_an_emptied_table(one_server, outbox, client):
    """TRUNCATE begins to count at 1 again: the rows after it are new jobs."""
    outbox.insert(topic="orders", payload="before", delay_ms=HOUR_MS)
    outbox.await_empty()
    outbox.ask("TRUNCATE TABLE tocsin_outbox")
    outbox.insert(topic="orders", payload="before", delay_ms=HOUR_MS)
    outbox.await_empty()
    assert len(jobs_of(client, one_server, "orders")) == 2


def test_a_delay_with_a_virtual_clock_counts_from_the_pick_up(start, outbox, client):
    server = start(*outbox.flags(), "--clock", "virtual")
    outbox.insert(topic="orders", payload="x", delay_ms=HOUR_MS)
    outbox.await_empty()
    assert client.post(server.url + "/v1/clock/advance", json={"ms": HOUR_MS - 1}).status_code == 200
    assert reserve(client, server, "orders") == []
    assert client.post(server.url + "/v1/clock/advance", json={"ms": 1}).status_code == 200
    take(client, server, "orders", 1)


def test_a_clock_that_differs_is_logged_and_delays_follow_the_node(start, outbox, client):
    """A user whose sessions begin an hour ago, and stay there: MySQL's clock is behind."""
    outbox.ask("CREATE OR REPLACE USER 'behind'@'%%' IDENTIFIED BY 'wire-9f2e-horse'")
    outbox.ask(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {outbox.database}.* TO 'behind'@'%%'")
    outbox.ask("SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() - 3600'")
    try:
        server = start("--outbox-url", outbox.url(user="behind"), "--outbox-password-file", outbox.mysql.password_file)
        await_event(server, "mysql_clock_skew", "state=begin ahead_ms=36")
        before = now_ms()
        with outbox.connect(init_command="SET timestamp = UNIX_TIMESTAMP() - 3600") as connection:
            add(connection, topic="orders", job_id="A-1", delay_ms=HOUR_MS)
            connection.commit()
        outbox.await_empty()
        assert abs(job_of(client, server, "orders", "A-1")["due_ms"] - before - HOUR_MS) < 30_000
    finally:
        outbox.ask("SET GLOBAL init_connect = ''")


def test_a_wrong_password_is_refused_at_the_start(outbox, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_text("not-this-one\n")
    wrong.chmod(0o600)
    done = run("tocsind", "--data-dir", tmp_path / "data", "--http-listen", "127.0.0.1:0", "--outbox-url", outbox.url(),
               "--outbox-password-file", wrong)
    assert done.returncode == 1
    assert f"outbox.url: MySQL at 127.0.0.1:{outbox.mysql.port}, database {outbox.database}: Access denied" in done.stderr
    assert "not-this-one" not in done.stderr


def test_a_missing_table_is_refused_at_the_start_with_the_command_that_helps(start, outbox, tmp_path, client):
    outbox.ask("DROP TABLE tocsin_outbox, tocsin_schema")
    done = run("tocsind", "--data-dir", tmp_path / "data", "--http-listen", "127.0.0.1:0", *outbox.flags())
    assert done.returncode == 1
    command = re.search(r"there is no table tocsin_outbox: run tocsin (mysql migrate \S+)", done.stderr)
    assert command, done.stderr
    password = ["--password-file", outbox.mysql.password_file]
    assert run("tocsin", *command[1].split(), *password).returncode == 0
    server = start(*outbox.flags())
    outbox.insert(topic="orders", payload="x")
    take(client, server, "orders", 1)


def test_options_that_make_no_sense_are_refused(tmp_path):
    def says(*flags):
        done = run("tocsind", "--config-check", "--data-dir", tmp_path / "data", *flags)
        assert done.returncode == 2
        return done.stderr

    url = "mysql://tocsin@127.0.0.1/shop"
    assert "outbox.prefix is set, but outbox.url is not" in says("--outbox-prefix", "shop.")
    assert "outbox.url does not begin with mysql:// or mysqls://" in says("--outbox-url", "http://127.0.0.1/shop")
    assert "outbox.tls_ca_file is set, but outbox.url has no TLS" in says("--outbox-url", url, "--outbox-tls-ca-file", "ca")
    assert "outbox.tls_key_file is empty" in says("--outbox-url", url.replace("mysql:", "mysqls:"), "--outbox-tls-cert-file", "c")


def test_over_tls(start, outbox, client, tmp_path):
    authority = outbox.mysql.authority
    flags = ["--outbox-url", outbox.url(scheme="mysqls"), "--outbox-password-file", outbox.mysql.password_file]
    server = start(*flags, "--outbox-tls-ca-file", authority.ca)
    outbox.insert(topic="orders", payload="x")
    take(client, server, "orders", 1)
    other = start(*flags, folder=tmp_path / "other")  # the system's authorities have not signed it
    await_event(other, "mysql_away", "certificate")
    done = run("tocsind", "--data-dir", tmp_path / "third", "--http-listen", "127.0.0.1:0", *flags, "--outbox-tls-ca-file", "nowhere")
    assert done.returncode == 2
    assert "outbox.tls_ca_file: cannot read nowhere" in done.stderr


def test_the_least_privileges_that_the_documents_name(start, outbox, client):
    outbox.ask("CREATE OR REPLACE USER 'least'@'%%' IDENTIFIED BY 'wire-9f2e-horse'")
    outbox.ask(f"GRANT SELECT, UPDATE, DELETE ON {outbox.database}.tocsin_outbox TO 'least'@'%%'")
    outbox.ask(f"GRANT SELECT ON {outbox.database}.tocsin_schema TO 'least'@'%%'")
    server = start("--outbox-url", outbox.url(user="least"), "--outbox-password-file", outbox.mysql.password_file)
    outbox.insert(topic="orders", payload="x")
    outbox.insert(topic="", payload="wrong")
    take(client, server, "orders", 1)
    wait_for(outbox.refused, what="the refused row")


def test_every_metric_is_explained_and_no_other(one_server, outbox, client):
    served = re.findall(r"^# TYPE (tocsin_outbox_\w+) (\w+)$", client.get(one_server.url + "/metrics").text, re.MULTILINE)
    page = (ROOT / "docs/metrics.md").read_text()
    assert sorted(re.findall(r"^\| `(tocsin_outbox_\w+)` \| (\w+) \|", page, re.MULTILINE)) == sorted(served)


def test_the_password_is_shown_nowhere(one_server, outbox):
    arguments = open(f"/proc/{one_server.process.pid}/cmdline", "rb").read().decode()
    assert PASSWORD not in arguments and PASSWORD not in "".join(one_server.errors)
    assert f"{USER}@" in arguments


def test_the_command_line_makes_and_checks_the_tables(outbox, tmp_path):
    url, password = outbox.url(), ["--password-file", outbox.mysql.password_file]
    outbox.ask("DROP TABLE tocsin_outbox, tocsin_schema")
    missing = run("tocsin", "mysql", "check", url, *password)
    assert missing.returncode == 1
    assert "there is no table tocsin_outbox" in missing.stdout
    made = run("tocsin", "mysql", "migrate", url, *password)
    assert (made.returncode, made.stdout.endswith("tocsin_outbox has now version 1\n")) == (0, True)
    again = run("tocsin", "mysql", "migrate", url, *password)
    assert (again.returncode, again.stdout.endswith("tocsin_outbox had already version 1\n")) == (0, True)
    checked = run("tocsin", "mysql", "check", url, *password, "--json")
    assert (checked.returncode, json.loads(checked.stdout)["usable"]) == (0, True)
    printed = run("tocsin", "mysql", "schema").stdout
    assert all(f"CREATE TABLE IF NOT EXISTS {table}" in printed for table in ("tocsin_schema", "tocsin_outbox"))
    outbox.ask("ALTER TABLE tocsin_outbox DROP COLUMN headers")
    broken = run("tocsin", "mysql", "check", url, *password)
    assert broken.returncode == 1
    assert "tocsin_outbox has no column headers" in broken.stdout
    away = run("tocsin", "mysql", "check", "mysql://root@127.0.0.1:1/shop")
    assert away.returncode == 3
    assert "MySQL at 127.0.0.1:1, database shop" in away.stderr
    bad = run("tocsin", "mysql", "check", "mysql://root:secret@127.0.0.1/shop")
    assert bad.returncode == 2
    assert "holds a password" in bad.stderr and "secret" not in bad.stderr
