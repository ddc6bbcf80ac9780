"""Damage in a data folder: found, named, and salvaged into a new folder."""

import re

import httpx
import pytest

from conftest import Server, ack, reserve, run, submit

JOBS = 200


@pytest.fixture
def folder(tmp_path, client):
    """A data folder with jobs that are far from due, closed cleanly."""
    server = Server(tmp_path / "data")
    for i in range(JOBS):
        submit(client, server, id=f"job-{i}", payload=f"payload-{i:04}-" + "x" * 100, delay_ms=3_600_000)
    assert server.stop() == 0
    return tmp_path / "data"


def flip(folder):
    """Flips one bit in the middle of what is stored; the file's name."""
    wanted = f"payload-{JOBS // 2:04}-".encode()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and wanted in (data := bytearray(path.read_bytes())):
            data[data.index(wanted) + 20] ^= 1
            path.write_bytes(data)
            return path.name
    raise AssertionError("no file holds the payload")


def contents(folder):
    """Every file but the lock, which names its last holder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "LOCK"}


def test_a_whole_folder_is_clean(folder):
    done = run("tocsin", "journal", "verify", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{JOBS} live" in done.stdout
    assert "no damage" in done.stdout


def test_damage_stops_the_start_and_is_repaired(folder, client):
    name = flip(folder)
    started = run("tocsind", "--data-dir", folder, "--http-listen", "127.0.0.1:0")
    assert started.returncode == 1
    assert name in started.stderr
    assert re.search(r"\d{3,}", started.stderr), "the offset is missing: " + started.stderr
    assert "tocsin journal" in started.stderr

    verified = run("tocsin", "journal", "verify", folder)
    assert verified.returncode == 1
    assert name in verified.stdout

    before = contents(folder)
    repaired = run("tocsin", "journal", "repair", folder)
    assert repaired.returncode == 1, repaired.stderr
    assert name in repaired.stdout
    assert contents(folder) == before

    output = folder.with_name(folder.name + ".repaired")
    assert str(output) in repaired.stdout
    assert run("tocsin", "journal", "verify", output).returncode == 0
    server = Server(output)
    cancelled = [
        client.delete(server.topic("t") + f"/jobs/job-{i}").json()["outcome"] == "cancelled" for i in range(JOBS)
    ]
    assert sum(cancelled) >= JOBS // 2 - 1, "what stands before the damage is kept"
    assert sum(cancelled) < JOBS, "what is damaged is left out"
    assert f"jobs lost: {JOBS - sum(cancelled)}" in repaired.stdout
    assert server.stop() == 0


def test_a_damaged_header_costs_no_job(folder, client):
    for path in folder.glob("*.segment"):
        data = bytearray(path.read_bytes())
        if b"payload-0000-" in data:
            data[20] ^= 1
            path.write_bytes(data)
    assert run("tocsind", "--data-dir", folder, "--http-listen", "127.0.0.1:0").returncode == 1
    repaired = run("tocsin", "journal", "repair", folder)
    assert repaired.returncode == 1, repaired.stderr
    assert f"{JOBS} live" in repaired.stdout
    assert "jobs lost: 0" in repaired.stdout
    server = Server(folder.with_name(folder.name + ".repaired"))
    assert client.get(server.topic("t")).json()["figures"]["scheduled"] == JOBS
    assert server.stop() == 0


def test_a_folder_that_has_lost_its_segments_is_refused(folder, client):
    for path in folder.glob("*.segment"):
        path.unlink()
    refused = run("tocsind", "--data-dir", folder, "--http-listen", "127.0.0.1:0")
    assert refused.returncode == 1
    assert "--new" in refused.stderr
    for flags in (["--new"], []):
        server = Server(folder, *flags)
        assert client.get(server.url + "/v1/topics").json()["topics"] == []
        assert server.stop() == 0


def test_repair_never_writes_into_a_folder_that_exists(folder, tmp_path):
    flip(folder)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("precious")
    done = run("tocsin", "journal", "repair", folder, "--output", tmp_path / "there")
    assert done.returncode == 3
    assert (tmp_path / "there" / "mine").read_text() == "precious"


def test_a_folder_in_use_is_left_alone(server, client):
    submit(client, server, payload="x")
    assert run("tocsin", "journal", "verify", server.folder).returncode == 3
    [job] = reserve(client, server, wait_ms=20000)
    assert ack(client, server, job) == ["ok"]


@pytest.mark.parametrize(
    "arguments",
    [[], ["journal"], ["journal", "verify"], ["journal", "mend", "x"], ["journal", "verify", "a", "b"], ["nonsense"],
     ["journal", "verify", "x", "--output", "y"], ["journal", "repair", "x", "--output"]],
)
def test_wrong_usage_ends_with_2(arguments):
    done = run("tocsin", *arguments)
    assert done.returncode == 2
    assert "usage" in done.stderr


def test_a_folder_that_is_not_there(tmp_path):
    assert run("tocsin", "journal", "verify", tmp_path / "none").returncode == 3
