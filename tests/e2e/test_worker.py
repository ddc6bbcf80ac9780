"""tocsin worker: a command for each due job, acked only after it ended with 0."""

import base64
import fcntl
import json
import os
import pty
import select
import signal
import socket
import subprocess
import termios
import threading
import time

import pytest

from conftest import BIN, DEADLINE_S, ENVIRONMENT, run, submit
from proxy import Proxy


class Worker:
    """One run of tocsin worker."""

    def __init__(self, server, *words, topic="t", environment=None, **options):
        self.process = subprocess.Popen(
            [BIN / "tocsin", "worker", topic, "--server", server.url, *map(str, words)],
            text=True, env=ENVIRONMENT | (environment or {}),
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})

    def await_line(self, words):
        """Reads its stderr up to a line with these words."""
        seen = []
        late = threading.Timer(DEADLINE_S, self.process.kill)
        late.start()
        try:
            for line in self.process.stderr:
                seen.append(line)
                if words in line:
                    return seen
        finally:
            late.cancel()
        raise AssertionError(f"never said {words!r}: {seen}")

    def signal(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)

    def stop(self):
        """Signals until it has ended: its exit status."""
        end = time.monotonic() + DEADLINE_S
        while True:
            self.signal()
            try:
                return self.process.wait(0.2)
            except subprocess.TimeoutExpired:
                assert time.monotonic() < end, "it does not end"

    def end(self):
        """Its exit status and what it said since."""
        out, err = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, out, err


@pytest.fixture
def work():
    workers = []

    def make(*arguments, **options):
        workers.append(Worker(*arguments, **options))
        return workers[-1]

    yield make
    for worker in workers:
        worker.process.kill()
        worker.process.communicate(timeout=DEADLINE_S)


def pipe(tmp_path, name):
    os.mkfifo(tmp_path / name)
    return tmp_path / name


def hear(fifo):
    """Waits until a command has written into it."""
    fd = os.open(fifo, os.O_RDWR)  # does not wait for the other side
    try:
        assert select.select([fd], [], [], DEADLINE_S)[0], f"nothing came through {fifo}"
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def await_extensions(client, server, id):
    """Waits until the lease has been extended for longer than it lasts, if that is a second."""
    deadlines = set()
    end = time.monotonic() + DEADLINE_S
    while len(deadlines) < 5:
        assert time.monotonic() < end, deadlines
        job = job_of(client, server, id)
        assert job["attempt"] <= 1, job
        if job["state"] == "leased":
            deadlines.add(job["lease_deadline_ms"])


def job_of(client, server, id, topic="t"):
    answer = client.get(f"{server.topic(topic)}/jobs/{id}")
    return answer.json() if answer.status_code == 200 else None


def figures(client, server, topic="t"):
    return client.get(server.topic(topic)).json()["figures"]


def test_the_payload_is_on_stdin_and_the_rest_in_the_environment(server, client, work, tmp_path):
    job = submit(client, server, id="order 1", key="k", payload="pay\nor cancel", headers={"trace-id": "abc", "x": "y z"},
                 max_attempts=7)
    status, _, err = work(
        server, "--once", "--", "sh", "-c", f"cat > {tmp_path}/payload; env > {tmp_path}/env; echo done >&2",
        environment={"TOCSIN_HEADER_OLD": "of an outer job"}).end()
    assert status == 0, err
    assert (tmp_path / "payload").read_text() == "pay\nor cancel"
    env = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    given = {name: value for name, value in env.items() if name.startswith("TOCSIN_") and name not in ENVIRONMENT}
    assert given == {"TOCSIN_JOB_ID": "order 1", "TOCSIN_TOPIC": "t", "TOCSIN_ATTEMPT": "1", "TOCSIN_MAX_ATTEMPTS": "7",
                     "TOCSIN_DUE_MS": str(job["due_ms"]), "TOCSIN_KEY": "k", "TOCSIN_HEADER_TRACE_ID": "abc",
                     "TOCSIN_HEADER_X": "y z"}
    assert "done\n" in err and "1 acked, 0 nacked" in err
    assert figures(client, server)["acked"] == 1


