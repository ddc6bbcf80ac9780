"""tocsin export and import: copies that are exact, that can be cut off, and that can be repeated."""

import base64
import fcntl
import json
import subprocess
import threading

import pytest

from conftest import BIN, DEADLINE_S, ENVIRONMENT, run, submit
from proxy import Proxy


def tocsin(server, *words, **options):
    return run("tocsin", words[0], "--server", server.url, *words[1:], **options)


def fill(client, server, topic, count, **job):
    jobs = [{"id": f"{topic}-{i}", "payload": f"p{i}", "delay_ms": 1_000_000 + i} | job for i in range(count)]
    assert client.post(server.topic(topic) + "/jobs", json={"jobs": jobs}).status_code == 201


def listed(client, server, topic, state="scheduled"):
    jobs, cursor = [], None
    while True:
        query = {"state": state, "limit": 1000} | ({"cursor": cursor} if cursor else {})
        page = client.get(server.topic(topic) + "/jobs", params=query).json()
        jobs += page["jobs"]
        cursor = page.get("cursor")
        if not cursor:
            return {job["id"]: job for job in jobs}


def accepted(client, server, topic):
    return client.get(server.topic(topic)).json()["figures"]["accepted"]


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_copy_on_another_server_is_the_same(start, client, tmp_path):
    one, other = start(folder=tmp_path / "one"), start(folder=tmp_path / "other")
    fill(client, one, "many", 2500)
    submit(client, one, "odd", payload="server's id", delay_ms=10_000_000)
    submit(client, one, "odd", id="k", key="the key", payload="p", delay_ms=10_000_000, headers={"a": "b"}, max_attempts=3)
    submit(client, one, "odd", id="bytes", payload_base64=base64.b64encode(b"\xff\x00").decode(), delay_ms=10_000_000)
    submit(client, one, "odd", id="count", payload="p", trigger="count", count=5)
    submit(client, one, "odd", id="either", payload="p", trigger="either", count=5, delay_ms=10_000_000)
    client.post(one.topic("odd") + "/jobs/count/count", json={"event": "e", "by": 2})
    done = tocsin(one, "export", "--all", "--output", tmp_path / "jobs")
    assert (done.returncode, done.stdout) == (0, f"exported 2505 jobs of 2 topics to {tmp_path}/jobs\n"), done.stderr
    assert not (tmp_path / "jobs.progress").exists()

    done = tocsin(other, "import", tmp_path / "jobs")
    assert (done.returncode, done.stdout) == (0, "2505 accepted, 0 duplicate, 0 conflict, 0 refused\n"), done.stderr
    for topic in ("many", "odd"):
        assert listed(client, other, topic) == listed(client, one, topic)
    assert not (tmp_path / "jobs.progress").exists()


def test_states_and_pipes(start, client):
    server = start("--clock", "virtual")
    submit(client, server, id="live", payload="p")
    submit(client, server, id="gone", payload="p", max_attempts=1)
    token = next(job["token"] for job in client.post(server.topic("t") + "/reserve", json={"max": 2}).json()["jobs"]
                 if job["id"] == "gone")
    client.post(server.topic("t") + "/nack", json={"tokens": [token], "reason": "no"})
    live = tocsin(server, "export", "t")
    assert [(job["id"], job["state"]) for job in map(json.loads, live.stdout.splitlines())] == [("live", "leased")]
    dead = tocsin(server, "export", "t", "--state", "dead")
    assert [job["id"] for job in map(json.loads, dead.stdout.splitlines())] == ["gone"]
    done = subprocess.run([BIN / "tocsin", "import", "--server", server.url, "--topic", "again", "--json"],
                          input=dead.stdout, text=True, capture_output=True, timeout=DEADLINE_S, env=ENVIRONMENT)
    assert json.loads(done.stdout) == {"accepted": 1, "duplicate": 0, "conflict": 0, "refused": 0, "refused_lines": []}
    assert list(listed(client, server, "again")) == ["gone"]


def test_an_export_that_was_cut_off_goes_on(start, client, tmp_path):
    server = start()
    fill(client, server, "t", 3500)
    file = tmp_path / "jobs"
    proxy = Proxy(server, lambda call, _: "before" if call >= 4 else None)  # the topic, then two pages
    cut = tocsin(proxy, "export", "t", "--output", file)
    proxy.close()
    assert cut.returncode == 3
    assert "--resume" in cut.stderr
    whole = len(lines_of(file))
    assert 0 < whole < 3500
    with file.open("a") as tail:
        tail.write('{"half a li')  # as of a run that was killed while it wrote
    assert tocsin(server, "export", "t", "--output", file).returncode == 2
    assert tocsin(server, "export", "t", "--state", "dead", "--output", file, "--resume").returncode == 2
    done = tocsin(server, "export", "t", "--output", file, "--resume")
    assert done.returncode == 0, done.stderr
    ids = [job["id"] for job in lines_of(file)]
    assert len(ids) == 3500 and len(set(ids)) == 3500
    assert tocsin(server, "export", "t", "--output", file, "--resume").returncode == 2


