"""Who may see and do what on the dashboard: login, scopes, prefixes, and sessions that end."""

import subprocess

import pytest

from conftest import DEADLINE_S, ENVIRONMENT, run
from dashboard import AXE, DESK, PHONE, tokens_of
from programs import hold, wait_for

pytest_plugins = ["dashboard_fixtures"]

HOUR_MS = 3_600_000


@pytest.fixture(name="guarded")
def _guarded(start, tmp_path):
    """A server with access tokens: for everything, to look, for the topics of a shop, and for a producer and a consumer."""
    file = tmp_path / "tokens"
    made = tokens_of(file, admin=["--scope", "admin"], watcher=["--scope", "observe"], shop=["--scope", "admin", "--topic-prefix", "shop."],
                     producer=["--scope", "submit"], consumer=["--scope", "consume"])
    server = start("--auth-token-file", file)
    server.file, server.tokens = file, made
    return server


def login(tab, token, page="Overview"):
    tab.open()
    tab.type("input[name=token]", token)
    tab.click("Log in")
    tab.sees(page, "h1")


def with_token(server, name):
    return {"Authorization": "Bearer " + server.tokens[name]}


def fill(client, server):
    for topic in ("shop.orders", "mail"):
        body = {"jobs": [{"id": f"{topic}-{i}", "payload": "secret text", "delay_ms": HOUR_MS} for i in range(3)]}
        assert client.post(server.topic(topic) + "/jobs", json=body, headers=with_token(server, "admin")).status_code == 201


def test_login_and_logout(open_tab, client, guarded):
    fill(client, guarded)
    tab = open_tab(guarded)
    tab.open()
    tab.type("input[name=token]", "tocsin_wrong")
    tab.click("Log in")
    tab.sees("does not know this access token")
    login(tab, guarded.tokens["admin"])
    tab.sees("shop.orders")
    assert guarded.tokens["admin"] not in tab.in_page("return document.cookie + JSON.stringify({...localStorage}) + location.href")
    tab.driver.refresh()
    tab.sees("Overview", "h1")
    tab.driver.find_element("id", "logout").click()
    tab.sees("You are logged out")
    tab.driver.refresh()
    tab.find("input[name=token]")


def test_an_observer_sees_no_payload_and_no_action(open_tab, client, guarded):
    fill(client, guarded)
    tab = open_tab(guarded)
    login(tab, guarded.tokens["watcher"])
    tab.open("topics/mail/jobs/mail-0")
    tab.sees("does not show payloads")
    assert "secret text" not in tab.text()
    labels = [each.text for each in tab.all("main button")]
    assert not [label for label in labels if "…" in label], labels
    tab.open("jobs", topic="mail")
    tab.sees("3 jobs match")
    assert tab.all(".action-bar button") == []  # a file of jobs has their payloads
    tab.open("dead", topic="mail")
    tab.sees("This topic has no dead letters")
    assert "Export" not in tab.text("main")
    tab.open("topics/mail", tab="settings")
    tab.sees("may not change them")
    refused = tab.in_page("""return fetch("/v1/topics/mail/pause", {method: "POST"}).then((answer) => answer.status)""")
    assert refused == 403  # the server refuses regardless


def test_a_token_for_some_topics_sees_only_these(open_tab, client, guarded):
    fill(client, guarded)
    tab = open_tab(guarded)
    login(tab, guarded.tokens["shop"])
    tab.sees("shop.orders")
    for page in ("", "topics", "leases", "dead", "deliveries", "nodes", "alerts", "jobs"):
        tab.open(page)
        assert "mail" not in tab.text("main"), page
        assert tab.all("main .note.bad") == [], (page, tab.text("main"))
    tab.open("")
    tab.sees("every receiver answers", ".all-well")
    assert "node" not in tab.text(".all-well")  # it does not see them
    tab.open("topics")
    tab.click("Pause shop.orders")
    tab.sees("paused", "tr[data-topic='shop.orders']")


def test_a_token_for_some_topics_sees_jobs_come_and_go(open_tab, client, guarded):
    """The events that tell of the whole node are not for it."""
    fill(client, guarded)
    tab = open_tab(guarded)
    login(tab, guarded.tokens["shop"])
    tab.open("topics")
    tab.find(".live-state[data-mode=live]")
    tab.sees("3", "tr[data-topic='shop.orders'] td[data-label=Scheduled]")
    hold(4)  # the page loads again for a moment after a change, whatever it hears
    client.post(guarded.topic("shop.orders") + "/jobs", json={"payload": "p", "delay_ms": HOUR_MS}, headers=with_token(guarded, "admin")).raise_for_status()
    tab.sees("4", "tr[data-topic='shop.orders'] td[data-label=Scheduled]", within_s=5)


def note_modes(tab):
    """From now on `window.modes` has what the head of the page says of the connection."""
    tab.in_page("""window.modes = [];
      const note = () => { const mode = document.querySelector(".live-state")?.dataset.mode; if (mode && window.modes[window.modes.length - 1] !== mode) window.modes.push(mode); };
      new MutationObserver(note).observe(document.body, {subtree: true, childList: true, attributes: true});
      note();""")