def test_bytes_reach_the_command_as_they_are_and_need_not_be_read(server, client, work, tmp_path):
    data = bytes(range(256)) * 1000
    for _ in range(2):
        submit(client, server, payload_base64=base64.b64encode(data).decode())
    assert work(server, "--once", "--", "sh", "-c", f"cat > {tmp_path}/payload").end()[0] == 0
    assert (tmp_path / "payload").read_bytes() == data
    assert work(server, "--once", "--", "true").end()[0] == 0
    assert figures(client, server)["acked"] == 2


def test_a_failed_command_nacks_with_its_last_words(server, client, work):
    submit(client, server, id="j", payload="p")
    submit(client, server, id="k", payload="p")
    script = 'echo first >&2; printf "no such\\torder\\n\\n" >&2; exit 3'
    status, _, err = work(server, "--once", "--retry-in", "1h", "--", "sh", "-c", script).end()
    assert status == 1
    assert "exit status 3" in err and "0 acked, 1 nacked" in err
    failed = next(job for job in (job_of(client, server, "j"), job_of(client, server, "k")) if job["attempt"] == 1)
    assert failed["state"] == "scheduled"
    assert failed["reason"] == "exit status 3: no such\\torder"
    work(server, "--once", "--", "sh", "-c", "kill -9 $$").end()
    reasons = [job_of(client, server, id)["reason"] for id in "jk"]
    assert "signal 9 (Killed)" in reasons


def test_the_last_attempt_makes_a_dead_letter(server, client, work):
    submit(client, server, id="j", payload="p", max_attempts=1)
    status, out, _ = work(server, "--once", "--json", "--", "false").end()
    assert status == 1
    assert '"outcome":"dead"' in out
    assert job_of(client, server, "j")["state"] == "dead"


def test_the_lease_is_extended_while_the_command_runs(server, client, work, tmp_path):
    gate = pipe(tmp_path, "gate")
    submit(client, server, id="j", payload="p")
    worker = work(server, "--once", "--lease", "1s", "--", "cat", gate)
    await_extensions(client, server, "j")
    gate.write_text("go\n")
    assert worker.end()[0] == 0
    assert figures(client, server)["acked"] == 1
    assert figures(client, server)["expired"] == 0


def test_a_signal_lets_the_running_command_finish_and_takes_no_more(server, client, work, tmp_path):
    gate, begun = pipe(tmp_path, "gate"), pipe(tmp_path, "begun")
    for id in "ab":
        submit(client, server, id=id, payload="p")
    worker = work(server, "--", "sh", "-c", f"echo > {begun}; cat {gate}")
    hear(begun)
    worker.signal()
    worker.await_line("taking no more jobs")
    gate.write_text("go\n")
    status, _, err = worker.end()
    assert status == 0
    assert "1 acked, 0 nacked" in err
    assert figures(client, server)["acked"] == 1 and figures(client, server)["scheduled"] == 1


def test_a_signal_ends_a_worker_that_waits(server, client, work):
    submit(client, server, id="a", payload="p")
    worker = work(server, "--", "true")
    worker.await_line("job a")
    worker.signal(signal.SIGINT)
    assert worker.end()[0] == 0


def test_a_second_signal_kills_the_command_and_nacks_its_job(server, client, work, tmp_path):
    gate, begun = pipe(tmp_path, "gate"), pipe(tmp_path, "begun")
    submit(client, server, id="a", payload="p")
    worker = work(server, "--retry-in", "1h", "--", "sh", "-c", f"echo > {begun}; cat {gate}; cat {gate}")
    hear(begun)
    worker.signal()
    worker.await_line("taking no more jobs")
    worker.signal()
    status, _, err = worker.end()
    assert status == 0
    assert "0 acked, 1 nacked" in err
    job = job_of(client, server, "a")
    assert (job["state"], job["attempt"]) == ("scheduled", 1)
    assert job["reason"].startswith("killed, because the worker was stopped")


def test_so_many_commands_run_at_once(server, client, work, tmp_path):
    for id in "abcd":
        submit(client, server, id=id, payload="p")
    # Each waits until all four have begun.
    script = f'touch {tmp_path}/$TOCSIN_JOB_ID; until [ "$(ls {tmp_path} | wc -l)" -ge 4 ]; do :; done'
    status, _, err = work(server, "--concurrency", "4", "--max-jobs", "4", "--", "sh", "-c", script).end()
    assert status == 0, err
    assert figures(client, server)["acked"] == 4


