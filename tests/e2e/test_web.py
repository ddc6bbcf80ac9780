"""The unit tests of the dashboard (web/test), each with its own result."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT
from dashboard import PACKAGES_S

RESULT = re.compile(r"^(ok|not ok) \d+ - (.*)$", re.MULTILINE)


@pytest.fixture(scope="module", name="told")
def _told():
    """What node's test runner says."""
    if shutil.which("node") is None:
        pytest.skip("node is missing")
    subprocess.run([ROOT / "tools/web_packages.sh"], check=True, timeout=PACKAGES_S)
    return subprocess.run(["node", "web/test.mjs"], cwd=ROOT, capture_output=True, text=True, timeout=PACKAGES_S)


def names():
    """Of the tests, as they stand in the files."""
    return [name for file in sorted((ROOT / "web/test").glob("*.test.ts")) for name in re.findall(r'^test\("(.*?)",', file.read_text(), re.MULTILINE)]


@pytest.mark.parametrize("name", names())
def test_of_the_dashboard(told, name):
    results = {found[2]: found[1] for found in RESULT.finditer(told.stdout)}
    assert results.get(name) == "ok", told.stdout + told.stderr


def test_all_of_them_are_run_and_pass(told):
    assert told.returncode == 0, told.stdout + told.stderr
    assert sorted(found[2] for found in RESULT.finditer(told.stdout)) == sorted(names())


def test_a_fetch_that_fails_says_why_and_how_to_build_without_the_dashboard(tmp_path):
    for folder in ("tools", "web", "bin"):
        (tmp_path / folder).mkdir()
    (tmp_path / "web/package-lock.json").write_text("{}")
    npm = tmp_path / "bin/npm"
    npm.write_text('#!/bin/sh\ncase "$*" in *silent*) ;; *) echo "no route to the registry" >&2 ;; esac\nexit 7\n')
    npm.chmod(0o755)
    script = shutil.copy(ROOT / "tools/web_packages.sh", tmp_path / "tools")
    done = subprocess.run([script], env={**os.environ, "PATH": f"{npm.parent}:{os.environ['PATH']}"}, capture_output=True, text=True, timeout=PACKAGES_S)
    assert done.returncode != 0
    assert "no route to the registry" in done.stderr and "npm could not fetch" in done.stderr and "-DTOCSIN_UI=OFF" in done.stderr
