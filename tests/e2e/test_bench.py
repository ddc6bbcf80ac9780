"""The benchmark's own arithmetic, tables and pictures, and one small run of its load generator against the server."""

import argparse
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import httpx
import pytest
from conftest import BIN, DEADLINE_S, ENVIRONMENT, ROOT

sys.path.insert(0, str(ROOT / "bench"))

import figures  # noqa: E402
import machine  # noqa: E402
import operate_bench  # noqa: E402
import plan  # noqa: E402
import procs  # noqa: E402
import provision  # noqa: E402
import push  # noqa: E402
import receivers  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
import runner  # noqa: E402
import servers  # noqa: E402
import stalls  # noqa: E402
import subjects  # noqa: E402
import svg  # noqa: E402


def drained(subject, submit, drain, **more):
    return {"subject": subject, "key": "drain", "repeat": 0,
            "figures": {"jobs": 1000, "submit_per_s": submit, "drain_per_s": drain},
            "server": {"cpu_cores": 0.5, "written_bytes": 1000}, **more}


def lived(subject, rate, **more):
    return {"subject": subject, "key": "life", "repeat": 0, "figures": {"jobs": 1000, "life_per_s": rate},
            "server": {"cpu_cores": 0.5, "written_bytes": 1000}, **more}


def steady(subject, p99, held=True, early=0):
    late = {"p50": p99 / 10, "p99": p99, "p999": p99 * 2, "max": p99 * 3, "count": 100, "early": early}
    return {"subject": subject, "key": "steady-20k", "repeat": 0, "figures": {"jobs": 100, "held": held, "lateness_ms": late},
            "server": {"cpu_cores": 0.1, "written_bytes": 0}}


def backlog(subject, size, memory, recovery, **server):
    return {"subject": subject, "key": f"backlog-{size}", "repeat": 0, "figures": {"jobs": 1000, "submit_per_s": 5000.0},
            "server": {"cpu_cores": 0.1, "memory_before_bytes": 5000, "memory_after_bytes": 5000 + 1000 * memory,
                       "written_bytes": 0, "recovery_s": recovery, **server}}


def results_of(*runs, limits=()):
    known = {name: {"title": subject.title, "durability": subject.durability, "settings": subject.settings, "note": "",
                    "skipped": None} for name, subject in subjects.BY_NAME.items()}
    known["lmstfy"]["skipped"] = "its Go module could not be downloaded"
    return {"format": 1, "form": "short", "command": "make bench", "started": "2026-01-02T03:04:05", "revision": "abc",
            "minutes": 5.0, "repeats": 1, "versions": {"redis-server": "7"}, "subjects": known, "limits": list(limits),
            "machine": {"cores": 2, "cpu": "a & b <c>", "memory_gib": 8, "system": "Debian", "kernel": "6", "file_system": {"type": "ext4"}},
            "runs": list(runs), "disturbed": []}


def metric_of(results, key):
    return next(metric for metric in figures.metrics(results) if metric.key == key)


def verdict_of(results, what):
    return next(verdict for verdict in figures.targets(results) + figures.redis_targets(results) if verdict.what == what)


def test_a_row_is_the_median_with_its_ends_and_rows_come_best_first():
    results = results_of(*(drained("tocsin-resp", value, 1) for value in (30.0, 10.0, 20.0)), drained("graphile", 40.0, 1))
    rows = figures.rows(results, metric_of(results, "submit"))
    assert [row.subject for row in rows] == ["graphile", "tocsin-resp"]
    assert (rows[1].median, rows[1].low, rows[1].high) == (20.0, 10.0, 30.0)
    assert figures.best_peer(rows).subject == "graphile"


def test_lower_is_better_for_lateness():
    results = results_of(steady("redis-hash-always", 30.0), steady("tocsin-resp", 3.0), steady("redis-hash-everysec", 15.0))
    rows = figures.rows(results, metric_of(results, "late-20k-p99"))
    assert [row.subject for row in rows] == ["tocsin-resp", "redis-hash-everysec", "redis-hash-always"]
    assert figures.best_peer(rows).subject == "redis-hash-everysec"
    line = report.lateness_cells(results, "20k")[0]
    assert line[3] == "3.00" and line[8:10] == ["5.00 x", "10 x"]


@pytest.mark.parametrize("value, reference, higher, expected", [
    (80, 10, True, 8), (3, 30, False, 10), (None, 10, True, None), (10, None, True, None), (10, 0, True, None), (0, 1, False, None)])