def test_the_worker_waits_for_a_server_that_restarts(start, client, work, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
    server = start(listen=listen)
    submit(client, server, id="a", payload="p")
    worker = work(server, "--", "true")
    worker.await_line("job a")
    server.kill()
    server.process.returncode = -9
    worker.await_line("trying again until it works")
    server = start(listen=listen)
    submit(client, server, id="b", payload="p")
    said = worker.await_line("job b")
    assert len([line for line in said if "trying again" in line]) == 0
    assert any("answers again" in line for line in said)
    worker.signal()
    assert worker.end()[0] == 0


def test_a_lost_answer_to_an_ack_is_told_as_what_it_is(server, client, work):
    submit(client, server, id="a", payload="p")
    seen = []

    def cut(_, path):
        seen.append(path.rsplit("/", 1)[1])
        return "after" if seen.count("ack") == 1 and seen[-1] == "ack" else None

    proxy = Proxy(server, cut)
    status, _, err = work(proxy, "--once", "--", "true").end()
    proxy.close()
    assert status == 1
    assert "an answer was lost, so it is done or delivered again" in err
    assert seen.count("ack") == 2
    assert figures(client, server)["acked"] == 1


def test_a_topic_that_is_not_there_yet_is_waited_for(server, client, work):
    worker = work(server, "--once", "--wait", "1s", "--", "true", topic="later")
    while client.get(server.url + "/v1/stats").json()["connections"] < 2:
        pass
    submit(client, server, topic="later", payload="p")
    assert worker.end()[0] == 0
    assert figures(client, server, "later")["acked"] == 1


def test_a_job_is_not_lost_when_the_worker_dies(start, client, work, tmp_path):
    server = start("--clock", "virtual")
    gate, begun = pipe(tmp_path, "gate"), pipe(tmp_path, "begun")
    submit(client, server, id="a", payload="p")
    worker = work(server, "--", "sh", "-c", f"echo > {begun}; exec cat {gate}")
    hear(begun)
    worker.process.kill()
    assert job_of(client, server, "a")["state"] == "leased"
    for _ in range(2):  # the lease, then the back-off
        client.post(server.url + "/v1/clock/advance", json={"ms": 120_000})
    assert work(server, "--once", "--", "true").end()[0] == 0
    assert figures(client, server)["acked"] == 1


def test_a_program_that_cannot_be_started_ends_the_worker(server, client, work, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    submit(client, server, id="a", payload="p")
    status, _, err = work(server, "--", broken).end()
    assert status == 3
    assert f"cannot start {broken}" in err
    assert f"cannot start {broken}" in job_of(client, server, "a")["reason"]


@pytest.mark.parametrize("program", ["no-such-program-here", "/tmp"])
def test_a_program_that_is_none_costs_no_attempt(server, client, work, program):
    submit(client, server, id="a", payload="p")
    status, _, err = work(server, "--", program).end()
    assert status == 2
    assert program in err
    assert job_of(client, server, "a")["attempt"] == 0


def test_an_error_that_waiting_does_not_heal_ends_it(start, client, work, tmp_path):
    file = tmp_path / "tokens"
    assert run("tocsin", "token", "create", "--file", file, "--name", "n", "--scope", "submit").returncode == 0
    status, _, err = work(start("--auth-token-file", file), "--", "true").end()
    assert status == 3
    assert "unauthenticated" in err


@pytest.mark.parametrize("flags", [["--lease", "10ms"], ["--concurrency", "0"], ["--once", "--max-jobs", "2"]])
def test_wrong_flags(shared_server, work, flags):
    assert work(shared_server, *flags, "--", "true").end()[0] == 2


def test_a_command_that_says_much_is_still_watched(server, client, work):
    submit(client, server, id="a", payload="p")
    worker = work(server, "--lease", "1s", "--", "sh", "-c", "exec cat /dev/zero >&2", stderr=subprocess.DEVNULL)
    await_extensions(client, server, "a")
    assert figures(client, server)["expired"] == 0
    assert worker.stop() == 0


def test_what_a_command_leaves_behind_is_not_waited_for(server, client, work):
    submit(client, server, id="a", payload="p")
    worker = work(server, "--once", "--", "sh", "-c", "cat /dev/zero >&2 & exit 0", stderr=subprocess.DEVNULL)
    assert worker.end()[0] == 0
    assert figures(client, server)["acked"] == 1


def test_a_stderr_that_nobody_reads_costs_no_lease(server, client, work, tmp_path):
    gate = pipe(tmp_path, "gate")
    for id in "ab":
        submit(client, server, id=id, payload="p")
    script = f'if [ $TOCSIN_JOB_ID = a ]; then exec cat /dev/zero >&2; else cat {gate}; fi'
    worker = work(server, "--lease", "1s", "--concurrency", "2", "--", "sh", "-c", script)
    for id in "ab":
        await_extensions(client, server, id)
    gate.write_text("go\n")
    end = time.monotonic() + DEADLINE_S
    while figures(client, server)["acked"] < 1:
        assert time.monotonic() < end
    assert figures(client, server)["expired"] == 0
    assert worker.stop() == 0


@pytest.mark.parametrize("closed", ["2>/dev/full", "2>&-"])
def test_messages_that_cannot_be_written_end_nothing(server, client, closed):
    submit(client, server, id="a", payload="p")

    def tocsin(*words):
        call = ["sh", "-c", f'exec "$@" {closed}', "sh", BIN / "tocsin", *words, "--server", server.url]
        return subprocess.run(call, timeout=DEADLINE_S, stdout=subprocess.PIPE, env=ENVIRONMENT).returncode

    assert tocsin("get", "t", "b") == 1
    assert tocsin("get", "t", "a", "b") == 2
    assert tocsin() == 2
    assert subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", BIN / "tocsin", "worker", "t", "--once", "--server",
                           server.url, "--", "sh", "-c", "echo x >&2"], timeout=DEADLINE_S,
                          env=ENVIRONMENT).returncode == 0
    assert figures(client, server)["acked"] == 1


