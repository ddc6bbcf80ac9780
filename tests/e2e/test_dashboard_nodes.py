"""Several nodes on one Redis, and a disk that is full, on the dashboard."""

import re

from conftest import DEADLINE_S
from dashboard import figures
from programs import wait_for
from test_disk_full import FLAGS as SMALL_DISK, fill

pytest_plugins = ["dashboard_fixtures"]


def test_nodes_show_who_is_there_and_who_has_vanished(open_tab, node, redis_single, client):
    a, b = node("a", redis_single), node("b", redis_single)
    version = client.get(a.url + "/v1/stats").json()["version"]
    tab = open_tab(a)
    tab.open("nodes")
    tab.sees("2 nodes", "[aria-label=Members]")
    tab.sees(version, "[aria-label='This node']")
    rows = lambda: {re.match(r"\w+", row.text)[0]: row.text for row in tab.all("[aria-label=Members] tbody tr")}
    assert "this one" in rows()["a"] and "this one" not in rows()["b"]
    assert all(version in row for row in rows().values())
    groups = lambda: sum(int(each.text) for each in tab.all("[aria-label=Members] td[data-label=Groups]"))
    wait_for(lambda: groups() == 64, DEADLINE_S, groups)
    tab.sees(redis_single.address, "[aria-label=Store]")
    tab.sees("connected", "[aria-label=Store]")
    b.kill()
    tab.sees("vanished without leaving", "main .note.bad", within_s=60)
    wait_for(lambda: "b" not in rows(), DEADLINE_S, rows)
    tab.open("")
    tab.sees("vanished without leaving", ".problems")
    tab.click("Node b", ".problems")
    tab.sees("Nodes", "h1")
    redis_single.stop()
    tab.sees("refused", "[aria-label=Store] [data-label=State]")


def test_a_full_disk_is_a_problem_on_the_overview(open_tab, small_disk, start, client):
    server = start(*SMALL_DISK, folder=small_disk / "data")
    fill(client, server)
    tab = open_tab(server)
    tab.open("")
    tab.sees("the disk is full", ".problems")
    tab.open("topics/t")
    tab.click("Purge", ".heading")
    tab.click("Dry run", "dialog[open]")
    count = tab.find("dialog #confirm").text.split()[1]
    tab.type("dialog input[name=typed]", count)
    tab.click("Purge", "dialog[open] .dialog-foot")
    assert tab.outcomes() == {"purged": int(count.replace(",", ""))}
    assert figures(client, server, "t")["scheduled"] == 0