def test_a_place_that_the_server_forgot_is_told(start, client, tmp_path):
    server = start()
    fill(client, server, "t", 2500)
    file = tmp_path / "jobs"
    proxy = Proxy(server, lambda call, _: "before" if call >= 3 else None)
    assert tocsin(proxy, "export", "t", "--output", file).returncode == 3
    proxy.close()
    server.kill()
    server = start(folder=server.folder, listen=f"127.0.0.1:{server.port}")
    kept = file.read_bytes()
    done = tocsin(server, "export", "t", "--output", file, "--resume")
    assert done.returncode == 3
    assert "export again" in done.stderr and f"{file}.progress" in done.stderr
    assert file.read_bytes() == kept


def test_an_export_that_was_cut_off_before_its_first_page_goes_on(start, client, tmp_path):
    server = start()
    fill(client, server, "t", 5)
    file = tmp_path / "jobs"
    proxy = Proxy(server, lambda call, _: "before" if call >= 2 else None)
    assert tocsin(proxy, "export", "t", "--output", file).returncode == 3
    proxy.close()
    assert tocsin(server, "export", "t", "--output", file, "--resume").returncode == 0
    assert len(lines_of(file)) == 5
    file.write_text("")  # as of a run that was killed before it wrote anything
    done = tocsin(server, "export", "t", "--output", file, "--resume", "--json")
    assert json.loads(done.stdout) == {"jobs": 5, "topics": 1, "file": str(file)}
    assert len(lines_of(file)) == 5


