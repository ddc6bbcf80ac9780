"""The dashboard in a real browser: Debian's Chromium without a window, driven by selenium.

A Dashboard is one tab. What it looks for it waits for, and it finds things as people do: by their text and their labels.
"""

import json
import pathlib
import shutil
import socket
import tempfile
import threading

from conftest import run
from programs import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
WITHIN_S = 20
PACKAGES_S = 300  # for npm, if the packages are not there
PHONE = (360, 740)
DESK = (1360, 900)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--disable-dev-shm-usage",
         "--host-resolver-rules=MAP tocsin.test 127.0.0.1"]
# A call that is refused is logged by the browser itself; the test looks at what the page makes of it. The header counts only
# where the connection is to be trusted, which plain HTTP to a name is not.
EXPECTED = ("Failed to load resource", "net::ERR_", "Cross-Origin-Opener-Policy header has been ignored")


def why_not():
    """Why there is no browser here; empty if there is one."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is missing"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "python3-selenium is missing"
    return ""


def address(server):
    return server.url


class Browser:
    """One Chromium with a profile of its own; each test has a tab of it that knows nothing of the others."""

    def __init__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        self.profile = tempfile.mkdtemp(prefix="tocsin-chromium-")
        options = webdriver.ChromeOptions()
        for flag in [*FLAGS, f"--user-data-dir={self.profile}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_page_load_timeout(WITHIN_S)

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)


class Dashboard:
    def __init__(self, driver, base):
        self.driver, self.base = driver, base
        self.resize(DESK)
        self.media("light")
        driver.get_log("browser")  # of the test before

    # Pages

    def open(self, page="", **query):
        """A page, such as topics/orders; loaded, and no longer waiting for its data."""
        from urllib.parse import urlencode

        self.driver.get("about:blank")
        self.driver.get(f"{self.base}/ui/#/{page}" + ("?" + urlencode(query) if query else ""))
        self.settle()

    def settle(self):
        self.find("main")
        wait_for(lambda: not self.all(".skeleton"), WITHIN_S, "the page's data")

    def resize(self, size):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 500})

    def media(self, scheme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    @property
    def hash(self):
        return self.driver.execute_script("return location.hash")

    # Finding

    def all(self, css):
        return self.driver.find_elements("css selector", css)

    def find(self, css):
        found = wait_for(lambda: self.all(css), WITHIN_S, lambda: f"{css} in: {self.text()[:2000]}")
        return found[0]

    def text(self, css="body"):
        return self.driver.execute_script("const e = document.querySelector(arguments[0]); return e ? e.innerText : ''", css)

    def sees(self, text, css="body", within_s=WITHIN_S):
        wait_for(lambda: text in self.text(css), within_s, lambda: f"{text!r} in {css}: {self.text(css)[:2000]}")

    def misses(self, text, css="body"):
        wait_for(lambda: text not in self.text(css), WITHIN_S, lambda: f"no {text!r} in {css}: {self.text(css)[:2000]}")

    def button(self, text, within="body"):
        """The button or link whose text or label begins with this."""
        script = """
          const within = [...document.querySelectorAll(arguments[1])].pop() ?? document;
          const name = (e) => (e.getAttribute("aria-label") ?? e.innerText ?? "").trim();
          return [...within.querySelectorAll("button, a, summary")].find((e) => name(e).startsWith(arguments[0]) && e.offsetParent !== null) ?? null"""
        return wait_for(lambda: self.driver.execute_script(script, text, within), WITHIN_S,
                        lambda: f"a button {text!r} in {within}: {self.text()[:2000]}")

    # Doing

    def click(self, text, within="body"):
        def try_it():
            from selenium.common.exceptions import WebDriverException

            element = self.button(text, within)
            try:
                self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
                if not element.is_enabled():
                    return False
                element.click()
                return True
            except WebDriverException:  # it moved, or was drawn again
                return False

        wait_for(try_it, WITHIN_S, f"a click on {text!r}")

    def type(self, css, text, clear=True):
        from selenium.webdriver.common.keys import Keys

        element = self.find(css)
        wait_for(element.is_displayed, WITHIN_S, f"{css} to be seen")  # a dialog opens a moment after it is made
        if clear:
            element.send_keys(Keys.CONTROL, "a")
            element.send_keys(Keys.DELETE)
        element.send_keys(text)
        return element

    def set(self, css, value):
        """For inputs that take no typing: dates, selects and sliders."""
        self.driver.execute_script("""
          const e = arguments[0];
          Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e), "value").set.call(e, arguments[1]);
          e.dispatchEvent(new Event("input", {bubbles: true}));
          e.dispatchEvent(new Event("change", {bubbles: true}));""", self.find(css), value)

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        chain = ActionChains(self.driver)
        for key in keys:
            chain.send_keys(key)
        chain.perform()

    def drawn(self, css):
        """A chart that has its size, in the middle of the window."""
        element = wait_for(lambda: self.in_page("const e = document.querySelector(arguments[0]); return e?.style.width ? e : null", css), WITHIN_S, css)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        return element

    def drag(self, css, from_share, to_share):
        """Over an element from left to right, by shares of its width."""
        from selenium.webdriver.common.action_chains import ActionChains

        element = self.drawn(css)
        width = element.size["width"]
        at = lambda share: int(width * (share - 0.5))  # selenium counts from the middle
        chain = ActionChains(self.driver, duration=50)
        chain.move_to_element_with_offset(element, at(from_share), 0).click_and_hold()
        chain.move_to_element_with_offset(element, at((from_share + to_share) / 2), 0)
        chain.move_to_element_with_offset(element, at(to_share), 0).release().perform()

    def operate(self, confirm, within_s=WITHIN_S):
        """From an open dialog of an action: the dry run, the confirmation that names the count, and the outcomes."""
        self.click("Dry run", "dialog[open]")
        self.sees("Nothing was changed", "dialog[open]")
        self.click(confirm, "dialog[open]")
        return self.outcomes(within_s)

    def outcomes(self, within_s=WITHIN_S):
        self.find("dialog[open] .operation")
        wait_for(lambda: self.text("dialog[open] .dialog-foot .primary") == "Done", within_s, lambda: f"the end of {self.text('dialog[open]')}")
        outcomes = {}
        for row in self.all("dialog[open] .outcomes tr"):
            jobs = int(row.find_element("css selector", "td").text.replace(",", ""))
            outcomes[row.get_attribute("data-outcome")] = outcomes.get(row.get_attribute("data-outcome"), 0) + jobs
        return outcomes

    def click_at(self, css, share):
        """Into an element, at this share of its width."""
        from selenium.webdriver.common.action_chains import ActionChains

        element = self.drawn(css)
        offset = int(element.size["width"] * (share - 0.5))
        ActionChains(self.driver, duration=50).move_to_element_with_offset(element, offset, 0).click().perform()

    def export(self, within="body"):
        """What the button in there writes into a file."""
        self.in_page("""window.saved = []; const make = URL.createObjectURL;
          URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); URL.createObjectURL = make; return make(blob); }""")
        self.click("Export", within)
        self.click("Save", "dialog[open]")
        return wait_for(lambda: self.in_page("return window.saved[0]"), WITHIN_S, "the file")

    # Looking closer

    def axe(self):
        """What axe-core finds that is serious or critical."""
        self.driver.execute_script(AXE.read_text())
        found = self.driver.execute_async_script("""
          const done = arguments[arguments.length - 1];
          axe.run(document, {resultTypes: ["violations"]}).then((result) => done(result.violations), (error) => done([{id: String(error), impact: "critical", nodes: []}]))""")
        return [(each["id"], each["help"] if "help" in each else "", [node["html"][:200] for node in each["nodes"][:3]])
                for each in found if each["impact"] in ("serious", "critical")]

    def complaints(self):
        """What the browser logged: exceptions, and what the content security policy refused."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING") and not any(text in entry["message"] for text in EXPECTED)]

    def in_page(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def in_page_from_the_start(self, script):
        """Runs it in each page that is opened from now on, before the page's own scripts."""
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})


