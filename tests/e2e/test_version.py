"""One version: CMakeLists.txt states it, and whatever shows a version shows that one."""

import re
import subprocess

from conftest import BIN, ROOT


def declared():
    return re.search(r"^project\(tocsin VERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)


def test_the_programs_say_it():
    for program in ("tocsind", "tocsin"):
        printed = subprocess.run([BIN / program, "--version"], capture_output=True, text=True, check=True).stdout
        assert printed == f"{program} {declared()}\n"


def test_the_api_says_it(server, client):
    assert client.get(server.url + "/v1/openapi.json").json()["info"]["version"] == declared()
    assert client.get(server.url + "/v1/stats").json()["version"] == declared()


def test_the_changelog_begins_with_it():
    newest = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.M).group(1)
    assert newest.split(" - ")[0] in (declared(), f"Unreleased ({declared()})")