def test_ratios_say_how_many_times_better(value, reference, higher, expected):
    assert figures.ratio(value, reference, higher) == expected


def test_who_does_not_hold_a_rate_is_last_without_a_ratio_and_no_best_peer():
    results = results_of(steady("tocsin-resp", 9.0), steady("redis-hash-always", 1.0, held=False))
    rows = figures.rows(results, metric_of(results, "late-20k-p99"))
    assert [row.subject for row in rows] == ["tocsin-resp", "redis-hash-always"]
    assert figures.best_peer(rows) is None
    last = report.lateness_cells(results, "20k")[1]
    assert last[0].endswith("rate not held") and last[8:] == ["", "", ""]


def test_a_run_that_failed_is_shown_with_its_reason():
    results = results_of(drained("tocsin-resp", 5.0, 5.0),
                         {"subject": "rabbitmq", "key": "drain", "repeat": 0, "error": "the server did not start"})
    assert "failed: the server did not start" in report.as_text(results)
    assert "failed: the server did not start" in report.as_markdown(results)


def test_targets_are_met_missed_or_not_measured():
    results = results_of(drained("tocsin-resp", 800.0, 499.0), drained("redis-hash-always", 100.0, 100.0),
                         steady("tocsin-resp", 2.0), backlog("tocsin-resp", "5m", 221, 4.9, idle_cores=0.02))
    assert verdict_of(results, "submit, batched").met is True
    assert verdict_of(results, "drain, batched").met is False
    assert verdict_of(results, "whole lives, batched").met is None
    assert verdict_of(results, "lateness p99 at a steady 20 k/s").met is True
    assert verdict_of(results, "RAM for a pending job, all in").met is False
    assert verdict_of(results, "recovery of 5 M jobs after kill -9").met is True
    assert verdict_of(results, "CPU, idle, 1 M pending").met is False
    assert verdict_of(results, "jobs received early, all steady runs").met is True


def test_a_rate_that_was_not_held_and_an_early_job_miss_their_targets():
    results = results_of(steady("tocsin-resp", 1.0, held=False, early=1))
    assert verdict_of(results, "lateness p99 at a steady 20 k/s").met is False
    assert verdict_of(results, "jobs received early, all steady runs").met is False


def test_tocsin_on_redis_is_held_against_peers_with_the_same_durability():
    results = results_of(
        drained("tocsin-redis-everysec", 80.0, 79.0), drained("redis-slot-everysec", 100.0, 100.0), drained("redis-slot-always", 1.0, 1.0),
        drained("tocsin-redis-two", 72.0, 71.0), lived("tocsin-redis-everysec", 100.0), lived("bullmq-everysec", 10.0),
        lived("bullmq-always", 1.0), steady("tocsin-redis-everysec", 15.5))
    assert verdict_of(results, "submit, batched, everysec").met is True
    drain = verdict_of(results, "drain, batched, everysec")
    assert (drain.met, drain.measured, drain.target) == (False, "0.79 x", ">= 0.8 x the recipe with a hash per slot")
    assert verdict_of(results, "whole lives, batched, everysec").met is True
    assert verdict_of(results, "lateness p99 at a steady 20 k/s, everysec").met is False
    assert verdict_of(results, "submit, batched, two nodes together").met is True
    assert verdict_of(results, "drain, batched, two nodes together").met is False
    assert verdict_of(results, "whole lives, batched, two nodes together").met is None
    assert verdict_of(results, "submit, batched, always").met is None
    assert "0.79 x" in report.as_text(results) and "0.79 x" in report.as_markdown(results)


def test_tocsin_on_redis_is_no_peer_and_none_of_its_jobs_may_be_early():
    results = results_of(steady("tocsin-redis-everysec", 5.0, early=1), steady("tocsin-resp", 9.0), steady("redis-hash-always", 10.0))
    assert figures.best_peer(figures.rows(results, metric_of(results, "late-20k-p99"))).subject == "redis-hash-always"
    assert verdict_of(results, "jobs received early, all steady runs").met is False


def test_a_run_that_failed_misses_its_target():
    results = results_of({"subject": "tocsin-redis-everysec", "key": "drain", "repeat": 0, "error": "no Redis"},
                         drained("redis-slot-everysec", 100.0, 100.0))
    assert verdict_of(results, "submit, batched, everysec").met is False


