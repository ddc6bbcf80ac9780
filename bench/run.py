#!/usr/bin/python3
"""Tocsin and its peers, side by side on this machine.

  bench/run.py short [options]            what make bench runs, about eleven minutes
  bench/run.py full [options]             what make bench-full runs, an hour and a half, medians of 3
  bench/run.py report RESULTS.json        writes the section of docs/performance.md and its pictures from a results file
  bench/run.py show RESULTS.json          prints the tables of a results file

Each subject runs alone, on a free loopback port, with its data in a fresh folder on the disk of --data-dir; what it starts, it stops.
Results go to build/bench/results-DATE.json. What cannot be measured is skipped with its reason.
"""

import argparse
import datetime
import json
import pathlib
import shutil
import signal
import sys
import time

import figures
import machine
import plan
import provision
import report
import runner
import subjects


NOT_ASKED = "not asked for"
LIMIT_S = {plan.SHORT: 2, plan.FULL: 5}  # for each limit of the machine
TRIES = 3  # of a run that the host disturbs


def say(text):
    print(text, flush=True)


def minutes(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def subject_table(missing, asked):
    """What the results say of each subject, with the reason if it is skipped."""
    table = {}
    for subject in subjects.SUBJECTS:
        reason = missing[subject.needs]
        if not reason and asked and subject.name not in asked:
            reason = NOT_ASKED
        table[subject.name] = {"title": subject.title, "durability": subject.durability, "settings": subject.settings,
                               "note": subject.note, "driver": subject.driver, "skipped": reason}
    return table


def summary(record):
    """One line of what a run found."""
    if record.get("error"):
        return "FAILED: " + record["error"]
    shown = []
    for name, unit in (("submit_per_s", "submits/s"), ("drain_per_s", "drained/s"), ("life_per_s", "lives/s")):
        if record["figures"].get(name):
            shown.append(f"{figures.number(record['figures'][name])} {unit}")
    late = record["figures"].get("lateness_ms")
    if late and late.get("p99") is not None:
        shown.append(f"late p99 {figures.number(late['p99'])} ms")
    if record["figures"].get("held") is False:
        shown.append("rate NOT held")
    server = record["server"]
    if "recovery_s" in server:
        shown.append(f"recovered in {server['recovery_s']:.2f} s")
    shown.append(f"server {server['cpu_cores']:.2f} cores")
    return ", ".join(shown)


class Session:
    """One run of the whole plan; the results are on the disk after every cell, so that an interrupt loses nothing."""

    def __init__(self, results, path, data_folder):
        self.results, self.path, self.data_folder = results, path, data_folder

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.results, indent=1) + "\n")

    def limits(self):
        form = self.results["form"]
        if not provision.LOAD_BENCH.exists():
            return
        say("limits: the disk, the loopback and the probe")
        try:
            self.results["limits"].append(runner.run_limits(self.data_folder, LIMIT_S[form], plan.LIVES[form]))
        except runner.RunError as error:
            say(f"    FAILED: {error}")
            self.results["limit_errors"].append(str(error))
        self.save()

    def attempt(self, cell):
        """A record of the cell. A run that the host disturbed is done again; all are kept, the calmest one counts."""
        records = []
        while len(records) < TRIES:
            machine.settle()
            record = {"subject": cell.subject, "key": cell.key, "workload": cell.workload, "arguments": cell.arguments,
                      "repeat": cell.repeat}
            try:
                record.update(runner.run_cell(cell, self.data_folder))
            except runner.RunError as error:
                record["error"] = " ".join(str(error).split())
                return record
            records.append(record)
            stolen = record["server"]["stolen"]
            if stolen <= machine.STOLEN_MAX:
                break
            say(f"    the host took {stolen:.0%} of the processors' time: {summary(record)}")
        records.sort(key=lambda each: each["server"]["stolen"])
        self.results["disturbed"] += records[1:]
        return records[0]

    def done(self, cell):
        return any((run["subject"], run["key"], run["repeat"]) == (cell.subject, cell.key, cell.repeat) for run in self.results["runs"])

    def cells(self, cells):
        cells = [cell for cell in cells if not self.done(cell)]
        total, spent, foretold = sum(cell.expected_s for cell in cells), 0.0, 0.0
        repeat = -1
        for index, cell in enumerate(cells):
            if cell.repeat != repeat:
                repeat = cell.repeat
                machine.settle()
                self.limits()
            pace = min(2.0, max(0.5, spent / foretold)) if foretold > 60 else 1.0
            say(f"[{index + 1}/{len(cells)}] {cell.describe()}; about {minutes((total - foretold) * pace)} left")
            begun = time.monotonic()
            record = self.attempt(cell)
            spent += time.monotonic() - begun
            foretold += cell.expected_s
            self.results["runs"].append(record)
            self.save()
            say("    " + summary(record))


