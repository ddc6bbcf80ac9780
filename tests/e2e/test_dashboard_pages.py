"""Every page of the dashboard, and what can be done on it, in a real browser."""

import json
import re
import shlex
import subprocess

import pytest

from conftest import DEADLINE_S, ack, now_ms, reserve, submit
from dashboard import bury, figures
from programs import hold, wait_for

pytest_plugins = ["dashboard_fixtures"]

HOUR_MS = 3_600_000


def test_an_empty_server_teaches_the_first_job(tab, client, server):
    tab.open()
    tab.sees("The first job")
    command = tab.find(".command code").text
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=DEADLINE_S)
    assert '"accepted"' in done.stdout, command
    tab.sees("greetings")  # the page found it by itself
    tab.misses("The first job")
    assert figures(client, server, "greetings")["accepted"] == 1
    assert shlex.split(command)[0] == "curl"


def test_the_overview_shows_what_there_is(tab, client, server):
    for i in range(30):
        submit(client, server, "orders", id=f"later-{i}", payload="p", delay_ms=HOUR_MS)
    submit(client, server, "orders", payload="now")
    ack(client, server, *reserve(client, server, "orders"), topic="orders")
    submit(client, server, "mail", payload="now")
    tab.open()
    tab.sees("Late now", ".stats")
    assert "while polling" not in tab.text(".stats")
    tab.sees("Nothing is wrong")
    tab.sees("30", ".stats")
    equation = tab.text(".equation").split()
    assert equation == "0 recovered + 32 accepted = 31 scheduled + 0 leased + 0 dead + 1 acked + 0 cancelled + 0 purged".split()
    tab.sees("balanced")
    tab.sees("30 jobs", "[aria-label='Jobs to come']")
    tab.sees("orders", "[aria-label='Jobs to come'] .legend")
    submit(client, server, "mail", payload="and one more")
    tab.sees("33\naccepted", ".equation")  # live


def test_what_is_wrong_is_named_with_the_way_to_it(open_tab, client, virtual):
    client.put(virtual.topic("slow"), json={"paused": True})
    submit(client, virtual, "slow", payload="p")
    client.post(virtual.url + "/v1/clock/advance", json={"ms": 2 * HOUR_MS})
    tab = open_tab(virtual)
    tab.open()
    tab.sees("slow is paused: 1 due, the oldest for 2h", ".problems")
    tab.click("slow is paused")
    tab.sees("paused", ".heading")
    assert tab.hash == "#/topics/slow"


def test_a_paused_topic_is_named_beside_an_alert_of_its_dead_letters(open_tab, client, virtual):
    bury(client, virtual, "slow", ["timed out"] * 2)
    client.put(virtual.topic("slow"), json={"paused": True, "alert_dead_jobs": 1})
    submit(client, virtual, "slow", payload="p")
    client.post(virtual.url + "/v1/clock/advance", json={"ms": 2 * HOUR_MS})
    tab = open_tab(virtual)
    tab.open()
    tab.sees("topic slow has 2 dead letters", ".problems")
    tab.sees("slow is paused: 1 due", ".problems")


def test_a_topic_is_created_changed_paused_and_dropped(tab, client, server):
    tab.open("topics")
    tab.click("Create a topic")
    tab.type("dialog input[name=name]", "orders")
    tab.sees("Deliveries before a job becomes a dead letter", "dialog[open]")  # the setting's own text
    tab.type("dialog input[name=max_attempts]", "3")
    tab.type("dialog input[name=lease_ms]", "1m")
    tab.click("Create the topic")
    tab.sees("orders", "h1")
    report = client.get(server.topic("orders")).json()
    assert (report["max_attempts"], report["lease_ms"], report["slots"]) == (3, 60_000, 8)

    tab.click("Settings")
    tab.type("input[name=max_attempts]", "1001")
    tab.click("Save the changes")
    tab.sees("the range is 1 to 1000", ".field.wrong")  # the server's own words, beside the field
    tab.type("input[name=max_attempts]", "7")
    tab.type("input[name=capacity_jobs]", "9007199254740993")
    tab.click("Save the changes")
    tab.sees("The settings were changed")
    report = client.get(server.topic("orders")).json()
    assert (report["max_attempts"], report["capacity_jobs"]) == (7, 9007199254740993)
    assert tab.find("input[name=capacity_jobs]").get_attribute("value") == "9007199254740993"

    tab.click("Pause", ".heading")
    tab.sees("paused", ".heading")
    assert client.get(server.topic("orders")).json()["paused"] is True
    tab.click("Resume", ".heading")
    tab.sees("delivering", ".heading")

    submit(client, server, "orders", payload="p", delay_ms=HOUR_MS)
    tab.click("Drop", ".heading")
    tab.sees("1 scheduled", "dialog[open]")
    assert not tab.find("dialog #confirm").is_enabled()
    tab.type("dialog input[name=typed]", "orders")
    tab.click("Drop it with 1 job", "dialog[open]")
    tab.sees("There is no topic yet")
    assert client.get(server.topic("orders")).status_code == 404