def test_results_from_before_tocsin_on_redis_have_no_table_of_it():
    results = results_of(drained("tocsin-resp", 1.0, 1.0))
    assert "Tocsin on Redis" in report.as_markdown(results)
    for name in (*subjects.ON_REDIS.values(), subjects.TWO_NODES, subjects.WITH_REPLICA):
        del results["subjects"][name]
    assert figures.redis_targets(results) == []
    assert "Tocsin on Redis" not in report.as_markdown(results) + report.as_text(results)


PUSH_METRICS = """# TYPE tocsin_push_lateness_seconds histogram
tocsin_push_lateness_seconds_bucket{topic="bench",sink="kafka",le="0.001024"} 50
tocsin_push_lateness_seconds_bucket{topic="bench",sink="kafka",le="0.002048"} 90
tocsin_push_lateness_seconds_bucket{topic="bench",sink="kafka",le="0.004096"} 100
tocsin_push_lateness_seconds_bucket{topic="bench",sink="kafka",le="+Inf"} 100
tocsin_push_lateness_seconds_count{topic="bench",sink="kafka"} 100
tocsin_push_outcomes_total{topic="bench",sink="kafka",outcome="confirmed"} 100
tocsin_push_outcomes_total{topic="bench",sink="kafka",outcome="retry"} 0
"""


def pushed(sink, rate, p99, held=True, raw=100_000.0, repeat=0):
    parts = {"tocsind": {"cpu_cores": 0.5}, "the receiver": {"cpu_cores": 1.25}}
    late = {"p50": p99 / 10, "p99": p99, "p999": p99 * 2, "max": p99 * 3}
    return [{"subject": subjects.PUSHED[sink], "key": "push-drain", "repeat": repeat, "server": {"cpu_cores": 1.75, "parts": parts},
             "figures": {"jobs": 100, "drain_per_s": rate, "raw_per_s": raw}},
            {"subject": subjects.PUSHED[sink], "key": "push-steady-5k", "repeat": repeat, "server": {"cpu_cores": 0.1, "parts": parts},
             "figures": {"jobs": 100, "held": held, "lateness_ms": late}}]


def test_what_the_server_says_of_push_is_read_from_its_metrics():
    late = push.lateness_ms(PUSH_METRICS)
    assert late["count"] == 100
    # Straight lines within a bucket, and the millisecond that the server's clock may hide.
    assert (late["p50"], late["max"]) == (pytest.approx(1.024 + 1), pytest.approx(4.096 + 1))
    assert late["p99"] == pytest.approx(2.048 + 0.9 * 2.048 + 1)
    assert push.outcomes(PUSH_METRICS) == {"confirmed": 100, "retry": 0}
    assert push.lateness_ms("") == {"p50": None, "p99": None, "p999": None, "max": None, "count": 0}


def test_a_run_of_push_counts_only_where_every_job_arrived_once():
    assert push.problem(100, {"confirmed": 100, "retry": 0}, 100) is None
    assert "the receiver has 101 of 100" in push.problem(100, {"confirmed": 100, "retry": 0}, 101)
    assert push.problem(100, {"confirmed": 100, "retry": 1}, 100) and push.problem(100, {"confirmed": 99}, 100)


def test_push_is_held_against_its_targets_and_the_receivers_limit():
    results = results_of(*pushed("kafka", 80_000.0, 25.0), *pushed("kafka", 90_000.0, 5.0, repeat=1), *pushed("kafka", 85_000.0, 6.0, repeat=2),
                         *pushed("rabbitmq", 19_999.0, 1.0, held=False), drained("graphile", 1.0, 1.0))
    verdicts = {verdict.what: verdict for verdict in figures.push_targets(results)}
    assert verdicts["push to kafka, confirmed"].met is True
    assert verdicts["push to kafka, due to confirmed, p99 at a steady 5 k/s"].measured == "6.00 ms"
    assert verdicts["push to rabbitmq, confirmed"].met is False
    assert verdicts["push to rabbitmq, due to confirmed, p99 at a steady 5 k/s"].met is False
    assert verdicts["push to webhook, confirmed"].met is None
    assert ["Tocsin to Kafka", "85,000", "80,000 to 90,000", "3", "100,000", "0.85", "0.50", "1.25"] in report.push_lines(results)
    assert report.push_late_lines(results)[1][0] == "Tocsin to RabbitMQ, lazy queue, rate not held"
    for text in (report.as_text(results), report.as_markdown(results)):
        assert "80,000 to 90,000" in text and ">= 80,000 jobs/s" in text
    assert [row.subject for row in figures.rows(results, metric_of(results, "drain"))] == ["graphile"]
    assert report.part_lines(results) == []