def test_an_import_that_was_killed_goes_on_and_stores_nothing_twice(start, client, tmp_path):
    server = start()
    file = tmp_path / "jobs"
    file.write_text("".join(f'{{"topic":"t","payload":"p{i % 7}","delay_ms":1000000}}\n' for i in range(950)))
    # The fourth batch is stored, and nobody is told.
    stuck = threading.Event()
    mended = threading.Event()

    def cut(call, _):
        if call == 4:
            stuck.set()
        return "after" if call >= 4 and not mended.is_set() else None

    proxy = Proxy(server, cut)
    importer = subprocess.Popen([BIN / "tocsin", "import", "--server", proxy.url, "--batch", "100", file],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert stuck.wait(DEADLINE_S)
    while accepted(client, server, "t") < 400:
        pass
    importer.kill()
    importer.communicate(timeout=DEADLINE_S)
    mended.set()
    progress = json.loads((tmp_path / "jobs.progress").read_text())
    assert progress["line"] == 300
    done = tocsin(proxy, "import", "--batch", "100", file)
    proxy.close()
    assert done.returncode == 0, done.stderr
    assert "continuing after line 300" in done.stderr
    assert done.stdout == "850 accepted, 100 duplicate, 0 conflict, 0 refused\n"
    assert accepted(client, server, "t") == 950
    again = tocsin(server, "import", file)
    assert again.stdout == "0 accepted, 950 duplicate, 0 conflict, 0 refused\n"


def test_a_lost_answer_is_asked_for_again(start, client, tmp_path):
    server = start()
    file = tmp_path / "jobs"
    file.write_text("".join(f'{{"topic":"t","payload":"{i}"}}\n' for i in range(20)))
    proxy = Proxy(server, lambda call, _: "after" if call == 1 else None)
    done = tocsin(proxy, "import", "--batch", "10", file)
    proxy.close()
    assert (done.returncode, done.stdout) == (0, "10 accepted, 10 duplicate, 0 conflict, 0 refused\n"), done.stderr


def test_a_gateway_without_its_server_is_asked_again(start, tmp_path):
    server = start()
    file = tmp_path / "jobs"
    file.write_text('{"topic":"t","payload":"p"}\n')
    proxy = Proxy(server, lambda call, _: 502 if call == 1 else None)
    done = tocsin(proxy, "import", file)
    proxy.close()
    assert (done.returncode, done.stdout) == (0, "1 accepted, 0 duplicate, 0 conflict, 0 refused\n"), done.stderr


def test_a_full_topic_stops_an_import_and_keeps_its_place(server, client, tmp_path):
    assert client.put(server.topic("t"), json={"capacity_jobs": 15}).status_code in (200, 201)
    file = tmp_path / "jobs"
    file.write_text("".join(f'{{"id":"j{i}","topic":"t","payload":"p","delay_ms":1000000}}\n' for i in range(30)))
    done = tocsin(server, "import", "--batch", "10", file)
    assert (done.returncode, done.stdout) == (3, "")
    assert "over_capacity" in done.stderr and "the same command again" in done.stderr
    assert json.loads((tmp_path / "jobs.progress").read_text())["line"] == 10
    assert client.put(server.topic("t"), json={"capacity_jobs": 100}).status_code in (200, 201)
    done = tocsin(server, "import", "--batch", "10", file)
    assert done.returncode == 0, done.stderr
    assert len(listed(client, server, "t")) == 30


def test_a_place_belongs_to_one_file_one_server_and_one_topic(server, client, tmp_path):
    client.put(server.topic("t"), json={"capacity_jobs": 2})
    file, progress = tmp_path / "jobs", tmp_path / "jobs.progress"
    lines = "".join(f'{{"id":"j{i}","topic":"t","payload":"p","delay_ms":1000000}}\n' for i in range(9))
    file.write_text(lines)
    assert tocsin(server, "import", "--batch", "2", file).returncode == 3
    assert json.loads(progress.read_text())["line"] == 2

    file.write_text(lines.replace("j0", "x0"))  # as long, and with the same ends of lines
    done = tocsin(server, "import", file)
    assert done.returncode == 2
    assert str(progress) in done.stderr
    file.write_text(lines)
    assert tocsin(server, "import", "--topic", "other", file).returncode == 2
    proxy = Proxy(server, lambda *_: None)
    assert tocsin(proxy, "import", file).returncode == 2
    proxy.close()
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = tocsin(server, "import", file)
        assert done.returncode == 3
        assert "another import" in done.stderr
    progress.write_text('{"bytes":0,"refused_lines":["x"]}')
    assert tocsin(server, "import", file).returncode == 2
    assert list(listed(client, server, "t")) == ["j0", "j1"]


def test_bad_lines_are_named_and_the_others_submitted(server, client, tmp_path):
    file = tmp_path / "jobs"
    lines = [f'{{"id":"j{i}","payload":"p"}}' for i in range(1, 31)]
    lines[2] = "no json"
    lines[6] = '{"id":"j7","payload":"p","dely_ms":5}'
    lines[7] = '{"id":"j8","payload":"p","delay_ms":-5}'
    lines[19] = json.dumps({"id": "j20", "payload": "x" * (2 << 20)})
    lines[24] = '{"id":"j1","payload":"other"}'
    lines[26] = ""
    file.write_text("\n".join(lines))
    done = tocsin(server, "import", "--topic", "t", "--batch", "8", file)
    assert done.returncode == 1
    assert done.stdout == "24 accepted, 0 duplicate, 1 conflict, 4 refused\nrefused: lines 3, 7, 8, 20\n"
    assert "line 7: unknown_field" in done.stderr and "delay_ms" in done.stderr
    assert "line 25: conflict" in done.stderr
    assert set(listed(client, server, "t")) == {f"j{i}" for i in range(1, 31)} - {"j3", "j7", "j8", "j20", "j25", "j27"}


def test_an_import_finds_the_lines_that_are_wrong_among_thousands(server, tmp_path):
    good = [{"id": f"g{i}", "payload": "x" * i, "delay_ms": 1000} for i in range(2500)]
    bad = [{"id": "b1", "delay_ms": -5}, {"id": "b2", "dealy_ms": 5}, {"id": "b3", "delay_ms": "5"}, {"id": "b4", "payload": 7},
           {"id": "b5", "payload_base64": "?"}, {"id": "b6", "payload": "x" * (2 << 20)}, {"id": ""},
           {"id": "b7", "delay_ms": 1.5}, {"id": "b8", "max_attempts": 0}]
    mixed = good[:700] + bad[:5] + good[700:1500] + bad[5:] + good[1500:] + [{"id": "g1", "payload": "other"}]
    file = tmp_path / "jobs"
    file.write_text("".join(json.dumps(job) + "\n" for job in mixed))
    done = tocsin(server, "import", "--topic", "t", file, "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert (told["accepted"], told["refused"], told["conflict"]) == (2500, len(bad), 1)
    assert told["refused_lines"] == [*range(701, 706), *range(1506, 1510)]
    assert all(f"line {number}: " in done.stderr for number in told["refused_lines"])


def test_an_import_finds_the_line_that_no_request_can_hold(server, tmp_path):
    jobs = [{"id": f"g{i}", "delay_ms": 1000} for i in range(50)]
    jobs.insert(20, {"id": "huge", "payload": "x" * (17 << 20)})
    file = tmp_path / "jobs"
    file.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    done = tocsin(server, "import", "--topic", "t", file, "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["refused_lines"] == [21], done.stderr[:500]
    assert told["accepted"] + told["duplicate"] == 50


def test_a_line_without_a_topic_is_refused(server, tmp_path):
    file = tmp_path / "jobs"
    file.write_text('{"payload":"p"}\n')
    done = tocsin(server, "import", file)
    assert done.returncode == 1
    assert "--topic" in done.stderr


def test_progress_of_another_file_is_refused(server, tmp_path):
    file = tmp_path / "jobs"
    file.write_text('{"topic":"t","payload":"p"}\n')
    (tmp_path / "jobs.progress").write_text('{"line":3,"bytes":500}')
    done = tocsin(server, "import", file)
    assert done.returncode == 2
    assert "jobs.progress" in done.stderr


@pytest.mark.parametrize("words", [["export"], ["export", "t", "--all"], ["export", "t", "--resume"],
                                   ["import", "--batch", "0"]])
def test_wrong_usage(shared_server, words):
    assert tocsin(shared_server, *words).returncode == 2


def test_files_and_topics_that_are_missing(shared_server):
    assert tocsin(shared_server, "import", "/no/such/file").returncode == 3
    assert tocsin(shared_server, "export", "no-such-topic").returncode == 1
