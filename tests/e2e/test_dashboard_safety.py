"""What strangers put into jobs stays text, and the page loads nothing from anywhere else."""

import http.server
import threading

import pytest

from conftest import submit

pytest_plugins = ["dashboard_fixtures"]

HOUR_MS = 3_600_000
EVIL = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=2</script>"
HIDDEN = "a\u202egnp.exe\u200b"
TOPIC = "<svg-onload=window.hacked=3>\u202e"
SHOWN = "<svg-onload=window.hacked=3>U+202E"


@pytest.fixture(name="rude", scope="module")
def _rude():
    """A receiver that puts markup into the first line of its answers."""

    class Rude(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(503, EVIL)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Rude)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def harmless(tab):
    """Nothing of a stranger became an element, ran, or turned the text around."""
    assert tab.all("main img, main script, main b, main svg[onload], .toasts img, dialog img, .tray img") == []
    assert tab.in_page("return window.hacked ?? null") is None
    assert not {"\u202e", "\u200b", "\u0007"} & set(tab.text())


@pytest.fixture(name="hostile")
def _hostile(start, client, rude):
    """A server with markup and hidden characters wherever somebody else can put them."""
    server = start("--webhook-allow", "127.0.0.0/8")
    path = server.topic("%3Csvg-onload=window.hacked=3%3E%E2%80%AE")
    client.put(path, json={"alert_dead_jobs": 1, "backoff_base_ms": 0}).raise_for_status()
    # A dead letter with a reason, a lease with a holder, and a job that is to come, all of a topic with such a name.
    for name in ("dead", "dead 2", "held"):
        client.post(path + "/jobs", json={"id": name + EVIL, "payload": "p"}).raise_for_status()
    taken = client.post(path + "/reserve", json={"max": 2, "consumer": EVIL + HIDDEN}).json()["jobs"]
    body = {"tokens": [job["token"] for job in taken], "dead": True, "reason": EVIL + HIDDEN + "\u0007"}
    client.post(path + "/nack", json=body).raise_for_status()
    client.post(path + "/reserve", json={"consumer": EVIL + HIDDEN, "lease_ms": 600_000}).raise_for_status()
    job = {"id": EVIL, "key": EVIL[:60], "payload": EVIL + HIDDEN + "\u0007", "headers": {EVIL + HIDDEN: EVIL + HIDDEN}, "delay_ms": HOUR_MS}
    client.post(path + "/jobs", json=job).raise_for_status()
    client.put(server.topic("pushed"), json={"backoff_base_ms": HOUR_MS, "delivery": {"sink": "webhook", "url": rude}}).raise_for_status()
    submit(client, server, "pushed", payload="p")
    return server


# What has to be seen on a page, so that a page without the text is no pass.
PLACES = [
    ("", {".problems": "<img src=x", ".legend": SHOWN, "[aria-label='Most due jobs']": SHOWN}),
    ("topics", {"table.topics": SHOWN}),
    ("topics/%3Csvg-onload=window.hacked=3%3E%E2%80%AE", {"h1": SHOWN}),
    ("leases", {"tbody th": "<img src=x", "tbody td": "held<img src=x"}),
    ("dead", {".list": SHOWN, "table.reasons": "window.hacked=2</script>aU+202Egnp.exeU+200BU+0007"}),
    ("deliveries", {"tr[data-topic=pushed]": "503 <img src=x"}),
    ("alerts", {"tr[data-alert=dead_letters]": SHOWN}),
    ("jobs?topic=%3Csvg-onload=window.hacked=3%3E%E2%80%AE", {"table.jobs": "<img src=x"}),
]


def test_hostile_text_stays_text_everywhere(open_tab, hostile):
    tab = open_tab(hostile)
    for page, places in PLACES:
        tab.open(page)
        for css, text in places.items():
            tab.sees(text, css)
        harmless(tab)


def test_hostile_text_stays_text_on_the_page_of_a_job(open_tab, hostile):
    tab = open_tab(hostile)
    tab.open("jobs", topic=TOPIC, id_prefix=EVIL)
    tab.find("table.jobs tbody a").click()
    tab.sees("<img src=x", "h1")
    tab.sees("<img src=x", "[aria-label=Headers] th")
    tab.sees("U+202E", "[aria-label=Headers] th")
    tab.click("Show the payload")
    for text in ("<script>window.hacked=2</script>", "U+202E", "U+0007"):
        tab.sees(text, "pre.payload")
    harmless(tab)
    tab.click("Fire")
    tab.sees("<img src=x", "dialog[open]")
    harmless(tab)


def test_hostile_text_stays_text_in_what_pops_up(open_tab, hostile):
    tab = open_tab(hostile)
    tab.open("topics/%3Csvg-onload=window.hacked=3%3E%E2%80%AE")
    tab.click("Submit")
    tab.sees(SHOWN.replace("U+202E", "<U+202E>"), "dialog[open] h2")
    tab.type("dialog input[name=id]", "toast " + EVIL)
    tab.click("Submit 1 job", "dialog[open]")
    tab.sees("toast <img src=x", ".toasts")
    harmless(tab)
    tab.click("Purge", ".heading")
    tab.click("Dry run", "dialog[open]")
    tab.sees("<img src=x", "dialog[open] .samples")
    harmless(tab)
    tab.click("Purge 4 jobs", "dialog[open]")
    tab.sees(SHOWN, "dialog[open] .operation")
    tab.sees(SHOWN, ".tray")
    harmless(tab)
    tab.click("Done", "dialog[open]")
    tab.type("#search", "svg")
    tab.sees(SHOWN, ".hits")
    harmless(tab)


PAGES = ("", "topics", "topics/orders", "topics/orders?tab=settings", "topics/orders?tab=operations", "jobs?topic=orders",
         "topics/orders/jobs/order-1", "leases", "dead", "deliveries", "nodes", "alerts", "clock", "nowhere")


def test_no_inline_script_or_style_and_nothing_from_outside(tab, client, server):
    submit(client, server, "orders", id="order-1", payload="p", delay_ms=HOUR_MS)
    policy = client.get(tab.base + "/ui/").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    page = client.get(tab.base + "/ui/").text
    assert "style=" not in page and "<style" not in page and page.count("<script") == page.count("<script type=\"module\" src=")
    for name in PAGES:
        tab.open(name)
        names = tab.in_page("return performance.getEntriesByType('resource').map((e) => e.name)")
        assert names and all(name.startswith(tab.base) for name in names), (name, names)
        outside = tab.in_page("return [...document.querySelectorAll('[src], link[href], a[href], form[action]')].map((e) => e.src || e.href || e.action)")
        assert all(link.startswith(tab.base) for link in outside), (name, outside)