def test_a_broker_that_cannot_be_had_is_skipped_with_the_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(receivers.Kafka, "JARS", tmp_path / "kafka")
    assert receivers.Kafka.missing() == "tools/kafka_jars.sh gets its jars"
    (tmp_path / "kafka-missing").write_text("no network\n")
    assert receivers.Kafka.missing() == "no network"
    monkeypatch.setattr(provision, "_node_clients", lambda say: None)
    monkeypatch.setattr(provision, "_go_clients", lambda say: None)
    monkeypatch.setattr(provision, "_lmstfy", lambda: "no")
    missing = provision.find(lambda text: None)
    if missing["push-webhook"] is None and shutil.which("java"):
        assert missing["push-kafka"] == "no network"
    table = run.subject_table(missing, [])
    assert table[subjects.PUSHED["kafka"]]["skipped"] == missing["push-kafka"]


def test_results_from_before_push_have_no_table_of_it():
    results = results_of(drained("tocsin-resp", 1.0, 1.0))
    for name in subjects.PUSHED.values():
        del results["subjects"][name]
    assert figures.push_targets(results) == []
    assert "Push" not in report.as_markdown(results) + report.as_text(results)


def test_every_target_has_its_runs_in_the_full_form():
    subject_keys = {(cell.subject, cell.key) for cell in plan.cells(plan.FULL, list(subjects.BY_NAME), 1)}
    runs = []
    for subject, key in sorted(subject_keys):
        made = {"drain": lambda name: drained(name, 5.0, 5.0), "life": lambda name: lived(name, 5.0),
                "steady-20k": lambda name: steady(name, 5.0)}.get(key)
        runs += [made(subject)] if made else []
    for verdict in figures.redis_targets(results_of(*runs)):
        assert verdict.met is not None, verdict


def test_what_several_programs_used_is_summed_and_shown_for_each():
    def measured(cpu, memory, written, at):
        return {"cpu_s": cpu, "memory_bytes": memory, "written_bytes": written, "at": at}

    before = {"tocsind": measured(1.0, 100, 0, 10.0), "redis-server": measured(2.0, 1000, 50, 10.0)}
    after = {"tocsind": measured(2.0, 150, 0, 20.0), "redis-server": measured(7.0, 3000, 4050, 20.0)}
    used = runner.used(before, after)
    assert (used["cpu_cores"], used["memory_before_bytes"], used["memory_after_bytes"], used["written_bytes"]) == (0.6, 1100, 3150, 4000)
    assert used["parts"]["redis-server"]["cpu_cores"] == 0.5 and used["parts"]["tocsind"]["memory_after_bytes"] == 150
    results = results_of(lived("tocsin-redis-everysec", 5.0, server=used))
    assert ["Tocsin on Redis, everysec: redis-server", "", "0.50", "", "", "4.00", ""] in report.part_lines(results)
    for text in (report.as_text(results), report.as_markdown(results)):
        assert "Tocsin on Redis, everysec: tocsind" in text
    assert "parts" not in runner.used({"tocsind": before["tocsind"]}, {"tocsind": after["tocsind"]})


def test_limits_of_several_rounds_become_one_by_medians():
    limits = [{"probe_drain": {"submit_per_s": value}, "fdatasync_4k_per_s": value} for value in (100, 300, 200)]
    results = results_of(drained("tocsin-resp", 100.0, 1.0), limits=limits)
    assert figures.median_limits(results) == {"probe_drain": {"submit_per_s": 200}, "fdatasync_4k_per_s": 200}
    assert report.table_cells(results, metric_of(results, "submit"))[0][-1] == "0.50"
    assert ["probe: submits a second", "200"] in report.limit_lines(results)


def test_tables_line_up_and_leave_out_what_is_empty():
    assert report.text_table(["", "b", "c"], [["x", "", "1"], ["longer", "", "22"]]) == "         c\nx        1\nlonger  22"
    assert report.markdown_table(["", "b"], [["Tocsin", "a|b"]]) == "|  | b |\n|---|---|\n| **Tocsin** | a\\|b |"


