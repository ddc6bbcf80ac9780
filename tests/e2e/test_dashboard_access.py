"""The dashboard for everybody: screen readers, the keyboard, a phone, dark and light, plain HTTP. With TOCSIN_SCREENSHOTS
set the pictures of docs/dashboard.md are written there."""

import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest

from conftest import DEADLINE_S, now_ms, reserve, submit
from dashboard import AXE, DESK, PHONE, ROOT, bury, tokens_of
from programs import hold, wait_for

pytest_plugins = ["dashboard_fixtures"]

HOUR_MS = 3_600_000
PAGES = {
    "overview": "", "topics": "topics", "topic": "topics/order-timeout", "settings": "topics/order-timeout?tab=settings",
    "operations": "topics/order-timeout?tab=operations", "no-topic": "jobs", "jobs": "jobs?topic=payment-retry&state=dead",
    "job": "topics/order-timeout/jobs/order-0", "dead-job": "topics/payment-retry/jobs/dead-20", "leases": "leases", "dead": "dead?topic=payment-retry", "deliveries": "deliveries",
    "nodes": "nodes", "alerts": "alerts", "clock": "clock", "no-page": "nowhere",
}
# Pictures: the page, how it is shown, and the part of it that says something.
SHOTS = [
    ("overview", "overview", (1360, 714), "light"), ("overview-dark", "overview", (1360, 714), "dark"), ("overview-phone", "overview", PHONE, "light"),
    ("topic", "topic", (1360, 720), "light"), ("jobs", "jobs", (1360, 760), "light"), ("job", "dead-job", (1360, 640), "light"),
    ("dead", "dead", (1360, 390), "light"), ("dead-phone", "dead", PHONE, "dark"), ("leases", "leases", (1360, 590), "light"),
]


@pytest.fixture(scope="module", name="busy")
def _busy(tmp_path_factory):
    """A server on a virtual clock with something on every page."""
    import httpx

    from conftest import Server

    server = Server(tmp_path_factory.mktemp("busy") / "data", "--clock", "virtual", "--webhook-allow", "127.0.0.0/8")
    server.virtual = True
    with httpx.Client(timeout=DEADLINE_S) as client:
        furnish(client, server)
    yield server
    assert server.stop() == 0, "".join(server.errors)


def live_through(client, server, topic, minutes):
    """Some traffic, so that there is a past to show."""
    dice = random.Random(3)
    for minute in range(minutes):
        jobs = [{"delay_ms": dice.randrange(60_000), "payload": "p"} for _ in range(30 + int(25 * math.sin(minute / 6)))]
        client.post(server.topic(topic) + "/jobs", json={"jobs": jobs}).raise_for_status()
        for _ in range(6):
            client.post(server.url + "/v1/clock/advance", json={"ms": 10_000})
            taken = [job["token"] for job in reserve(client, server, topic, max=100)]
            failed = [token for token in taken if dice.random() < 0.04]
            client.post(server.topic(topic) + "/ack", json={"tokens": [token for token in taken if token not in failed]})
            if failed:
                client.post(server.topic(topic) + "/nack", json={"tokens": failed, "reason": "the carrier does not answer"})


