"""tocsin watch: blocks in a pipe, in place on a terminal."""

import json
import os
import pty
import signal
import socket
import subprocess
import time

from conftest import BIN, DEADLINE_S, ENVIRONMENT, ack, reserve, run, submit


def watch(server, *words):
    return subprocess.Popen([BIN / "tocsin", "watch", "--server", server.url, *words], text=True, env=ENVIRONMENT,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_block_for_each_look_in_a_pipe(server, client):
    submit(client, server, topic="orders", payload="p", delay_ms=1_000_000)
    submit(client, server, topic="mail", payload="p")
    done = run("tocsin", "watch", "--server", server.url, "--interval", "10ms", "--count", "2")
    assert done.returncode == 0, done.stderr
    blocks = done.stdout.strip().split("\n\n")
    assert len(blocks) == 2
    for block in blocks:
        head, *rows = [line.split() for line in block.splitlines()]
        assert head[:5] == ["TOPIC", "SCHEDULED", "READY", "LEASED", "DEAD"]
        assert [row[:5] for row in rows] == [["mail", "1", "1", "0", "0"], ["orders", "1", "0", "0", "0"]]
    assert blocks[0].splitlines()[1].split()[-1] == "-"  # no rate yet
    assert blocks[1].splitlines()[1].split()[-1] == "0"
    assert "\x1b" not in done.stdout


def test_rates_are_those_since_the_look_before(server, client):
    client.put(server.topic("t"), json={})
    process = watch(server, "t", "--json", "--interval", "100ms")
    first = json.loads(process.stdout.readline())
    assert first["accepted_per_s"] is None
    for _ in range(5):
        submit(client, server, payload="p")
    jobs = reserve(client, server, max=2)
    ack(client, server, *jobs)
    seen = {"accepted": 0.0, "delivered": 0.0, "acked": 0.0}
    end = time.monotonic() + DEADLINE_S
    while not all(seen.values()):
        assert time.monotonic() < end
        line = json.loads(process.stdout.readline())
        for name in seen:
            seen[name] = max(seen[name], line[f"{name}_per_s"])
    assert (line["scheduled"], line["leased"]) == (3, 0)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0


def test_a_server_that_goes_away_is_told_and_waited_for(start, client):
    server = start()
    submit(client, server, payload="p")
    process = watch(server, "--interval", "10ms")
    process.stdout.readline()
    assert server.stop() == 0
    for line in process.stderr:
        if "cannot reach" in line:
            break
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 3


def test_a_signal_breaks_off_a_call_that_hangs(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(DEADLINE_S)
        process = subprocess.Popen([BIN / "tocsin", "watch", "--server", f"http://127.0.0.1:{silent.getsockname()[1]}",
                                    "--timeout", "1h"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
        asked, _ = silent.accept()
        assert asked.recv(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)
        asked.close()
    assert process.returncode == 0


def test_numbers_in_json_are_plain(server, client):
    submit(client, server, payload="p")
    ack(client, server, *reserve(client, server))
    done = run("tocsin", "watch", "--server", server.url, "--json", "--interval", "10ms", "--count", "2")
    first, second = done.stdout.splitlines()
    assert '"acked_per_s":0' in second and "E" not in second
    late = client.get(server.topic("t")).json()["lateness_ms"]["p99"]
    assert json.loads(first)["lateness_p99_ms"] == late


def test_a_terminal_is_given_back_as_it_was(server, client):
    submit(client, server, topic="orders", payload="p")
    main, side = pty.openpty()
    process = subprocess.Popen([BIN / "tocsin", "watch", "--server", server.url, "--interval", "10ms"],
                               stdin=side, stdout=side, stderr=side, env=ENVIRONMENT, start_new_session=True)
    os.close(side)
    shown = b""
    while shown.count(b"\x1b[H\x1b[J") < 3:
        shown += os.read(main, 4096)
    process.send_signal(signal.SIGINT)
    try:
        while part := os.read(main, 4096):
            shown += part
    except OSError:  # the other side is closed
        pass
    assert process.wait(DEADLINE_S) == 0
    os.close(main)
    assert shown.startswith(b"\x1b[?1049h\x1b[?25l")
    assert shown.endswith(b"\x1b[?25h\x1b[?1049l")
    assert b"orders" in shown


def test_without_a_server_it_ends(tmp_path):
    done = run("tocsin", "watch", "--server", "http://127.0.0.1:1")
    assert done.returncode == 3


def test_no_topics_and_wrong_flags(start):
    server = start()
    assert run("tocsin", "watch", "--server", server.url, "--count", "1").stdout == "no topics yet\n\n"
    assert run("tocsin", "watch", "--server", server.url, "--interval", "1ms").returncode == 2
    assert run("tocsin", "watch", "--server", server.url, "--interval", "4294967296ms").returncode == 2
    assert run("tocsin", "watch", "--server", server.url, "nothing").returncode == 1
