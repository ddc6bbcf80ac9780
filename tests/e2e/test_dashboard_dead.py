"""Dead letters on the dashboard: by reason, redriven, purged, exported; and jobs as files that `tocsin import` reads."""

import json

from conftest import run
from dashboard import bury, figures

pytest_plugins = ["dashboard_fixtures"]

HOUR_MS = 3_600_000


def test_dead_letters_by_reason(tab, client, server):
    bury(client, server, "mail", ["no such address"] * 6 + ["timed out"] * 3)
    bury(client, server, "sms", ["number is not valid"])
    tab.open("dead")
    tab.sees("9 dead letters")
    row = "tr[data-reason='no such address']"
    tab.sees("6", row)
    tab.sees("67%", row)
    tab.click("Redrive", row)
    assert tab.find("dialog input[name=rate]").get_attribute("value") == "500"
    assert tab.operate("Redrive 6 jobs") == {"redriven": 6}
    tab.click("Done", "dialog[open]")
    tab.sees("3 dead letters")
    tab.click("Purge", "tr[data-reason='timed out']")
    assert tab.operate("Purge 3 jobs") == {"purged": 3}
    tab.click("Done", "dialog[open]")
    tab.sees("This topic has no dead letters")
    tab.click("sms", ".list")
    tab.sees("number is not valid")


def test_all_dead_letters_of_a_topic_are_redriven_or_purged(tab, client, server):
    bury(client, server, "mail", ["no such address"] * 4 + [""] * 2)
    tab.open("dead", topic="mail")
    tab.sees("no reason", "tr[data-reason='']")
    assert tab.all("tr[data-reason=''] a, tr[data-reason=''] button") == []  # no selector means these alone
    tab.click("Redrive", ".panel-head")
    assert tab.operate("Redrive 6 jobs") == {"redriven": 6}
    tab.click("Done", "dialog[open]")
    assert figures(client, server, "mail")["ready"] == 6
    bury(client, server, "sms", ["a", "b", "b"])
    tab.open("dead", topic="sms")
    tab.click("Purge", ".panel-head")
    assert tab.operate("Purge 3 jobs") == {"purged": 3}
    assert figures(client, server, "sms")["dead"] == 0


def test_more_topics_with_dead_letters_than_are_listed(tab, client, server):
    for i in range(31):
        bury(client, server, f"topic-{i:02}", ["timed out"])
    tab.open("dead")
    tab.find(".list li:nth-child(30)")
    tab.click("All topics by dead letters")
    tab.sees("31 topics", ".heading")
    assert tab.hash == "#/topics?sort=dead&order=desc"
    client.delete(server.topic("topic-30"))
    tab.open("dead")
    tab.find(".list li:nth-child(30)")
    assert "All topics" not in tab.text("main")


def test_the_page_stays_with_its_topic(tab, client, server):
    """Another one may get more dead letters while the viewer is about to act."""
    bury(client, server, "mail", ["no such address"] * 2)
    tab.open("dead")
    tab.sees("2 dead letters")
    assert tab.hash == "#/dead?topic=mail"
    tab.click("Purge", "tr[data-reason='no such address']")
    tab.click("Dry run", "dialog[open]")
    tab.sees("2 jobs match", "dialog[open]")
    bury(client, server, "sms", ["number is not valid"] * 5, prefix="sms")
    tab.sees("sms", ".list li:first-child")
    tab.click("Purge 2 jobs", "dialog[open]")
    assert tab.outcomes() == {"purged": 2}
    assert tab.hash == "#/dead?topic=mail"
    assert figures(client, server, "sms")["dead"] == 5


def imported(tmp_path, server, text, topic):
    file = tmp_path / "exported.jsonl"
    file.write_text(text)
    done = run("tocsin", "import", file, "--topic", topic, "--server", server.url)
    assert done.returncode == 0, done.stdout + done.stderr
    file.unlink()


def lines_of(text):
    return sorted((json.loads(line) for line in text.splitlines()), key=lambda job: job["id"])


def stored(client, server, topic):
    """The jobs by their ids."""
    jobs = client.get(server.topic(topic) + "/jobs", params={"limit": 1000}).json()["jobs"]
    return {job["id"]: job for job in jobs}


def test_jobs_go_into_a_file_that_can_be_imported(tab, client, server, tmp_path):
    jobs = [{"id": f"order-{i}", "payload": json.dumps({"order": 9007199254740993 + i}), "delay_ms": HOUR_MS,
             "headers": {"customer": "ann" if i % 2 else "bob"}, **({"key": "ann"} if i % 2 else {})} for i in range(20)]
    jobs.append({"id": "bytes", "payload_base64": "/wD+", "delay_ms": HOUR_MS, "max_attempts": 3})
    jobs.append({"id": "counted", "payload": "p", "trigger": "count", "count": 3})
    assert client.post(server.topic("orders") + "/jobs", json={"jobs": jobs}).status_code == 201
    tab.open("jobs", topic="orders")
    text = tab.export(".action-bar")
    told = run("tocsin", "export", "orders", "--server", server.url).stdout
    assert lines_of(told) == lines_of(text)
    imported(tmp_path, server, text, "copy")
    assert stored(client, server, "copy") == stored(client, server, "orders")
    for i in (0, 1):
        tab.find(f"tr[data-id='order-{i}'] input").click()
    some = [json.loads(line) for line in tab.export(".action-bar").splitlines()]
    assert sorted(job["id"] for job in some) == ["order-0", "order-1"]


def test_dead_letters_go_into_a_file_that_can_be_imported(tab, client, server, tmp_path):
    bury(client, server, "mail", ["no such address"] * 4 + ["timed out"] * 3)
    tab.open("dead", topic="mail")
    some = tab.export("tr[data-reason='timed out']")
    assert [json.loads(line)["state"] for line in some.splitlines()] == ["dead"] * 3
    everything = tab.export(".panel-head")
    imported(tmp_path, server, everything, "again")
    assert stored(client, server, "again") == stored(client, server, "mail")