def furnish(client, server):
    advance = lambda ms: client.post(server.url + "/v1/clock/advance", json={"ms": ms}).raise_for_status()
    live_through(client, server, "order-timeout", minutes=40)
    bury(client, server, "payment-retry", ["bank timed out after 5000 ms"] * 45 + ["card refused: insufficient funds"] * 12 + ["no route to the bank"] * 3)
    bury(client, server, "sms-verification", ["the receiver answered 410 Gone"] * 8)
    advance(20 * 60_000)
    for worker in range(3):
        for _ in range(3):
            submit(client, server, "order-timeout", payload="{}")
        reserve(client, server, "order-timeout", max=100, lease_ms=900_000, consumer=f"worker-{worker + 1}.eu-west")
        advance(67_000)
    now = client.get(server.url + "/v1/stats").json()["now_ms"]
    dice = random.Random(7)
    sizes = {"order-timeout": 2600, "payment-retry": 1500, "reminder-email": 2100, "sms-verification": 900, "index-refresh": 800,
             "cart-abandoned": 1200, "invoice-due": 600, "subscription-renewal": 700}
    for k, (topic, size) in enumerate(sizes.items()):
        jobs = [{"id": f"{topic.split('-')[0]}-{i}", "due_ms": now + HOUR_MS + int(dice.gauss(8 + 1.7 * (k % 5), 4.5) % 22 * HOUR_MS),
                 "payload": json.dumps({"order": 9007199254740993 + i, "customer": f"c{i % 500}", "total": 19.9}),
                 "headers": {"tenant": f"t{i % 7}"}} for i in range(size)]
        assert client.post(server.topic(topic) + "/jobs", json={"jobs": jobs}).status_code == 201
    spike = [{"id": f"batch-{i}", "due_ms": (now // 60_000 + 300) * 60_000 + i % 60_000, "payload": "x"} for i in range(220)]
    client.post(server.topic("invoice-due") + "/jobs", json={"jobs": spike})
    client.put(server.topic("fraud-review"), json={"paused": True})
    submit(client, server, "fraud-review", payload="p")
    client.put(server.topic("webhooks"), json={"delivery": {"sink": "webhook", "url": "http://127.0.0.1:9/jobs"}})
    client.post(server.topic("order-timeout") + "/operations", json={"action": "attempts", "max_attempts": 16, "where": {"header": "tenant=t1"}})


@pytest.fixture(name="tab")
def _tab(open_tab, busy):
    return open_tab(busy)


def show(tab, name, size=DESK, scheme="light"):
    tab.resize(size)
    tab.media(scheme)
    tab.open(PAGES[name])


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(tab, name):
    if not AXE.exists():
        pytest.skip("axe-core is missing: run npm ci in web/")
    for scheme in ("light", "dark"):
        show(tab, name, scheme=scheme)
        assert tab.axe() == [], scheme
    show(tab, name, size=PHONE)
    assert tab.axe() == []


EMPTY = {  # pages of a server without jobs, and what they show
    "": "The first job", "topics": "The first job", "jobs": "There is no topic yet", "topics/none": "There is no such topic", "jobs?topic=none": "there is no topic none",
    "topics/none/jobs/none": "No such job is stored", "leases": "Nobody holds a job", "dead": "There are no dead letters", "deliveries": "No topic pushes",
    "alerts": "No alert fires",
}


def test_axe_finds_nothing_serious_on_an_empty_server(open_tab, server):
    if not AXE.exists():
        pytest.skip("axe-core is missing: run npm ci in web/")
    tab = open_tab(server)
    for size, scheme in ((DESK, "light"), (DESK, "dark"), (PHONE, "light")):
        tab.resize(size)
        tab.media(scheme)
        for page, text in EMPTY.items():
            tab.open(page)
            tab.sees(text, "main")
            assert tab.axe() == [], (page, size, scheme)


def test_axe_finds_nothing_serious_in_a_chosen_range(tab):
    if not AXE.exists():
        pytest.skip("axe-core is missing: run npm ci in web/")
    for scheme in ("light", "dark"):
        show(tab, "topic", scheme=scheme)
        tab.drag("[aria-label='Jobs to come, by due time'] canvas", 0.35, 0.45)
        tab.sees(" jobs", ".range-head")
        assert tab.axe() == [], scheme
    tab.resize(PHONE)
    assert tab.axe() == []


DIALOGS = [  # the page, the button, and what the dialog shows
    ("dead", "Redrive", "Jobs a second"), ("dead", "Export", "Save 60 jobs"), ("topics", "Create a topic", "max_attempts"),
    ("topic", "Submit", "Payload"), ("topic", "Drop", "Type order-timeout"), ("job", "Reschedule", "From now"), ("job", "Change", "Save the payload"),
    ("job", "Cancel", "This cannot be undone"), ("leases", "Revoke", "holds"), ("jobs", "Attempts", "Attempts"), ("jobs", "Reschedule", "Shift by"),
]


def test_axe_finds_nothing_serious_in_dialogs(tab):
    from selenium.webdriver.common.keys import Keys

    if not AXE.exists():
        pytest.skip("axe-core is missing: run npm ci in web/")
    for name, button, text in DIALOGS:
        show(tab, name)
        if button == "Change":
            tab.click("Show the payload")
        tab.click(button, "main")
        tab.sees(text, "dialog[open]")
        assert tab.axe() == [], (name, button)
        tab.press(Keys.ESCAPE)
    tab.press("?")
    tab.sees("Keyboard", "dialog[open]")
    assert tab.axe() == []


def test_axe_finds_nothing_serious_in_an_action_and_its_outcome(tab):
    if not AXE.exists():
        pytest.skip("axe-core is missing: run npm ci in web/")
    show(tab, "jobs")
    tab.click("Attempts", ".action-bar")
    tab.click("Dry run", "dialog[open]")
    tab.sees("Nothing was changed", "dialog[open]")
    assert tab.axe() == []
    tab.click("Change attempts", "dialog[open]")
    tab.outcomes()
    assert tab.axe() == []
    tab.click("Done", "dialog[open]")
    tab.find(".tray")
    tab.media("dark")
    assert tab.axe() == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(tab, name):
    show(tab, name, size=PHONE)
    assert tab.in_page("return document.documentElement.scrollWidth") <= PHONE[0]
    hidden = tab.in_page("""return [...document.querySelectorAll("main button, main a, main input")].filter((e) => e.offsetParent && !e.closest(".scroll, .segments, .sr"))
      .filter((e) => { const box = e.getBoundingClientRect(); return box.width > 0 && (box.left < -1 || box.right > innerWidth + 1); }).map((e) => e.outerHTML.slice(0, 120))""")
    assert hidden == []


def test_a_phone_has_a_menu(tab):
    show(tab, "overview", size=PHONE)
    assert not tab.find("nav.side").is_displayed()
    tab.click("Menu")
    tab.click("Leases", "nav.side")
    tab.sees("Leases", "h1")
    assert not tab.find("nav.side").is_displayed()


def test_the_keyboard_reaches_everything(tab):
    from selenium.webdriver.common.keys import Keys

    show(tab, "overview")
    tab.press("g", "t")
    tab.sees("Topics", "h1")
    tab.press("g", "d")
    tab.sees("Dead letters", "h1")
    tab.press("g", "o")
    tab.sees("Overview", "h1")
    tab.press("?")
    tab.sees("Keyboard", "dialog[open]")
    tab.press(Keys.ESCAPE)
    wait_for(lambda: not tab.all("dialog[open]"), DEADLINE_S)
    tab.press("/")
    tab.press(*"subscription")
    tab.sees("subscription-renewal", ".hits")
    tab.press(Keys.ENTER)
    tab.sees("subscription-renewal", "h1")
    tab.press("/")
    tab.press(*"topic:payment-retry state:dead")
    tab.sees("payment-retry: state:dead", ".hits")
    tab.press(Keys.ENTER)
    tab.sees("60 jobs match")


def test_a_page_that_arrives_leaves_the_focus_to_a_search(tab):
    show(tab, "overview")
    tab.in_page("location.hash = '#/topics'; document.getElementById('search').focus()")
    tab.sees("Topics", "h1")
    assert tab.in_page("return document.activeElement.id") == "search"
    tab.in_page("document.activeElement.blur(); location.hash = '#/dead'")
    tab.sees("Dead letters", "h1")
    assert tab.in_page("return document.activeElement.tagName") == "H1"


def test_a_dialog_keeps_the_focus_and_gives_it_back(tab):
    from selenium.webdriver.common.keys import Keys

    show(tab, "topics")
    opener = tab.button("Create a topic")
    opener.send_keys(Keys.ENTER)
    tab.sees("max_attempts", "dialog[open]")
    for _ in range(40):
        tab.press(Keys.TAB)
        assert tab.in_page("return document.activeElement === document.body || document.activeElement.closest('dialog') !== null")
    tab.press(Keys.ESCAPE)
    wait_for(lambda: not tab.all("dialog[open]"), DEADLINE_S)
    wait_for(lambda: tab.in_page("return document.activeElement.innerText") == opener.text, DEADLINE_S)


def test_colours_follow_the_system_and_a_switch(tab):
    colour = lambda: tab.in_page("return getComputedStyle(document.body).backgroundColor")
    show(tab, "overview")
    light = colour()
    tab.media("dark")
    wait_for(lambda: colour() != light, DEADLINE_S)
    tab.find("#theme").click()  # light, whatever the system says
    wait_for(lambda: colour() == light, DEADLINE_S)
    tab.driver.refresh()
    tab.settle()
    assert colour() == light


def test_times_are_in_the_viewers_zone_and_utc_on_hover(browser, tab, busy, client):
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Shanghai"})
    try:
        show(tab, "job")
        due = client.get(busy.topic("order-timeout") + "/jobs/order-0").json()["due_ms"]
        moment = tab.find(".fields time")
        shown = re.sub(r" in .*", "", moment.text)
        expected = tab.in_page("return new Date(arguments[0] + 8 * 3600000).toISOString().slice(0, 19).replace('T', ' ')", due)
        assert shown.startswith(expected)
        assert tab.in_page("return new Date(arguments[0]).toISOString().slice(0, 19).replace('T', ' ')", due) in moment.get_attribute("title")
        assert "UTC" in moment.get_attribute("title")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_copying_works_over_plain_http(open_tab, start, tmp_path):
    made = tokens_of(tmp_path / "tokens", admin=["--scope", "admin"])
    server = start("--auth-token-file", tmp_path / "tokens")
    tab = open_tab(server, f"http://tocsin.test:{server.port}")
    tab.open()
    tab.type("input[name=token]", made["admin"])
    tab.click("Log in")
    tab.sees("The first job")
    assert tab.in_page("return window.isSecureContext") is False
    tab.in_page("document.addEventListener('copy', () => { window.copied = String(document.getSelection()) || document.activeElement.value; })")
    tab.find(".command .copy").click()
    wait_for(lambda: tab.in_page("return window.copied") == tab.find(".command code").text, DEADLINE_S)
    tab.sees("Copied", ".command")


def test_screenshots(tab):
    folder = pathlib.Path(os.environ.get("TOCSIN_SCREENSHOTS", ROOT / "build/dashboard-screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    for file, name, size, scheme in SHOTS:
        show(tab, name, size, scheme)
        if name == "overview":
            tab.find(".stats")
            tab.find(".legend")
        if name == "dead-job":
            tab.click("Show the payload")
        if name == "topic":
            tab.drag("[aria-label='Jobs to come, by due time'] canvas", 0.35, 0.45)
            tab.sees(" jobs", ".range-head")
        tab.in_page("window.scrollTo(0, 0)")
        hold(0.5)  # for the picture: charts are drawn and the pulse is at rest
        path = folder / f"{file}.png"
        assert tab.driver.save_screenshot(str(path))
        shrink(path)
        assert 8_000 < path.stat().st_size < 250_000


def shrink(path):
    """Fewer colours make a picture of a page a third as large."""
    if program := shutil.which("pngquant"):
        subprocess.run([program, "--force", "--skip-if-larger", "--output", path, "128", path], check=False)