def test_a_session_whose_token_is_revoked(open_tab, client, guarded):
    fill(client, guarded)
    tab = open_tab(guarded)
    login(tab, guarded.tokens["watcher"])
    tab.open("topics/mail")
    tab.sees("3 jobs ·")
    tab.find(".live-state[data-mode=live]")
    note_modes(tab)
    identifier = guarded.tokens["watcher"].split("_")[1]
    done = run("tocsin", "token", "revoke", "--file", guarded.file, identifier)
    assert done.returncode == 0, done.stderr
    tab.sees("The session is over", within_s=DEADLINE_S)
    assert "mail" not in tab.text()
    wait_for(lambda: not tab.all("nav.side"), DEADLINE_S)
    assert tab.in_page("return window.modes") == ["live"]  # the server did answer


def regrant(file, name, scopes, topics):
    """Gives an access token other rights, as an editor does: the server never sees half a file."""
    lines = [line.split("\t") for line in file.read_text().split("\n")]
    [fields] = [fields for fields in lines if fields[-1] == name]
    fields[1:3] = [scopes, topics]
    other = file.with_suffix(".new")
    other.touch(mode=0o600)
    other.write_text("\n".join("\t".join(fields) for fields in lines))
    other.replace(file)


def test_a_token_that_gets_other_rights_gets_another_page(open_tab, client, guarded):
    fill(client, guarded)
    tab = open_tab(guarded)
    login(tab, guarded.tokens["admin"])
    tab.open("topics/mail")
    tab.sees("Pause", ".heading")
    tab.find(".live-state[data-mode=live]")
    note_modes(tab)
    regrant(guarded.file, "admin", "observe", "*")
    tab.misses("Pause", ".heading")
    tab.sees("3 jobs ·")
    tab.find(".live-state[data-mode=live]")
    regrant(guarded.file, "admin", "admin", "shop.*")
    tab.misses("3 jobs ·")  # what is no longer for it
    modes = tab.in_page("return window.modes")
    assert "live" in modes and "offline" not in modes, modes
    tab.open("topics")
    tab.sees("shop.orders", "table.topics")
    assert "mail" not in tab.text("main")


@pytest.mark.parametrize("name, actions", [("producer", ["Reschedule…", "Fire…", "Cancel…"]), ("consumer", [])])
def test_a_token_that_may_not_look_around_sees_jobs_that_it_names(open_tab, client, guarded, name, actions):
    fill(client, guarded)
    tab = open_tab(guarded)
    login(tab, guarded.tokens[name], "A job")
    tab.sees("needs observe as well")
    for page in ("topics", "jobs?topic=mail", "topics/mail", "leases", "dead", "nodes", "alerts"):
        tab.open(page)
        tab.sees("A job", "h1")
        assert tab.all("main .note.bad, nav.side a, #search") == [], page
    tab.type("input[name=topic]", "mail")
    tab.type("input[name=id]", "mail-0")
    tab.click("Show the job")
    tab.sees("mail-0", "h1")
    tab.click("Show the payload")
    tab.sees("secret text", "pre.payload")
    assert [each.text for each in tab.all(".heading button")] == actions
    asked = "return performance.getEntriesByType('resource').filter((e) => e.name.includes('/v1/events')).length"
    assert tab.in_page(asked) == 0  # it would be refused again and again


def test_copied_commands_work_in_a_shell(open_tab, client, guarded):
    job = {"id": "it's (1) $HOME;`x`", "key": "a b&c'd", "payload": "secret text", "delay_ms": HOUR_MS}
    assert client.post(guarded.topic("mail") + "/jobs", json=job, headers=with_token(guarded, "admin")).status_code == 201
    tab = open_tab(guarded)
    login(tab, guarded.tokens["admin"])
    tab.open("jobs", topic="mail")
    tab.find("table.jobs tbody a").click()
    tab.in_page("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    tab.click("curl", ".fields")
    command = wait_for(lambda: tab.in_page("return window.copied"), DEADLINE_S)
    assert guarded.tokens["admin"] not in command
    environment = {**ENVIRONMENT, "TOCSIN_TOKEN": guarded.tokens["admin"]}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=DEADLINE_S, env=environment)
    assert '"secret text"' in done.stdout, (command, done.stdout, done.stderr)
    tab.open("topics/other")
    command = tab.find(".command code").text
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=DEADLINE_S, env=environment)
    assert '"accepted"' in done.stdout, (command, done.stdout, done.stderr)


def test_axe_finds_nothing_serious_for_a_token_that_may_not_look_around(open_tab, guarded):
    if not AXE.exists():
        pytest.skip("axe-core is missing: run npm ci in web/")
    tab = open_tab(guarded)
    login(tab, guarded.tokens["producer"], "A job")
    for size, scheme in ((DESK, "light"), (DESK, "dark"), (PHONE, "light")):
        tab.resize(size)
        tab.media(scheme)
        assert tab.axe() == [], (size, scheme)


def test_axe_finds_nothing_serious_on_the_login_page(open_tab, guarded):
    if not AXE.exists():
        pytest.skip("axe-core is missing: run npm ci in web/")
    tab = open_tab(guarded)
    for scheme in ("light", "dark"):
        tab.media(scheme)
        tab.open()
        tab.find("input[name=token]")
        assert tab.axe() == [], scheme
    tab.type("input[name=token]", "tocsin_wrong")
    tab.click("Log in")
    tab.sees("does not know this access token")
    assert tab.axe() == []
