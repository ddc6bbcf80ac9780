"""Actions on many jobs: what was confirmed is done and no more, and what is under way stays in sight."""

import json

from conftest import DEADLINE_S, now_ms, reserve, submit
from dashboard import bury, figures
from programs import wait_for

pytest_plugins = ["dashboard_fixtures"]

HOUR_MS = 3_600_000
MINUTE_MS = 60_000


def fill(client, server, count, **more):
    jobs = [{"id": f"order-{i}", "payload": json.dumps({"order": i}), "delay_ms": HOUR_MS, **more} for i in range(count)]
    assert client.post(server.topic("orders") + "/jobs", json={"jobs": jobs}).status_code == 201


def test_no_more_is_done_than_was_confirmed(tab, client, server):
    fill(client, server, 3)
    tab.open("jobs", topic="orders")
    tab.click("Cancel", ".action-bar")
    tab.click("Dry run", "dialog[open]")
    tab.sees("3 jobs match", "dialog[open]")
    for i in range(2):
        submit(client, server, "orders", id=f"late-{i}", payload="p", delay_ms=HOUR_MS)
    tab.click("Cancel 3 jobs", "dialog[open]")
    tab.sees("More jobs match than the 3 that you confirmed. 3 jobs were changed before it stopped.", "dialog[open]")
    tab.sees("2 jobs match", "dialog[open]")  # another dry run
    assert figures(client, server, "orders")["cancelled"] == 3
    tab.click("Cancel 2 jobs", "dialog[open]")
    assert tab.outcomes() == {"cancelled": 2}


def test_an_action_whose_answer_is_lost_is_not_begun_again_by_a_click(tab, client, server):
    fill(client, server, 3)
    due = lambda: client.get(server.topic("orders") + "/jobs/order-0").json()["due_ms"]
    before = due()
    tab.open("jobs", topic="orders")
    tab.click("Reschedule", ".action-bar")
    tab.type("dialog input[name=shift]", "+2h")
    tab.click("Dry run", "dialog[open]")
    tab.sees("3 jobs match", "dialog[open]")
    tab.in_page("""const ask = window.fetch;
      window.fetch = async (...call) => { const answer = await ask(...call); if (call[1]?.method !== "POST") return answer; window.fetch = ask; throw new TypeError("lost"); }""")
    tab.click("Reschedule 3 jobs", "dialog[open]")
    tab.sees("The action may have begun", "dialog[open]")
    assert tab.all("dialog #confirm") == []
    tab.click("Dry run", "dialog[open]")
    tab.find("dialog #confirm")
    tab.sees("The action may have begun", "dialog[open]")  # still
    tab.click("the operations of orders", "dialog[open]")
    tab.sees("reschedule in orders", "main")
    assert tab.all("dialog[open]") == []
    assert due() == before + 2 * HOUR_MS


def test_an_action_on_jobs_of_several_keys_ends_while_the_page_is_paused(tab, client, server):
    for name in ("ann", "bob", "eve"):
        submit(client, server, "orders", id=f"order-{name}", key=name, payload="p", delay_ms=HOUR_MS)
    tab.open("jobs", topic="orders")
    for name in ("ann", "bob", "eve"):
        tab.find(f"tr[data-id='order-{name}'] input").click()
    tab.sees("3 selected")
    tab.find("#pause").click()
    tab.sees("paused", ".live")
    tab.click("Cancel", ".action-bar")
    tab.type("dialog input[name=rate]", "1000")  # so that one waits for the other
    assert tab.operate("Cancel 3 jobs") == {"cancelled": 3}
    assert len(tab.all("dialog[open] .operation[data-state=done]")) == 3
    assert figures(client, server, "orders")["cancelled"] == 3


def test_an_operation_goes_on_without_the_page(tab, client, server):
    fill(client, server, 300)
    tab.open("jobs", topic="orders")
    tab.click("Cancel", ".action-bar")
    tab.type("dialog input[name=rate]", "150")
    tab.click("Dry run", "dialog[open]")
    tab.click("Cancel 300 jobs", "dialog[open]")
    tab.find("dialog[open] [role=progressbar]")
    tab.driver.get("about:blank")
    assert figures(client, server, "orders")["cancelled"] < 300
    wait_for(lambda: figures(client, server, "orders")["cancelled"] == 300, DEADLINE_S)


def test_an_operation_of_another_run_of_the_server_is_not_mine(open_tab, client, start):
    server = start()
    fill(client, server, 600)
    tab = open_tab(server)
    tab.open("jobs", topic="orders")
    tab.click("Cancel", ".action-bar")
    tab.type("dialog input[name=rate]", "20")
    tab.click("Dry run", "dialog[open]")
    tab.click("Cancel 600 jobs", "dialog[open]")
    tab.find("dialog[open] [role=progressbar]")
    assert server.stop() == 0
    again = start(listen=f"127.0.0.1:{server.port}")
    body = {"action": "attempts", "max_attempts": 5, "all": True, "rate": 20}
    other = client.post(again.topic("orders") + "/operations", json=body).json()["id"]
    tab.sees("does not know the operation", "dialog[open]", within_s=60)
    tab.sees("cancel in orders", "dialog[open] .operation")  # and not that of the other run, whatever its number
    assert client.get(f"{again.topic('orders')}/operations/{other}").json()["state"] == "running"
    client.delete(f"{again.topic('orders')}/operations/{other}")