def test_a_topic_shows_its_figures_and_how_late_it_is(tab, client, server):
    for _ in range(5):
        submit(client, server, "orders", payload="p")
    ack(client, server, *reserve(client, server, "orders", max=5), topic="orders")
    submit(client, server, "orders", payload="p", delay_ms=HOUR_MS)
    tab.open("topics/orders")
    tab.sees("p99.9", "[aria-label='Lateness since the start']")
    rows = tab.all(".histogram tr")
    assert sum(int(row.find_elements("css selector", "td")[1].text) for row in rows) == 5
    tab.sees("1 job ·", "[aria-label='Jobs to come, by due time']")
    tab.click("Submit")
    tab.type("dialog textarea", "by hand")
    tab.type("dialog input[name=delay]", "2h")
    tab.click("Submit 1 job", "dialog[open]")
    tab.sees("2 jobs ·", "[aria-label='Jobs to come, by due time']")


def fill(client, server):
    """Twenty jobs of two customers; the one with the odd numbers has a key."""
    base = now_ms() // 60_000 * 60_000 + HOUR_MS
    jobs = [{"id": f"order-{i}", "due_ms": base + i * 60_000, "payload": json.dumps({"order": i}),
             "headers": {"customer": "ann" if i % 2 else "bob"}, **({"key": "ann"} if i % 2 else {})} for i in range(20)]
    assert client.post(server.topic("orders") + "/jobs", json={"jobs": jobs}).status_code == 201
    return base


def ids(tab):
    return [row.get_attribute("data-id") for row in tab.all("table.jobs tbody tr")]


def test_jobs_are_found_by_a_typed_selector_that_is_in_the_address(tab, client, server):
    fill(client, server)
    tab.open("jobs")
    tab.click("orders")
    tab.sees("20 jobs match")
    tab.type("input[name=selector]", "header:customer=bob order-1")
    tab.click("Search", "form[role=search]")
    tab.sees("5 jobs match")
    assert sorted(ids(tab)) == sorted(f"order-{i}" for i in (10, 12, 14, 16, 18))
    assert "header=customer%3Dbob" in tab.hash and "id_prefix=order-1" in tab.hash
    tab.driver.refresh()
    tab.sees("5 jobs match")
    assert tab.find("input[name=selector]").get_attribute("value") == "prefix:order-1 header:customer=bob"
    tab.type("input[name=selector]", "state:gone")
    tab.click("Search", "form[role=search]")
    tab.sees("no state is called gone")


def test_jobs_are_found_by_clicks_and_sorted(tab, client, server):
    base = fill(client, server)
    tab.open("jobs", topic="orders")
    tab.click("leased", ".selector")
    tab.sees("No job matches")
    tab.click("all", ".selector")
    tab.click("Filters")
    tab.set("input[name=key]", "ann")
    tab.sees("10 jobs match")
    tab.set("input[name=due_from_ms]", tab.in_page(
        "const d = new Date(arguments[0]); return new Date(d - d.getTimezoneOffset() * 60000).toISOString().slice(0, 19)", base + 10 * 60_000))
    tab.sees("5 jobs match")
    tab.set("select[name=sort]", "due")
    wait_for(lambda: ids(tab) == [f"order-{i}" for i in (11, 13, 15, 17, 19)], DEADLINE_S, lambda: ids(tab))
    assert "sort=due" in tab.hash