def test_skipped_subjects_are_named_with_their_reason():
    results = results_of(drained("tocsin-resp", 1.0, 1.0))
    for text in (report.as_text(results), report.as_markdown(results)):
        assert "skipped: its Go module could not be downloaded" in text
        assert "not part of the short form" in text


@pytest.mark.parametrize("value, shown", [(None, "-"), (1234567, "1,230,000"), (54321, "54,300"), (1234, "1,234"), (12.34, "12.3"),
                                          (1.234, "1.23"), (0, "0.00")])
def test_numbers_have_three_digits_that_matter(value, shown):
    assert figures.number(value) == shown


def test_the_section_of_the_page_is_replaced_and_nothing_else(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text(f"# Before\n{report.BEGIN}\nstale text\n{report.END}\n## After\n")
    results = results_of(drained("tocsin-resp", 1.0, 1.0), steady("tocsin-resp", 2.0), backlog("tocsin-resp", "300k", 100, 1.0))
    for _ in range(2):
        written = report.write(results, tmp_path)
        text = page.read_text()
        assert text.startswith(f"# Before\n{report.BEGIN}\n") and text.endswith(f"\n{report.END}\n## After\n") and "stale text" not in text
    assert {path.name for path in written} == {"performance.md", "throughput.svg", "lateness.svg", "cost.svg", "recovery.svg"}
    for path in written[1:]:
        assert f"performance/{path.name}" in text
        xml.etree.ElementTree.fromstring(path.read_text())


@pytest.mark.parametrize("page", ["no markers", report.END + report.BEGIN, report.BEGIN * 2 + report.END])
def test_a_page_without_its_markers_is_not_touched(page):
    with pytest.raises(ValueError, match="needs one"):
        report.replace_section(page, "new")


def test_the_page_of_this_tree_has_its_markers():
    assert "new" in report.replace_section((ROOT / "docs/performance.md").read_text(), "new")


def test_a_bar_of_a_log_scale_is_as_long_as_its_power_of_ten():
    scale = svg.Scale([10, 1000], True, 100, 300)
    assert (scale.x(10), scale.x(100), scale.x(1000)) == (100, 200, 300)
    assert scale.ticks() == [10, 100, 1000]
    assert svg.Scale([3, 37], False, 0, 100).ticks() == [0, 10, 20, 30, 40]


def test_pictures_escape_names_and_say_values():
    picture = svg.chart("t", [svg.Panel("a <b>", "jobs/s", [svg.Bar("x & y", 5.0, "5.00", "ours", 4.0, 6.0)], log=True, target=2,
                                        target_name="target")])
    texts = [element.text for element in xml.etree.ElementTree.fromstring(picture).iter() if element.text]
    assert {"a <b>", "x & y", "5.00", "jobs/s, log scale", "target"} <= set(texts)
    assert svg.chart("t", [svg.Panel("empty", "s", [])]) is None


def test_runs_go_in_rounds_so_that_a_slow_minute_hits_all():
    names = list(subjects.BY_NAME)
    cells = plan.cells(plan.FULL, names, 3)
    assert [cell.repeat for cell in cells] == sorted(cell.repeat for cell in cells)
    first = [(cell.key, cell.subject) for cell in cells if cell.repeat == 0]
    assert len(first) == len(set(first))
    drains = [subject for key, subject in first if key == "drain"]
    assert drains == [name for name in names if not subjects.BY_NAME[name].pushes] and [key for key, _ in first][: len(drains)] == ["drain"] * len(drains)


def test_the_plans_keep_their_promises():
    full = plan.cells(plan.FULL, list(subjects.BY_NAME), 3)
    lives = [cell for cell in full if (cell.subject, cell.key) == ("tocsin-resp", "life")]
    assert len(lives) == 3 and all(cell.arguments["jobs"] >= 2_000_000 for cell in lives)
    assert {cell.key for cell in full if cell.subject == "tocsin-resp"} == {
        "drain", "life", "steady-5k", "steady-20k", "steady-100k", "backlog-1m", "backlog-5m", "submit-single"}
    short = plan.cells(plan.SHORT, list(subjects.BY_NAME), 1)
    # Two seconds come between any two runs, and the limits of the machine before the first.
    assert sum(cell.expected_s + 2 for cell in short) + 30 < 11.5 * 60
    for cells, seconds in ((short, 8), (full, 30)):
        for name in subjects.PUSHED.values():
            asked = {cell.key: cell.arguments for cell in cells if cell.subject == name}
            assert set(asked) == {"push-drain", "push-steady-5k"} and asked["push-steady-5k"] == {"rate": 5000, "seconds": seconds}
    assert {cell.key for cell in short if cell.subject == "tocsin-redis-everysec"} == {"drain", "life", "steady-20k"}
    assert {(cell.subject, cell.key) for cell in short} >= {
        ("redis-slot-everysec", "drain"), ("bullmq-everysec", "life"), ("tocsin-redis-two", "drain")}
    assert plan.cells(plan.SHORT, ["tocsin-http"], 1) and not plan.cells(plan.SHORT, [], 1)


def test_all_is_submitted_to_redis_before_it_is_due():
    for cell in plan.cells(plan.FULL, [*subjects.ON_REDIS.values(), subjects.TWO_NODES, subjects.WITH_REPLICA], 1):
        if cell.key == "drain":
            assert cell.arguments["ahead"] > 1.5 * cell.arguments["jobs"] / subjects.BY_NAME[cell.subject].submit_per_s
            words = runner.load_arguments(cell, subjects.BY_NAME[cell.subject], "127.0.0.1:1")
            assert words[-2:] == ["--ahead", str(cell.arguments["ahead"])]
            assert ["--consumers", "4"] == words[words.index("--consumers"):][:2], "as many as the recipe has"


def test_reasons_do_not_name_addresses():
    assert provision._last_line("line\nreading https://example.org/a/b: 403\n") == "reading (address) 403"


def test_a_process_tree_is_measured_and_ended(tmp_path):
    process = procs.Process(["sh", "-c", "echo up; sleep 600 & wait"], tmp_path / "log")
    process.wait_until(lambda: len(procs.tree(process.pid)) == 2 and "up" in procs.tail(tmp_path / "log"), DEADLINE_S)
    child = os.pidfd_open(procs.tree(process.pid)[1])
    assert procs.measure(process.pid)["memory_bytes"] > 0
    process.stop()
    assert not pathlib.Path(f"/proc/{process.pid}").exists()
    assert select.select([child], [], [], DEADLINE_S)[0], "the child of the program is still there"
    os.close(child)


def test_a_program_that_ends_instead_of_becoming_ready_says_why(tmp_path):
    process = procs.Process(["sh", "-c", "echo no such disk; exit 3"], tmp_path / "log")
    with pytest.raises(procs.StartError, match="status 3:\nno such disk"):
        process.wait_until(lambda: False, DEADLINE_S)


@pytest.mark.parametrize("door", ["resp", "http"])
def test_a_small_load_on_the_server(server, door):
    program = BIN / "load_bench"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    address = f"127.0.0.1:{server.resp_port if door == 'resp' else server.port}"
    done = subprocess.run([program, "run", "--driver", f"tocsin-{door}", "--workload", "drain", "--address", address, "--jobs", "2000",
                           "--time-limit", str(DEADLINE_S)], capture_output=True, text=True, timeout=2 * DEADLINE_S, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["driver"], found["workload"], found["jobs"], found["errors"]) == (f"tocsin-{door}", "drain", 2000, 0)
    assert found["submit_per_s"] > 0 and found["drain_per_s"] > 0
    run = {"subject": f"tocsin-{door}", "key": "drain", "repeat": 0, "figures": found, "server": {"cpu_cores": 0}}
    assert figures.number(found["submit_per_s"]) in report.as_text(results_of(run))


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_small_load_on_redis(tmp_path, nodes):
    program = BIN / "load_bench"
    if not program.exists() or not shutil.which("redis-server"):
        pytest.skip(f"{program} is not built, or redis-server is not installed")
    server = servers.TocsinOnRedis(tmp_path / "data", BIN, "everysec", nodes)
    try:
        server.start(DEADLINE_S)
        pids = server.processes()
        assert list(pids) == (["tocsind", "redis-server"] if nodes == 1 else ["tocsind 1", "tocsind 2", "redis-server"])
        before = runner.measure(server)
        command = [program, "run", "--driver", "tocsin-resp", "--workload", "drain", "--address", server.addresses()["resp"],
                   "--jobs", "2000", "--batch", "100", "--time-limit", str(DEADLINE_S)]
        found = runner.run_load(command, ENVIRONMENT, 2 * DEADLINE_S)
        assert (found["jobs"], found["errors"], found["repeated"]) == (2000, 0, 0)
        used = runner.used(before, runner.measure(server))
        assert set(used["parts"]) == set(pids) and used["written_bytes"] >= 2000 * 128
        assert sum(submits_through(node) for node in server.nodes) == 20
        assert all(submits_through(node) > 0 for node in server.nodes), "a node was left out"
    finally:
        server.stop()
    assert not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids.values())