def test_jobs_are_rescheduled_and_redriven_in_bulk(tab, client, server):
    fill(client, server, 12)
    due = client.get(server.topic("orders") + "/jobs/order-0").json()["due_ms"]
    bury(client, server, "mail", ["timed out"] * 5)
    tab.open("jobs", topic="orders")
    tab.click("Reschedule", ".action-bar")
    tab.type("dialog input[name=shift]", "+2h")
    assert tab.operate("Reschedule 12 jobs") == {"rescheduled": 12}
    tab.click("Done", "dialog[open]")
    assert client.get(server.topic("orders") + "/jobs/order-0").json()["due_ms"] == due + 2 * HOUR_MS
    tab.open("jobs", topic="mail", state="dead")
    tab.click("Redrive", ".action-bar")
    assert tab.operate("Redrive 5 jobs") == {"redriven": 5}
    tab.click("Done", "dialog[open]")
    tab.sees("No job matches")
    assert figures(client, server, "mail")["ready"] == 5


def test_jobs_are_sorted_by_the_time_of_their_creation(open_tab, client, virtual):
    base = client.get(virtual.url + "/v1/stats").json()["now_ms"]
    for i in range(6):  # those that are created later are due sooner
        submit(client, virtual, "orders", id=f"order-{i}", payload="p", due_ms=base + (20 - i) * HOUR_MS)
        client.post(virtual.url + "/v1/clock/advance", json={"ms": 1000})
    tab = open_tab(virtual)
    tab.open("jobs", topic="orders")
    ids = lambda: [row.get_attribute("data-id") for row in tab.all("table.jobs tbody tr")]
    tab.set("select[name=sort]", "created")
    wait_for(lambda: ids() == [f"order-{i}" for i in range(6)], DEADLINE_S, ids)
    tab.set("select[name=sort]", "due")
    wait_for(lambda: ids() == [f"order-{i}" for i in reversed(range(6))], DEADLINE_S, ids)


def test_a_topic_is_purged(tab, client, server):
    bury(client, server, "orders", ["timed out"] * 2)
    fill(client, server, 5)
    tab.open("topics/orders")
    tab.click("Purge", ".heading")
    tab.sees("every job of the topic", "dialog[open]")
    assert tab.operate("Purge 7 jobs") == {"purged": 7}
    tab.click("Done", "dialog[open]")
    left = figures(client, server, "orders")
    assert (left["scheduled"], left["dead"], left["purged"]) == (0, 0, 7)


def test_one_minute_is_chosen_by_clicks(tab, client, server):
    minute = (now_ms() // MINUTE_MS + 1) * MINUTE_MS
    jobs = [{"id": f"job-{i}", "payload": "p", "due_ms": minute + i * MINUTE_MS + MINUTE_MS // 2} for i in range(1440)]
    assert client.post(server.topic("orders") + "/jobs", json={"jobs": jobs}).status_code == 201
    tab.open("topics/orders")
    canvas = "[aria-label='Jobs to come, by due time'] canvas"
    tab.sees("1,4", "[aria-label='Jobs to come, by due time']")
    tab.click_at(canvas, 0.5)  # a bar of a day is five minutes
    tab.sees("5 jobs", ".range-head")
    tab.click("Zoom in", ".range")
    tab.button("Whole time")
    tab.click_at(canvas, 0.5)
    tab.sees("(1m)", ".range-head")
    tab.sees("1 job", ".range-head")
    tab.sees("job-", ".minute")
    assert len(tab.all(".minute .samples li")) == 1
    assert "Zoom in" not in tab.text(".range")
    tab.click("Cancel", ".range")
    assert tab.operate("Cancel 1 job") == {"cancelled": 1}


def test_a_lease_that_somebody_else_has_got_is_not_revoked(tab, client, server):
    client.put(server.topic("orders"), json={"backoff_base_ms": 0})
    submit(client, server, "orders", id="order-1", payload="p")

    def hand_over(to):
        """The job, from whoever has it."""
        client.post(server.topic("orders") + "/nack", json={"tokens": [job["token"]], "delay_ms": 0})
        return reserve(client, server, "orders", consumer=to, lease_ms=600_000, wait_ms=5000)[0]

    holder = lambda: client.get(server.topic("orders") + "/leases").json()["leases"][0]["holder"]
    [job] = reserve(client, server, "orders", consumer="worker-1", lease_ms=600_000)
    tab.open("leases")
    tab.click("Revoke")
    tab.sees("worker-1 holds", "dialog[open]")
    job = hand_over("worker-2")
    tab.click("Revoke 1 lease", "dialog[open] .dialog-foot")
    tab.sees("Somebody else holds it now")
    assert holder() == "worker-2"

    tab.open("topics/orders/jobs/order-1")
    tab.click("Revoke the lease", ".heading")
    job = hand_over("worker-3")
    tab.click("Revoke 1 lease", "dialog[open] .dialog-foot")
    tab.sees("Somebody else holds it now")
    assert holder() == "worker-3"
    tab.sees("leased by worker-3", ".timeline")
    tab.click("Revoke the lease", ".heading")
    tab.click("Revoke 1 lease", "dialog[open] .dialog-foot")
    tab.sees("The job was revoked")
    assert client.get(server.topic("orders") + "/leases").json()["leases"] == []


def test_a_payload_is_not_changed_after_another_attempt(tab, client, server):
    client.put(server.topic("orders"), json={"backoff_base_ms": HOUR_MS, "backoff_max_ms": HOUR_MS})
    submit(client, server, "orders", id="order-1", payload="before")
    tab.open("topics/orders/jobs/order-1")
    tab.click("Show the payload")
    tab.click("Change…")
    [job] = reserve(client, server, "orders")
    client.post(server.topic("orders") + "/nack", json={"tokens": [job["token"]]})
    tab.type("dialog textarea", "after")
    tab.click("Save the payload", "dialog[open]")
    tab.sees("The job was tried again meanwhile")
    assert client.get(server.topic("orders") + "/jobs/order-1").json()["payload"] == "before"