def test_an_action_on_selected_jobs_and_one_on_all_that_match(tab, client, server):
    fill(client, server)
    tab.open("jobs", topic="orders", sort="due")
    for i in (1, 2, 3):  # two of them have a key
        tab.find(f"tr[data-id='order-{i}'] input").click()
    tab.sees("3 selected")
    tab.click("Cancel", ".action-bar")
    assert tab.operate("Cancel 3 jobs") == {"cancelled": 3}
    tab.click("Done", "dialog[open]")
    wait_for(lambda: figures(client, server, "orders")["cancelled"] == 3, DEADLINE_S)
    tab.sees("17 jobs match")

    tab.open("jobs", topic="orders", header="customer=ann")
    tab.click("Attempts", ".action-bar")
    tab.type("dialog input[name=attempts]", "5")
    assert tab.operate("Change attempts of 8 jobs") == {"changed": 8}
    tab.click("Done", "dialog[open]")
    assert "header=customer%3Dann" in tab.hash  # the filter survives the action
    tab.click("Fire", ".action-bar")
    assert tab.operate("Fire 8 jobs") == {"fired": 8}
    tab.click("Done", "dialog[open]")
    tab.open("jobs", topic="orders", state="scheduled")
    tab.click("Purge", ".action-bar")
    assert tab.operate("Purge 17 jobs") == {"purged": 17}


def test_a_job_is_shown_and_changed(tab, client, server):
    payload = '{"order": 12345678901234567890, "rate": 1.0}'
    submit(client, server, "orders", id="order-1", key="ann", payload=payload, delay_ms=HOUR_MS, headers={"customer": "ann"})
    tab.open("topics/orders/jobs/order-1", key="ann")
    tab.sees("Hidden until you ask for it")
    assert "12345678901234567890" not in tab.text()
    tab.click("Show the payload")
    tab.sees('"order": 12345678901234567890,\n  "rate": 1.0', "pre.payload")
    tab.click("Text", ".payload-tools")
    tab.sees(payload, "pre.payload")
    tab.click("Hex", ".payload-tools")
    tab.sees("00000000  7b 22 6f", "pre.payload")
    tab.sees("customer", "[aria-label=Headers]")

    tab.click("Change…")
    tab.type("dialog textarea", '{"order": 12345678901234567891}')
    tab.click("Save the payload", "dialog[open]")
    wait_for(lambda: client.get(server.topic("orders") + "/jobs/order-1?key=ann").json()["payload"] == '{"order": 12345678901234567891}', DEADLINE_S)

    before = client.get(server.topic("orders") + "/jobs/order-1?key=ann").json()["due_ms"]
    tab.click("Reschedule")
    tab.type("dialog input[name=delay]", "3h")
    tab.click("Reschedule", "dialog[open] .dialog-foot")
    wait_for(lambda: client.get(server.topic("orders") + "/jobs/order-1?key=ann").json()["due_ms"] > before + HOUR_MS, DEADLINE_S)

    tab.click("Fire")
    tab.click("Make 1 job due now", "dialog[open]")
    tab.sees("Due, waits for a consumer")
    tab.click("Cancel…")
    tab.click("Cancel 1 job", "dialog[open] .dialog-foot")
    tab.sees("No such job is stored")


def test_a_job_tells_its_life(tab, client, server):
    client.put(server.topic("orders"), json={"max_attempts": 2, "backoff_base_ms": 0, "retention_ms": HOUR_MS})
    submit(client, server, "orders", id="order-1", payload="p")
    [job] = reserve(client, server, "orders", consumer="worker-3")
    tab.open("topics/orders/jobs/order-1")
    tab.sees("Attempt 1 of 2: leased by worker-3", ".timeline")
    client.post(server.topic("orders") + "/nack", json={"tokens": [job["token"]], "reason": "the bank does not answer"})
    tab.sees("The last one failed: the bank does not answer", ".timeline")  # live
    [job] = reserve(client, server, "orders", wait_ms=5000)
    client.post(server.topic("orders") + "/nack", json={"tokens": [job["token"]], "reason": "still not"})
    tab.sees("Became a dead letter", ".timeline")
    tab.click("Redrive")
    tab.click("Redrive 1 dead letter", "dialog[open] .dialog-foot")
    tab.sees("scheduled", ".fields")
    ack(client, server, *reserve(client, server, "orders", wait_ms=5000), topic="orders")
    tab.sees("Done", ".timeline")


