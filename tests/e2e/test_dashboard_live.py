"""The dashboard follows the server: live, paused, through a restart; and what it asks for meanwhile."""

import json

import pytest

from conftest import DEADLINE_S, submit
from programs import hold, wait_for

pytest_plugins = ["dashboard_fixtures"]


def calls(tab):
    """How many calls the page has made."""
    return tab.in_page("return performance.getEntriesByType('resource').filter((e) => e.name.includes('/v1/')).length")


def mode(tab):
    return tab.find(".live-state").get_attribute("data-mode")


def await_mode(tab, wanted, within_s=DEADLINE_S):
    wait_for(lambda: mode(tab) == wanted, within_s, lambda: f"{wanted}, not {mode(tab)}")


def test_paused_means_that_nothing_is_asked_for(tab, client, server):
    submit(client, server, "orders", payload="p", delay_ms=3_600_000)
    tab.open("topics/orders")
    await_mode(tab, "live")
    tab.press("p")
    await_mode(tab, "paused")
    hold(0.5)  # calls that were under way
    before, shown = calls(tab), tab.text("main")
    submit(client, server, "orders", payload="p", delay_ms=3_600_000)
    hold(3)  # the measure: what is asked for in this time
    assert calls(tab) == before
    assert tab.text("main") == shown
    tab.press("p")
    await_mode(tab, "live")
    tab.sees("2", ".stats")


def test_an_idle_page_asks_for_little(tab, client, server):
    submit(client, server, "orders", payload="p", delay_ms=3_600_000)
    tab.open("jobs", topic="orders")
    await_mode(tab, "live")
    hold(4)
    before = calls(tab)
    hold(5)  # the measure
    assert calls(tab) - before <= 2


def test_without_a_stream_the_page_asks_no_more_than_once_a_second(tab, client, server, block):
    times = lambda: sorted(tab.in_page(
        "return performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/v1/stats')).map((e) => e.startTime)"))
    block("*/v1/events*")
    tab.open()
    await_mode(tab, "polling")
    tab.sees("not known while polling", ".stats")
    submit(client, server, "orders", payload="p", delay_ms=3_600_000)
    tab.sees("orders")
    at = wait_for(lambda: len(times()) >= 4 and times(), DEADLINE_S, "four calls")
    assert all(later - earlier > 1000 for earlier, later in zip(at, at[1:])), at


def test_a_restart_of_the_server_while_the_page_is_open(open_tab, client, start, tmp_path):
    server = start()
    for i in range(3):
        submit(client, server, "orders", id=f"order-{i}", payload="p", delay_ms=3_600_000)
    tab = open_tab(server)
    tab.open("topics/orders")
    tab.sees("3 jobs ·")
    tab.in_page("window.sameTab = true")
    assert server.stop() == 0
    await_mode(tab, "offline")
    tab.sees("The server does not answer")
    tab.sees("3 jobs ·")  # what it last said
    again = start(listen=f"127.0.0.1:{server.port}")
    await_mode(tab, "live", within_s=60)
    submit(client, again, "orders", id="order-3", payload="p", delay_ms=3_600_000)
    tab.sees("4 jobs ·")
    tab.misses("The server does not answer")
    assert tab.in_page("return window.sameTab") is True
    assert json.loads(tab.in_page("return JSON.stringify(document.querySelectorAll('.note.bad').length)")) == 0


def test_a_list_begins_again_after_a_restart(open_tab, client, start):
    """A cursor is of one run of the server."""
    server = start()
    jobs = [{"id": f"order-{i}", "payload": "p", "delay_ms": 3_600_000} for i in range(120)]
    assert client.post(server.topic("orders") + "/jobs", json={"jobs": jobs}).status_code == 201
    tab = open_tab(server)
    tab.open("jobs", topic="orders")
    await_mode(tab, "live")
    tab.click("Next", ".pager")
    tab.sees("page 2", ".pager")
    assert server.stop() == 0
    await_mode(tab, "offline")
    start(listen=f"127.0.0.1:{server.port}")
    await_mode(tab, "live", within_s=60)
    tab.sees("page 1", ".pager")
    wait_for(lambda: len(tab.all("table.jobs tbody tr")) == 50, DEADLINE_S)
    tab.click("Next", ".pager")
    tab.sees("page 2", ".pager")
    assert tab.all("main .note.bad") == []


def test_pages_that_were_left_keep_no_connection(tab, client, server):
    """A browser opens six connections to a server. It keeps pages, to come back to them, and with them their streams."""
    submit(client, server, "orders", payload="p", delay_ms=3_600_000)
    for _ in range(8):
        tab.open("topics")
        tab.sees("orders", "table.topics")
        await_mode(tab, "live")