def bury(client, server, topic, reasons, prefix="dead"):
    """Dead letters with these reasons, one each."""
    client.put(server.topic(topic), json={})
    for first in range(0, len(reasons), 10_000):
        jobs = [{"id": f"{prefix}-{i}", "payload": json.dumps({"n": i})} for i in range(first, min(first + 10_000, len(reasons)))]
        answer = client.post(server.topic(topic) + "/jobs", json={"jobs": jobs})
        assert answer.status_code == 201, answer.text
    left = list(reasons)
    while left:
        jobs = client.post(server.topic(topic) + "/reserve", json={"max": 5000, "wait_ms": 5000}).json()["jobs"]
        assert jobs
        by_reason = {}
        for job in jobs:
            by_reason.setdefault(left.pop(), []).append(job["token"])
        for reason, tokens in by_reason.items():
            answer = client.post(server.topic(topic) + "/nack", json={"tokens": tokens, "dead": True, "reason": reason})
            assert answer.status_code == 200, answer.text


def figures(client, server, topic):
    return client.get(server.topic(topic)).json()["figures"]


def tokens_of(file, **flags):
    """Access tokens by name, made with these flags."""
    made = {}
    for name, own in flags.items():
        done = run("tocsin", "token", "create", "--file", file, "--name", name, *own)
        assert done.returncode == 0, done.stderr
        made[name] = done.stdout.strip()
    return made


class Relay:
    """Hands bytes on between the browser and a server, until its connections are cut."""

    def __init__(self, server):
        self.to = ("127.0.0.1", server.port)
        self.lock, self.open = threading.Lock(), []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return  # closed
            far = socket.create_connection(self.to)
            with self.lock:
                self.open += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._hand_on, args=(source, sink), daemon=True).start()

    def _hand_on(self, source, sink):
        try:
            while piece := source.recv(65536):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # cut

    def cut(self):
        """Ends every connection; new ones are taken."""
        with self.lock:
            cut, self.open = self.open, []
        for each in cut:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # ended already
            each.close()

    def close(self):
        self.listener.close()
        self.cut()