def test_with_json_stdout_has_nothing_else(server, client, work):
    for id in "ab":
        submit(client, server, id=id, payload="p")
    status, out, err = work(server, "--json", "--max-jobs", "2", "--", "sh", "-c", "printf said").end()
    assert status == 0
    assert {json.loads(line)["id"] for line in out.splitlines()} == {"a", "b"}
    assert err.count("said") == 2


def test_json_that_cannot_be_written_ends_it(server, client, work):
    submit(client, server, id="a", payload="p")
    with open("/dev/full", "wb") as full:
        status, _, err = work(server, "--json", "--", "true", stdout=full).end()
    assert status == 3
    assert "cannot write the output" in err


def test_a_command_cannot_wait_for_the_terminal(server, client, work):
    submit(client, server, id="a", payload="p")
    leader, follower = pty.openpty()
    worker = work(server, "--once", "--", "sh", "-c", "cat < /dev/tty", start_new_session=True,
                  preexec_fn=lambda: fcntl.ioctl(follower, termios.TIOCSCTTY, 0))
    status, _, err = worker.end()
    os.close(leader)
    os.close(follower)
    assert status == 1
    assert "/dev/tty" in err


@pytest.mark.parametrize("call, command", [("ack", "true"), ("nack", "false")])
def test_a_second_signal_breaks_off_a_call_that_hangs(server, client, work, call, command):
    submit(client, server, id="a", payload="p")
    arrived, released = threading.Event(), threading.Event()

    def hang(_, path):
        if not path.endswith(call):
            return None
        arrived.set()
        released.wait(2 * DEADLINE_S)
        return "before"

    proxy = Proxy(server, hang)
    worker = work(proxy, "--timeout", "1h", "--lease", "1h", "--", command)
    assert arrived.wait(DEADLINE_S)
    worker.signal()
    worker.await_line("taking no more jobs")
    worker.signal()
    status, _, err = worker.end()
    released.set()
    proxy.close()
    assert status == 0
    assert "1 unsettled" in err


def test_a_proxy_that_cannot_reach_the_server_is_waited_out(server, client, work):
    submit(client, server, id="a", payload="p")
    proxy = Proxy(server, lambda number, _: {1: 502, 2: 503, 3: 504}.get(number))
    worker = work(proxy, "--once", "--", "true")
    worker.await_line("trying again")
    status, _, err = worker.end()
    proxy.close()
    assert status == 0, err
    assert figures(client, server)["acked"] == 1
