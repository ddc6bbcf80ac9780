"""What goes wrong is shown: receivers that fail, alerts that fire, and calls that are not answered."""

import pytest

from conftest import submit
from dashboard import bury
from webhook_receiver import WebhookReceiver

pytest_plugins = ["dashboard_fixtures"]

HOUR_MS = 3_600_000


@pytest.fixture(name="receiver")
def _receiver(tmp_path):
    one = WebhookReceiver(tmp_path / "receiver")
    yield one
    one.close()


@pytest.fixture(name="pushing")
def _pushing(start):
    return start("--webhook-allow", "127.0.0.0/8")


def push(client, server, topic, url):
    body = {"backoff_base_ms": HOUR_MS, "backoff_max_ms": HOUR_MS, "delivery": {"sink": "webhook", "url": url}}
    answer = client.put(server.topic(topic), json=body)
    assert answer.status_code in (200, 201), answer.text


def test_deliveries_show_what_fails_and_probe_it(open_tab, client, pushing, receiver):
    push(client, pushing, "mail", receiver.url())
    push(client, pushing, "sms", receiver.url())
    submit(client, pushing, "mail", id="fine", payload="p")
    submit(client, pushing, "sms", id="refused", payload="p", headers={"answers": "[503]"})
    tab = open_tab(pushing)
    tab.open("deliveries")
    tab.sees("failing", "tr[data-topic=sms]")
    tab.sees("503", "tr[data-topic=sms]")
    tab.sees("delivering", "tr[data-topic=mail]")
    tab.sees("none", "tr[data-topic=mail]")
    tab.click("Probe", "tr[data-topic=mail]")
    tab.sees("confirmed", "tr[data-topic=mail]")
    receiver.stop()
    tab.click("Probe", "tr[data-topic=mail]")
    tab.sees("retry", "tr[data-topic=mail]")
    tab.open("")
    tab.sees("The webhook of sms is failing", ".problems")
    tab.click("The webhook of sms", ".problems")
    tab.sees("Deliveries", "h1")


def test_deliveries_come_page_by_page(open_tab, client, pushing):
    for i in range(55):
        push(client, pushing, f"topic-{i:02}", "http://127.0.0.1:9/")
    tab = open_tab(pushing)
    tab.open("deliveries")
    tab.find("tr[data-topic='topic-49']")
    assert len(tab.all("tbody tr")) == 50
    tab.click("Next")
    tab.find("tr[data-topic='topic-50']")
    assert len(tab.all("tbody tr")) == 5
    tab.click("Previous")
    tab.find("tr[data-topic='topic-00']")


def test_alerts_fire_and_are_resolved(open_tab, client, start):
    server = start("--clock", "virtual", "--alerts-dead-jobs", "5000")
    server.virtual = True
    bury(client, server, "mail", ["no such address"] * 2)
    tab = open_tab(server)
    tab.open("alerts")
    tab.sees("No alert fires")
    tab.sees("more than 5,000 jobs", "tr[data-rule=dead_letters]")
    tab.sees("a topic has … dead letters, more than 5,000", "tr[data-rule=dead_letters]")
    assert "{" not in tab.text("main")
    client.put(server.topic("mail"), json={"alert_dead_jobs": 1})
    tab.sees("firing", "tr[data-alert=dead_letters]")
    tab.sees("topic mail has 2 dead letters, more than 1", "tr[data-alert=dead_letters]")
    tab.open("")
    tab.sees("topic mail has 2 dead letters", ".problems")
    tab.click("topic mail has 2 dead letters", ".problems")
    tab.sees("no such address")
    tab.click("Redrive", "tr[data-reason='no such address']")
    assert tab.operate("Redrive 2 jobs") == {"redriven": 2}
    tab.click("Done", "dialog[open]")
    tab.open("alerts")
    tab.sees("resolved", "tr[data-alert=dead_letters]")
    tab.open("")
    tab.sees("Nothing is wrong")


def test_what_cannot_be_loaded_is_a_problem_and_hides_nothing(tab, client, server, block):
    client.put(server.topic("mail"), json={"alert_dead_jobs": 1})
    bury(client, server, "mail", ["no such address"] * 2)
    tab.open()
    tab.sees("topic mail has 2 dead letters", ".problems")
    changed = lambda: submit(client, server, "other", payload="p", delay_ms=HOUR_MS)  # the page looks again at once
    block("*/v1/deliveries*")
    changed()
    tab.sees("The deliveries are not known: the server does not answer", ".problems")
    tab.sees("topic mail has 2 dead letters", ".problems")
    block("*/v1/alerts*", "*/v1/cluster*")
    changed()
    tab.sees("The alerts are not known", ".problems")
    tab.sees("The nodes are not known", ".problems")
    tab.misses("Nothing is wrong")
    block()
    changed()
    tab.misses("are not known")


def test_a_page_that_shows_what_it_had_says_so(tab, client, server, block):
    submit(client, server, "mail", payload="p", delay_ms=HOUR_MS)
    tab.open("topics/mail")
    tab.sees("1 job ·")
    block("*/v1/topics/mail")
    submit(client, server, "mail", payload="p", delay_ms=HOUR_MS)
    tab.sees("the server does not answer", "main")
    tab.sees("delivering", ".heading")  # what it last said
    block()
    tab.misses("the server does not answer", "main")