def test_leases_show_who_holds_what_and_are_revoked(tab, client, server):
    for i in range(4):
        submit(client, server, "orders", id=f"order-{i}", payload="p")
    reserve(client, server, "orders", max=2, consumer="worker-1", lease_ms=600_000)
    reserve(client, server, "orders", max=2, consumer="worker-2", lease_ms=600_000)
    tab.open("leases")
    wait_for(lambda: len(tab.all("tbody tr")) == 4, DEADLINE_S)
    tab.sees("in 9m")
    tab.click("worker-2")
    wait_for(lambda: len(tab.all("tbody tr")) == 2, DEADLINE_S)
    assert "holder=worker-2" in tab.hash
    tab.click("Revoke")
    tab.sees("worker-2 holds", "dialog[open]")
    tab.click("Revoke 1 lease", "dialog[open] .dialog-foot")
    wait_for(lambda: len(tab.all("tbody tr")) == 1, DEADLINE_S)
    assert figures(client, server, "orders")["expired"] == 1


@pytest.mark.parametrize("page, extended", [("leases", "td[data-label=Extended]"), ("topics/orders/jobs/order-1", ".timeline-more")])
def test_a_lease_that_is_extended_is_not_over(tab, client, server, page, extended):
    """Nothing tells the page of it: it has to look when the deadline that it shows has passed."""
    submit(client, server, "orders", id="order-1", payload="p")
    [job] = reserve(client, server, "orders", lease_ms=3000)
    tab.open(page)
    tab.find(extended)
    over = []
    for _ in range(8):
        client.post(server.topic("orders") + "/extend", json={"tokens": [job["token"]], "lease_ms": 3000}).raise_for_status()
        hold(1)
        over.append(bool(re.search(r"\bover\b|ends[^a-z]*\d+s ago", tab.text("main"))))
    assert not any(one and next_one for one, next_one in zip(over, over[1:])), over
    assert int(re.search(r"(\d+)(?: times?)?$", tab.text(extended))[1]) >= 4


def test_nodes_show_the_store(tab):
    tab.open("nodes")
    tab.sees("journal")
    tab.sees("this one", "[aria-label=Members]")


def test_alerts_show_their_rules(tab):
    tab.open("alerts")
    tab.sees("No alert fires")


def test_a_virtual_clock_is_moved(open_tab, virtual, client):
    from selenium.webdriver.common.keys import Keys

    base = 1_800_000_000_000
    submit(client, virtual, "orders", id="first", payload="p", due_ms=base + 26 * HOUR_MS + 1234)
    submit(client, virtual, "orders", id="second", payload="p", due_ms=base + 200 * HOUR_MS)
    tab = open_tab(virtual)
    now = lambda: client.get(virtual.url + "/v1/stats").json()["now_ms"]
    tab.open("clock")
    tab.click("+ 1 hour")
    wait_for(lambda: now() == base + HOUR_MS, DEADLINE_S, now)
    tab.click("Jump to the next due job")
    wait_for(lambda: now() == base + 26 * HOUR_MS + 1234, DEADLINE_S, now)
    tab.sees("1", ".stats")
    tab.type("input[name=by]", "30m")
    tab.click("Advance")
    wait_for(lambda: now() == base + 26 * HOUR_MS + 1234 + HOUR_MS // 2, DEADLINE_S, now)
    before = base + 26 * HOUR_MS + 1234 + HOUR_MS // 2
    slider = tab.find("input[type=range]")
    for _ in range(3):
        slider.send_keys(Keys.ARROW_RIGHT)
    tab.button("Move to 30m later")
    assert now() == before  # the slider alone moves nothing
    tab.click("Move to 30m later")
    wait_for(lambda: now() == before + HOUR_MS // 2, DEADLINE_S, now)
    tab.click("Play")
    wait_for(lambda: now() >= before + 2 * HOUR_MS, DEADLINE_S, now)
    tab.click("Stop")
    tab.find("button[aria-pressed=false]")
    hold(0.3)  # an hour that was under way
    stopped = now()
    hold(1.5)  # the measure: it would have played on
    assert now() == stopped


def test_a_real_clock_has_no_page_to_move_it(tab):
    tab.open("clock")
    tab.sees("follows the real clock")
    assert "Clock" not in tab.text("nav.side")