def command_of(args):
    """What runs the same again."""
    chosen = [f"--{name} {value}" for name, value in (("repeats", args.repeats), ("only", args.only), ("workloads", args.workloads))
              if value]
    return ("make bench" if args.form == plan.SHORT else "make bench-full") + (f' ARGS="{" ".join(chosen)}"' if chosen else "")


def run(args):
    begun = time.monotonic()
    started = datetime.datetime.now().isoformat(timespec="seconds")
    missing = provision.find(say)
    asked = [name for name in args.only.split(",") if name]
    unknown = [name for name in asked if name not in subjects.BY_NAME]
    if unknown:
        raise SystemExit(f"bench: --only knows no {', '.join(unknown)}; the subjects are {', '.join(subjects.BY_NAME)}")
    table = subject_table(missing, asked)
    for subject in table.values():
        if subject["skipped"] not in (None, NOT_ASKED):
            say(f"skipped: {subject['title']}: {subject['skipped']}")
    repeats = args.repeats or (3 if args.form == plan.FULL else 1)
    cells = plan.cells(args.form, [name for name, subject in table.items() if not subject["skipped"]], repeats)
    if args.workloads:
        wanted = args.workloads.split(",")
        cells = [cell for cell in cells if cell.key in wanted or cell.workload in wanted]
    folder = machine.make_data_folder(args.data_dir)
    facts = machine.facts(folder)
    results = {
        "format": 1, "form": args.form, "command": command_of(args), "started": started, "revision": machine.revision(subjects.ROOT), "repeats": repeats,
        "machine": facts, "versions": provision.versions(), "subjects": table, "limits": [], "limit_errors": [], "runs": [],
        "disturbed": [],
    }
    path = pathlib.Path(args.out or subjects.ROOT / f"build/bench/results-{started.replace(':', '')}.json")
    say(f"{len(cells)} runs, up to {repeats} of each; data on {facts['file_system']['type']} ({facts['file_system']['device']})")
    if facts["load_average_before"] > 0.5:
        say(f"NOTE: the machine is busy (load {facts['load_average_before']:.1f}): the figures will be too low")
    if args.resume:
        results = read_results(args.resume)
        path, begun = pathlib.Path(args.resume), begun - results["minutes"] * 60
    session = Session(results, path, folder)
    # An end from outside must end the servers too, which run in sessions of their own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: asked to end"))
    try:
        session.cells(cells)
    except KeyboardInterrupt:
        raise SystemExit(f"\nbench: interrupted; what was measured is in {path}") from None
    finally:
        results["minutes"] = (time.monotonic() - begun) / 60
        session.save()
        shutil.rmtree(folder, ignore_errors=True)
    say("\n" + report.as_text(results) + f"\n\n{results['minutes']:.1f} minutes; results in {path}")
    return 1 if any(record.get("error") for record in results["runs"]) else 0


def read_results(path):
    results = json.loads(pathlib.Path(path).read_text())
    if results.get("format") != 1:
        raise SystemExit(f"bench: {path} is no results file of this program")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="form", required=True)
    for form in (plan.SHORT, plan.FULL):
        command = commands.add_parser(form)
        command.add_argument("--repeats", type=int, default=0, help="runs of each (short: 1, full: 3)")
        command.add_argument("--only", default="", help="names of subjects, with commas")
        command.add_argument("--workloads", default="", help="drain, life, steady, steady-20k, submit, backlog; with commas")
        command.add_argument("--data-dir", default=subjects.ROOT / "build/bench-data", help="a folder on a real disk")
        command.add_argument("--out", help="the results file")
        command.add_argument("--resume", help="the results file of a run of the same form that was interrupted: what it lacks is run")
    for form in ("report", "show"):
        command = commands.add_parser(form)
        command.add_argument("results")
        if form == "report":
            command.add_argument("--docs", default=subjects.ROOT / "docs")
    args = parser.parse_args()
    if args.form == "report":
        for path in report.write(read_results(args.results), args.docs):
            say(f"wrote {path}")
        return 0
    if args.form == "show":
        say(report.as_text(read_results(args.results)))
        return 0
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