def submits_through(node):
    """JOB.MSUBMIT commands that a node has answered."""
    metrics = httpx.get(f"http://{node.addresses()['http']}/metrics", timeout=DEADLINE_S).text
    return sum(float(line.rsplit(" ", 1)[1]) for line in metrics.splitlines()
               if line.startswith("tocsin_resp_command_seconds_count") and "MSUBMIT" in line.upper())


@pytest.mark.parametrize("shares, counts, again", [([0.01], 0.01, []), ([0.5, 0.02, 0.0], 0.02, [0.5]), ([0.3, 0.1, 0.2], 0.1, [0.2, 0.3])])
def test_a_run_that_the_host_disturbed_is_done_again_and_the_calmest_counts(monkeypatch, tmp_path, shares, counts, again):
    coming = iter(shares)
    monkeypatch.setattr(machine, "settle", lambda: None)
    monkeypatch.setattr(runner, "run_cell", lambda cell, folder: {"figures": {}, "server": {"stolen": next(coming), "cpu_cores": 0.5}})
    results = results_of()
    cell = plan.cells(plan.SHORT, ["tocsin-resp"], 1)[0]
    record = run.Session(results, tmp_path / "r.json", tmp_path).attempt(cell)
    assert record["server"]["stolen"] == counts
    assert [each["server"]["stolen"] for each in results["disturbed"]] == again
    results["runs"].append(record)
    assert f"{counts:.1%}" in report.as_markdown(results) and f"{len(again)} runs in which" in report.as_markdown(results)


