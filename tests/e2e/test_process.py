"""Starting, stopping and the command line of tocsind."""

import signal
import socket
import threading

import httpx
import pytest

from conftest import DEADLINE_S, Server, ack, await_metric, reserve, run, submit


def test_help_and_version():
    done = run("tocsind", "--help")
    assert done.returncode == 0
    assert "--http-listen" in done.stdout
    assert run("tocsind", "--version").returncode == 0
    assert run("tocsin", "--help").returncode == 0
    assert run("tocsin", "--version").stdout.startswith("tocsin ")


def test_config_check(tmp_path):
    good = tmp_path / "good.toml"
    good.write_text('data_dir = "x"\n[http]\nlisten = "127.0.0.1:0"\n')
    assert run("tocsind", "--config", good, "--config-check").returncode == 0
    bad = tmp_path / "bad.toml"
    bad.write_text("[http]\nlistn = 7\n")
    done = run("tocsind", "--config", bad, "--config-check")
    assert done.returncode == 2
    assert "http.listn" in done.stderr
    assert "http.listen" in done.stderr


@pytest.mark.parametrize("flags", [["--nonsense"], ["--shards", "-1"], ["--clock", "wrong"], ["--http-listen", "here"]])
def test_wrong_flags_end_with_2(tmp_path, flags):
    done = run("tocsind", "--data-dir", tmp_path / "data", *flags)
    assert done.returncode == 2
    assert flags[0].lstrip("-").split("-")[0] in done.stderr
    assert not (tmp_path / "data").exists()


def test_an_address_that_others_can_reach_is_refused(tmp_path):
    flags = ["--data-dir", tmp_path / "data", "--http-listen", "0.0.0.0:0"]
    done = run("tocsind", *flags)
    assert done.returncode == 2
    assert "authentication" in done.stderr
    check = run("tocsind", *flags, "--config-check")
    assert (check.returncode, check.stderr) == (2, done.stderr)


def test_ipv6(start, client):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    server = start(listen="[::1]:0")
    assert server.url.startswith("http://[::1]:")
    assert client.get(server.url + "/healthz").status_code == 200


def test_a_busy_port_is_refused(server, tmp_path):
    done = run("tocsind", "--data-dir", tmp_path / "other", "--http-listen", f"127.0.0.1:{server.port}")
    assert done.returncode == 1
    assert f"127.0.0.1:{server.port} is in use" in done.stderr


def test_a_second_server_on_the_folder_is_refused(server, client):
    done = run("tocsind", "--data-dir", server.folder, "--http-listen", "127.0.0.1:0")
    assert done.returncode == 1
    assert str(server.folder) in done.stderr
    assert client.get(server.url + "/healthz").status_code == 200


def test_a_second_server_is_refused_also_when_the_lock_file_is_removed(server, client):
    (server.folder / "LOCK").unlink()
    for program in (["tocsind", "--data-dir", server.folder, "--http-listen", "127.0.0.1:0"],
                    ["tocsin", "journal", "verify", server.folder]):
        done = run(*program)
        assert done.returncode in (1, 3)
        assert f"{server.folder} is in use by" in done.stderr
    assert client.get(server.url + "/healthz").status_code == 200


def test_the_banner_says_what_is_where(start):
    server = start(terminal=True)
    text = "".join(server.banner)
    assert text.startswith("tocsind ")
    assert str(server.folder) in text
    assert server.url in text


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_graceful_stop_keeps_everything(start, client, sig):
    server = start()
    ids = {submit(client, server, delay_ms=i, payload=str(i))["id"] for i in range(50)}
    assert server.stop(sig) == 0
    again = start()
    seen = set()
    while seen != ids:
        jobs = reserve(client, again, max=100, wait_ms=20000)
        assert jobs
        ack(client, again, *jobs)
        seen |= {job["id"] for job in jobs}


def test_a_stop_answers_long_polls(start, client):
    server = start()
    answers = []
    waiting = threading.Thread(
        target=lambda: answers.append(httpx.post(server.topic("t") + "/reserve", json={"wait_ms": 50000}, timeout=60))
    )
    waiting.start()
    await_metric(client, server, "tocsin_http_parked", 1)
    assert server.stop() == 0
    waiting.join(DEADLINE_S)
    assert answers[0].json() == {"jobs": []}


def test_stopped_while_nothing_was_ever_served(tmp_path):
    assert Server(tmp_path / "data").stop() == 0
