"""How the files of the dashboard are served: headers, caching, redirects, and the cookie of a session. What the page does is
in test_dashboard_*.py."""

import os
import pathlib
import re
import shutil
import subprocess
from urllib.parse import urljoin

import httpx
import pytest
from conftest import DEADLINE_S, ROOT
from test_auth import create

COMPILE_S = 120
PAGE = {"Accept": "text/html,application/xhtml+xml"}
HEADERS = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}


@pytest.fixture(name="page")
def _page(shared_server):
    with httpx.Client(base_url=shared_server.url) as client:
        if client.get("/ui/").status_code == 404:
            pytest.skip("this server was built without the dashboard")
        yield client


def script_of(page):
    return re.search(r'<script type="module" src="([^"]+)"', page.get("/ui/").text)[1]


@pytest.mark.parametrize("path, status", [("/ui/", 200), ("/ui", 302), ("/ui/no-such-file.js", 404), ("/ui/a/b", 404), ("/", 302)])
def test_every_answer_protects_the_page(page, path, status):
    answer = page.get(path, headers=PAGE)
    assert answer.status_code == status
    assert HEADERS.items() <= dict(answer.headers).items()
    policy = dict(each.strip().split(" ", 1) for each in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in str(policy)


def test_a_person_is_led_to_the_page_and_a_program_to_the_api(page):
    answer = page.get("/", headers=PAGE)
    assert urljoin(str(page.base_url), answer.headers["location"]).endswith("/ui/") and answer.headers["vary"] == "Accept"
    assert urljoin("http://proxy/tocsin/", answer.headers["location"]) == "http://proxy/tocsin/ui/"
    for accept in ("*/*", "application/json"):
        assert page.get("/", headers={"Accept": accept}).json()["name"] == "tocsin"


def test_files_are_kept_by_the_browser_and_the_page_is_asked_for(page):
    index = page.get("/ui/")
    assert index.headers["content-type"] == "text/html; charset=utf-8" and index.headers["cache-control"] == "no-cache"
    again = page.get("/ui/", headers={"If-None-Match": index.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    script = page.get("/ui/" + script_of(page))
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    plain = page.get("/ui/" + script_of(page), headers={"Accept-Encoding": "identity"})
    assert script.headers["content-encoding"] == "gzip" and plain.content == script.content


def test_a_session_is_a_cookie_that_other_pages_cannot_use(page, start, tmp_path):
    token = create(tmp_path / "tokens", "--scope", "admin")
    server = start("--auth-token-file", tmp_path / "tokens")
    own = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    with httpx.Client(base_url=server.url) as client:
        refused = client.post("/v1/session", json={"token": token + "x"}, headers=own)
        assert refused.status_code == 401 and "set-cookie" not in refused.headers
        begun = client.post("/v1/session", json={"token": token}, headers=own)
        assert begun.status_code == 200 and token not in begun.text
        marks = {each.strip().lower() for each in begun.headers["set-cookie"].split(";")[1:]}
        assert marks == {"path=/", "httponly", "samesite=strict"}
        assert client.get("/v1/stats").status_code == 200
        for other in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
            answer = client.put("/v1/topics/t", json={}, headers=other)
            assert answer.status_code == 403, other
        assert client.put("/v1/topics/t", json={}, headers=own).status_code in (200, 201)
        ended = client.delete("/v1/session", headers=own)
        assert "max-age=0" in ended.headers["set-cookie"].lower()
        assert client.get("/v1/stats").status_code == 401


def test_a_build_without_the_dashboard_needs_neither_node_nor_npm(tmp_path):
    if shutil.which("cmake") is None or shutil.which("ninja") is None:
        pytest.skip("cmake or ninja is missing")
    tools = tmp_path / "bin"  # a PATH on which there is no node
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in pathlib.Path(folder).iterdir():
            if program.name not in ("node", "nodejs", "npm", "npx") and not (tools / program.name).exists():
                (tools / program.name).symlink_to(program)
    environment = {**os.environ, "PATH": str(tools)}
    build = tmp_path / "build"
    configure = ["cmake", "--preset", "release", "-B", build, "-DTOCSIN_UI=OFF"]
    subprocess.run(configure, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=DEADLINE_S)
    names = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], env=environment, check=True, capture_output=True, text=True,
                           timeout=DEADLINE_S).stdout
    assert "ui_files" not in names
    [differs] = re.findall(r"^(\S*ui_none\.cc\.o): ", names, re.MULTILINE)
    subprocess.run(["ninja", "-C", build, differs], env=environment, check=True, capture_output=True, text=True, timeout=COMPILE_S)
