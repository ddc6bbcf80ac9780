"""tocsin demo: the story is true, and leaves nothing behind."""

import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess

from conftest import BIN, DEADLINE_S, ENVIRONMENT


def demo(tmp_path, program=BIN / "tocsin", **more):
    return subprocess.run([program, "demo"], capture_output=True, text=True, timeout=DEADLINE_S,
                          env=ENVIRONMENT | {"TMPDIR": str(tmp_path)} | more)


def test_without_a_folder_for_temporary_files(tmp_path):
    done = demo(tmp_path / "none")
    assert done.returncode == 3
    assert "TMPDIR" in done.stderr


def servers(tmp_path):
    """Processes that run with this folder."""
    return [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path).encode() in read(path)]


def read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def test_the_story(tmp_path):
    # Settings meant for another server must not reach this one.
    done = demo(tmp_path, TOCSIN_SERVER="http://127.0.0.1:1", TOCSIN_CLOCK="real", TOCSIN_DATA_DIR="/nowhere")
    assert done.returncode == 0, done.stderr
    text = done.stdout
    for words in ("order-1: cancel answers cancelled", "jobs recovered: 3",
                  "00:29:59.999  a millisecond before", "00:30:00  order-5 is handed to a worker",
                  "cancel answers in_flight", "ben joins: repeated, 1 to go", "cem joins: fired, 0 to go",
                  "day 7 00:30:00  both receipts are confirmed"):
        assert words in text
    sums = re.search(r"recovered (\d+) \+ accepted (\d+) = (.*)", text)
    assert int(sums[1]) + int(sums[2]) == sum(map(int, re.findall(r"\d+", sums[3]))) == 6
    assert "\x1b" not in text and done.stderr == ""
    assert list(tmp_path.iterdir()) == []
    assert servers(tmp_path) == []


def test_an_interrupted_story_is_cleaned_up_too(tmp_path):
    main, side = pty.openpty()  # on a terminal it takes its time
    process = subprocess.Popen([BIN / "tocsin", "demo"], stdin=side, stdout=side, stderr=side, start_new_session=True,
                               env=ENVIRONMENT | {"TMPDIR": str(tmp_path)})
    os.close(side)
    text = b""
    while b"order-2 is placed" not in text:
        text += os.read(main, 4096)
    assert servers(tmp_path) != []
    process.send_signal(signal.SIGINT)
    try:
        while part := os.read(main, 4096):
            text += part
    except OSError:  # the other side is closed
        pass
    os.close(main)
    assert process.wait(DEADLINE_S) == 3
    assert b"interrupted" in text
    assert list(tmp_path.iterdir()) == []
    assert servers(tmp_path) == []


def test_without_a_server_program_it_says_so(tmp_path):
    shutil.copy(BIN / "tocsin", tmp_path / "tocsin")
    done = demo(tmp_path, tmp_path / "tocsin")
    assert done.returncode == 1
    assert "tocsind is missing" in done.stderr
