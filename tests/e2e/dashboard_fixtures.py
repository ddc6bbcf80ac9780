"""Fixtures of the tests of the dashboard: a browser for each module, and a tab for each test."""

import dashboard as world
import pytest


@pytest.fixture(scope="module")
def browser():
    if why := world.why_not():
        pytest.skip(why)
    one = world.Browser()
    yield one
    one.close()


@pytest.fixture
def open_tab(browser):
    """Opens the dashboard of a server, in a browser that knows nothing of the tests before. At the end nothing may have
    been thrown, and nothing refused by the content security policy."""
    tabs = []

    def make(server, base=None):
        base = base or world.address(server)
        browser.driver.get("about:blank")
        browser.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": base, "storageTypes": "all"})
        browser.driver.delete_all_cookies()
        tabs.append(world.Dashboard(browser.driver, base))
        return tabs[-1]

    yield make
    complaints = tabs[-1].complaints() if tabs else []
    browser.driver.get("about:blank")
    assert complaints == []


@pytest.fixture
def block(browser):
    """Lets the browser fail to load these addresses."""
    browser.driver.execute_cdp_cmd("Network.enable", {})
    yield lambda *urls: browser.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": list(urls)})
    browser.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})


@pytest.fixture
def virtual(start):
    """A server whose clock only the test moves."""
    server = start("--clock", "virtual")
    server.virtual = True
    return server


@pytest.fixture
def tab(open_tab, server):
    """The dashboard of a server without access tokens."""
    return open_tab(server)