def test_what_every_core_misses_at_a_time_is_a_machine_that_stands_still():
    assert stalls.common([[(1.0, 1.2), (2.0, 2.5)], [(1.3, 1.4), (2.1, 2.6)], [(0.0, 9.0)]]) == [(2.1, 2.5)]
    assert stalls.common([[(1.0, 1.2)], []]) == []
    with stalls.Witness() as witness:
        pass
    assert 0 <= witness.longest_ms <= witness.one_core_ms < 60_000


def test_a_run_that_goes_on_leaves_out_what_it_has(monkeypatch, tmp_path):
    cells = plan.cells(plan.SHORT, ["tocsin-resp"], 2)
    ran = []
    monkeypatch.setattr(machine, "settle", lambda: None)
    monkeypatch.setattr(provision, "LOAD_BENCH", tmp_path / "none")
    monkeypatch.setattr(runner, "run_cell", lambda cell, folder: ran.append(cell) or {
        "figures": {}, "server": {"stolen": 0.0, "cpu_cores": 0.5}})
    results = results_of()
    results["runs"] = [{"subject": cell.subject, "key": cell.key, "repeat": cell.repeat} for cell in cells[:-2]]
    run.Session(results, tmp_path / "r.json", tmp_path).cells(cells)
    assert ran == cells[-2:] and len(results["runs"]) == len(cells)


@pytest.mark.parametrize("workload, batch", [("drain", 1), ("drain", 10), ("steady", 1)])
def test_a_small_load_on_a_webhook(tmp_path, workload, batch):
    if not (BIN / "push_bench").exists() or not (BIN / "load_bench").exists():
        pytest.skip("push_bench or load_bench is not built")
    server = receivers.Pushed(tmp_path / "data", BIN, lambda folder, programs: receivers.Webhook(folder, programs, batch))
    try:
        server.start(DEADLINE_S)
        pids = server.processes().values()
        load = ["--jobs", "2000"] if workload == "drain" else ["--rate", "2000", "--seconds", "1"]
        found = runner.run_load([BIN / "load_bench", "run", "--driver", "tocsin-push", "--workload", workload, "--address",
                                 server.addresses()["resp"], "--time-limit", str(DEADLINE_S), *load], ENVIRONMENT, 2 * DEADLINE_S)
        assert (found["jobs"], found["errors"]) == (2000, 0) and "lateness_ms" not in found
        told = push.findings(server, 2000, 100)
        assert "problem" not in told and (told.get("raw_per_s", 0) > 0) == (batch == 1)
        assert (told["received"], told["outcomes"]["confirmed"], told["lateness_ms"]["count"]) == (2000, 2000, 2000)
        # What the plain client sent is counted by the receiver too: such a run would not count.
        if batch == 1:
            assert "the receiver has 2200 of 2000" in push.findings(server, 2000, 0)["problem"]
    finally:
        server.stop()
    assert not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_small_load_beside_operations_lists_and_the_future_load(tmp_path):
    if not (BIN / "load_bench").exists():
        pytest.skip(f"{BIN}/load_bench is not built")
    args = argparse.Namespace(bin=str(BIN), data_dir=tmp_path, pending=20_000, rate=1000, seconds=1, runs=1, shards=2, nice=0)
    with operate_bench.Stage(args, operate_bench.evenly(["pending", "beside"], args.pending)) as stage:
        operate_bench.check_load(stage.http, args.pending)
        pid = stage.server.process.pid
        found = stage.measure([make for makes in (operate_bench.rescheduling, operate_bench.listing, operate_bench.asking_for_the_load)
                               for make in makes(stage.http)])
        totals = operate_bench.Api(stage.http).call("GET", "/stats")["totals"]
    assert (found["submitted"], found["consumed"], found["lateness_ms"]["early"]) == (1000, 1000, 0)
    # All ten thousand of the topic were moved at least once, and everything else ran beside that.
    assert found["counts"]["jobs moved"] >= 10_000
    assert found["counts"]["sorted pages"] > 0 and found["counts"]["tallies"] > 0 and found["counts"]["answers"] >= 5
    assert (totals["scheduled"], totals["acked"], totals["cancelled"]) == (args.pending, 1000, 0), "the operation lost a job, or made one"
    assert not pathlib.Path(f"/proc/{pid}").exists() and not list(tmp_path.iterdir())


def test_a_small_load_beside_dashboards_that_open_every_page(tmp_path, monkeypatch):
    if not (BIN / "load_bench").exists():
        pytest.skip(f"{BIN}/load_bench is not built")
    monkeypatch.setattr(operate_bench, "PAGE_S", 0.02)
    names = [f"topic-{i}" for i in range(20)]
    args = argparse.Namespace(bin=str(BIN), data_dir=tmp_path, rate=200, seconds=1, runs=1, shards=1, nice=0)
    dashboards = operate_bench.Dashboards(names)
    with operate_bench.Stage(args, operate_bench.evenly(names, 2000) | {operate_bench.LARGE: 2000}) as stage:
        found = stage.measure(dashboards.loops(stage.http))
    assert (found["submitted"], found["consumed"], found["lateness_ms"]["early"]) == (200, 200, 0)
    assert set(dashboards.took) == set(operate_bench.PAGES) and found["counts"]["events"] > 0
    assert all(f"| {name} |" in dashboards.table() for name in operate_bench.PAGES) and dashboards.slowest() > 0


def late(p99, moved=0):
    return {"lateness_ms": {"p50": 0.5, "p99": p99, "p999": 9.0}, "turns": {"cpu": 1, "wait": 4}, "took_s": 10, "counts": {"jobs moved": moved}}


def test_what_was_measured_beside_operations_is_kept_if_a_later_stage_fails(tmp_path, monkeypatch, capsys):
    def fails(_):
        raise RuntimeError("the server closed the connection")

    found = {"alone": [late(2)], "dashboards": [late(3)]}
    monkeypatch.setattr(operate_bench, "STAGES", {"one": ("one topic", fails), "dashboards": ("dashboards", lambda _: (found, {"pages": {}})),
                                                  "many": ("many topics", fails)})
    monkeypatch.setattr(sys, "argv", ["operate_bench.py", "--only", "dashboards", "many", "--json", str(tmp_path / "found.json")])
    with pytest.raises(RuntimeError):
        operate_bench.main()
    assert "dashboards: within 2 x of the p99 without" in capsys.readouterr().out
    assert json.loads((tmp_path / "found.json").read_text()) == {"dashboards": found, "pages": {}}


def test_medians_and_ratios_of_a_load_beside_operations():
    table = operate_bench.rows({"alone": [late(p99) for p99 in (2, 90, 3)], "reschedule": [late(p99, 500) for p99 in (4, 5, 80)]})
    assert [row[:6] for row in table] == [["alone", "0.50", "3.00", "2.00 to 90.00", "9.0", ""],
                                          ["reschedule", "0.50", "5.00", "4.00 to 80.00", "9.0", "1.67"]]
    assert table[1][6:] == ["3", "50.0 jobs moved/s"]
