#!/usr/bin/python3
"""What operations, lists and the future load over millions of jobs do to the lateness of a topic that has nothing to do with them.

  bench/operate_bench.py [--bin build/release/bin] [--only one many dashboards] [--pending 5000000] [--topics 1000]
                         [--pages-topics 10000] [--rate 5000] [--seconds 15] [--runs 5] [--shards 1]

load_bench keeps a steady rate on another topic, and measures lateness at the client. In stage `one` all pending jobs are of one topic:
 - reschedule: an operation moves all of them by a second, and the next one moves them back, until the run is over.
 - lists and tallies: one client asks for pages sorted by due time, one counts by minute; each page and each count looks at all jobs.
In stage `many` a fresh server has as many jobs, in many topics:
 - future load: five clients ask every second for the next 24 hours by the minute, one of them for the ten largest topics too.
In stage `dashboards` one topic has half of them, and --pages-topics topics have the others:
 - dashboards: five open dashboards. Each has its stream of events, and makes the calls of one page after the other, each two seconds after
   the one before. No browser runs: it would be on another machine, and here it would need both processors. How long each page took is printed.
The results of a stage are printed, and written to the file of --json, when it is over.
Runs with and without take turns, so that a slow minute of the machine hits both. If other programs need the processors too, --nice -19
(as root) lets the server and the load go first: otherwise the figures are those of the other programs.
"""

import argparse
import json
import math
import os
import pathlib
import random
import re
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import machine
import procs
import report
import runner
import servers
from redis_costs import Api

PAYLOAD = b"x" * 128
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LOAD_CLIENTS = 5
DASHBOARDS = 5
PAGE_S = 2
PAGE_MS = 300  # within which a page is to be there, unless somebody has it look at all jobs of LARGE
LARGE = "large"
PAGE_JOBS, PAGE_LEASES, PAGE_DELIVERIES = 50, 100, 1000  # rows
READ_ON, READ_ALL = 5, 10  # pages, at most (web/src/lib/pages.ts and pages/problems.tsx)
LOOK_S = 0.05
WINDOW = 16  # batches that are not answered yet
FILL_S = 600
TARGET = 2  # times the p99 without
ALONE = "alone"


def bulk(*words):
    return b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Filler:
    """Submits batches over one connection; `due` is in ms."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.wire = socket.create_connection((host, int(port)), FILL_S)
        self.lines = 0  # of answers that are to come

    def submit(self, topic, jobs, due):
        words = bulk(b"JOB.MSUBMIT", topic.encode(), b"AT", b"%d" % due)
        self.wire.sendall(b"*%d\r\n%s%s" % (4 + jobs, words, bulk(PAYLOAD) * jobs))
        self.lines += 1 + 2 * jobs  # an array of ids
        if self.lines > WINDOW * (1 + 2 * jobs):
            self._read(self.lines // 2)

    def end(self):
        self._read(0)
        self.wire.close()

    def _read(self, left):
        while self.lines > left:
            some = self.wire.recv(1 << 20)
            if not some:
                raise RuntimeError("the server closed the connection")
            self.lines -= some.count(b"\n")


def evenly(names, pending):
    """Topic -> how many jobs it gets."""
    return dict.fromkeys(names, pending // len(names))


def fill(address, topics):
    """Jobs that are due in 2 to 26 hours, each batch at another time."""
    filler, now = Filler(address), int(time.time() * 1000)
    for name, jobs in topics.items():
        batch = max(1, min(1000, jobs // 50))
        for at in range(0, jobs, batch):
            filler.submit(name, min(batch, jobs - at), now + 2 * HOUR_MS + at * DAY_MS // jobs)
    filler.end()


class Disturbance:
    """What runs beside the steady load, on separate threads; `counts` says what they did."""

    def __init__(self, *loops):
        self.stop, self.failures, self.counts, self.lock = threading.Event(), [], {}, threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=(loop,), daemon=True) for loop in loops]

    def _run(self, loop):
        try:
            loop(self.stop, self.count)
        except Exception as error:  # of another thread: the run fails in __exit__
            self.failures.append(error)

    def count(self, what, more=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + more

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        if self.failures and kind is None:
            raise self.failures[0]


def rescheduling(address):
    def loop(stop, count):
        api, shift = Api(address), 1000
        while not stop.is_set():
            path = "/topics/pending/operations"
            path += "/" + api.call("POST", path, {"action": "reschedule", "all": True, "shift_ms": shift})["id"]
            while (told := api.call("GET", path))["state"] == "running":
                if stop.wait(LOOK_S):
                    api.call("DELETE", path)
                    time.sleep(LOOK_S)
            if set(told["outcomes"]) - {"rescheduled"} or told["state"] == "failed":
                raise RuntimeError(f"the operation came to {told}")
            count("jobs moved", told["outcomes"].get("rescheduled", 0))
            shift = -shift

    return [loop]


def asking(address, path, what):
    def loop(stop, count):
        api = Api(address)
        while not stop.is_set():
            api.call("GET", path)
            count(what)

    return loop


def listing(address):
    return [asking(address, "/topics/pending/jobs?sort=due&limit=1000", "sorted pages"),
            asking(address, "/topics/pending/tally?by=minute", "tallies")]


def load_path(by=""):
    now = int(time.time() * 1000)
    return f"/load?from={now}&to={now + DAY_MS}&step=60000{by}"


def asking_for_the_load(address):
    def every_second(by):
        def loop(stop, count):
            api, at = Api(address), time.monotonic()
            while not stop.is_set():
                began = time.monotonic()
                api.call("GET", load_path(by))
                count("answers")
                count("ms of answers", (time.monotonic() - began) * 1000)
                at += 1
                stop.wait(max(0, at - time.monotonic()))

        return loop

    return [every_second("&by=topic" if i == 0 else "") for i in range(LOAD_CLIENTS)]


def read_on(get, path, what, pages=READ_ON, all_of_it=False):
    """A list whose pages may be empty: reads on for a while, or all of it."""
    page = get(path)
    for _ in range(pages - 1):
        if "cursor" not in page or (page[what] and not all_of_it):
            break
        page = get(f"{path}&cursor={urllib.parse.quote(page['cursor'])}")


def page_of_overview(get, _):
    get("/topics?limit=8&sort=ready&order=desc")
    get("/alerts")
    get("/topics?sort=lateness&order=desc&limit=8")
    read_on(get, f"/deliveries?limit={PAGE_DELIVERIES}", "deliveries", READ_ALL, all_of_it=True)
    get("/cluster")
    get("/history")  # for the figures
    get(load_path("&by=topic"))
    get("/history")  # for the charts


def page_of_topics(get, _):
    get("/topics?sort=scheduled&order=desc&offset=2000&limit=50")


def page_of_topic(get, topic):
    get(f"/topics/{topic}")
    now = int(time.time() * 1000)
    get(f"/topics/{topic}/load?from={now}&to={now + DAY_MS}&step=60000")
    get(f"/topics/{topic}/history")
    get(f"/topics/{topic}/lateness")


def page_of_settings(get, topic):
    get(f"/topics/{topic}")
    get("/openapi.json")


def page_of_operations(get, topic):
    get(f"/topics/{topic}")
    get(f"/topics/{topic}/operations")


def page_of_no_jobs(get, _):
    get("/topics?limit=20")  # names to choose from
    get("/topics?limit=12&sort=scheduled&order=desc")


def jobs_page(get, topic, query="", tally=True):
    get(f"/topics?filter={topic}&limit=20")
    get(f"/topics/{topic}")  # how large it is
    read_on(get, f"/topics/{topic}/jobs?limit={PAGE_JOBS}{query}", "jobs")
    if tally:
        get(f"/topics/{topic}/tally?by=nothing")


def page_of_jobs(get, topic):
    jobs_page(get, topic, "&sort=due")


def page_of_large_topic(get, _):
    jobs_page(get, LARGE, tally=False)  # it counts only when asked


def page_of_filtered_jobs(get, _):
    jobs_page(get, LARGE, "&header=customer%3Dnobody")


def page_of_sorted_jobs(get, _):
    jobs_page(get, LARGE, "&sort=due")


def page_of_job(get, topic):
    job = get(f"/topics/{topic}/jobs?limit=1")["jobs"][0]["id"]  # where a click led from
    get(f"/topics/{topic}/jobs/{job}")


def page_of_leases(get, _):
    get("/topics?limit=20")
    read_on(get, f"/leases?limit={PAGE_LEASES}", "leases")


def page_of_dead(get, topic):
    get("/topics?sort=dead&order=desc&limit=30")
    get(f"/topics/{topic}")
    get(f"/topics/{topic}/tally?state=dead&by=reason")


def page_of_nodes(get, _):
    get("/cluster")
    get("/stats")


# What each page of the dashboard asks for when it is opened (web/src/pages), one call after the other.
PAGES = {
    "overview": page_of_overview, "topics": page_of_topics, "a topic": page_of_topic, "its settings": page_of_settings,
    "its operations": page_of_operations, "jobs, no topic": page_of_no_jobs, "jobs": page_of_jobs, "jobs of a large topic": page_of_large_topic,
    "the same, filtered and counted": page_of_filtered_jobs, "the same, sorted and counted": page_of_sorted_jobs, "a job": page_of_job,
    "leases": page_of_leases, "dead letters": page_of_dead, "deliveries": lambda get, _: get("/deliveries?limit=50"),
    "nodes": page_of_nodes, "alerts": lambda get, _: get("/alerts"),
}
WALKS = {"the same, filtered and counted", "the same, sorted and counted"}  # that look at all jobs of a large topic


class Stream:
    """The events of a dashboard, read as they come."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.wire = socket.create_connection((host, int(port)), 10)
        self.wire.sendall(b"GET /v1/events?kinds=figures,topic_changed,topic_dropped,operation,alert,node,log HTTP/1.1\r\n"
                          b"Host: %s\r\nAccept: text/event-stream\r\n\r\n" % address.encode())

    def read(self, seconds):
        """The number of events of the next seconds."""
        until, found = time.monotonic() + seconds, 0
        while (left := until - time.monotonic()) > 0:
            self.wire.settimeout(max(0.001, left))
            try:
                some = self.wire.recv(1 << 16)
            except TimeoutError:
                break
            if not some:
                raise RuntimeError("the server closed the stream of events")
            found += some.count(b"event: ")
        return found

    def close(self):
        self.wire.close()


def viewing(number, topics):
    """One dashboard; `took` gets the ms of each page."""

    def make(address, took):
        def loop(stop, count):
            api, stream, dice = Api(address), Stream(address), random.Random(number)
            names = list(PAGES)
            at = number * len(names) // DASHBOARDS

            def get(path):
                count("answers")
                return api.call("GET", path)

            while not stop.is_set():
                name = names[at % len(names)]
                began = time.monotonic()
                PAGES[name](get, dice.choice(topics))
                took.setdefault(name, []).append((time.monotonic() - began) * 1000)
                count("events", stream.read(PAGE_S - (time.monotonic() - began)))
                at += 1
            stream.close()

        return loop

    return make


class Dashboards:
    """Some of them; remembers how long each page took, over all runs."""

    def __init__(self, topics):
        self.makers, self.took = [viewing(number, topics) for number in range(DASHBOARDS)], {}

    def loops(self, address):
        return [make(address, self.took) for make in self.makers]

    def table(self):
        rows = []
        for name in (name for name in PAGES if name in self.took):
            took = sorted(self.took[name])
            rows.append([name, str(len(took)), f"{statistics.median(took):.1f}", f"{took[int(len(took) * 0.95)]:.1f}", f"{took[-1]:.1f}"])
        return report.markdown_table(["page", "times", "p50, ms", "p95, ms", "largest, ms"], rows)

    def slowest(self):
        return max(max(took) for name, took in self.took.items() if name not in WALKS)


class Told:
    """What a server's metrics say that happened since then."""

    def __init__(self, address):
        self.address, self.before = address, self._read(address)

    @staticmethod
    def _read(address):
        text = urllib.request.urlopen(f"http://{address}/metrics", timeout=60).read().decode()
        found = {cause: sum(int(one) for one in re.findall(rf'^tocsin_shard_long_turns_total{{.*cause="{cause}".*}} (\d+)', text, re.M))
                 for cause in ("cpu", "wait")}
        syncs = re.findall(r'^tocsin_journal_sync_seconds_bucket{le="([^"]+)"} (\d+)', text, re.M)
        return found | {float(bound): int(count) for bound, count in syncs}

    def since(self):
        """Turns over 5 ms by cause, and the bound in ms below which 99 % of the syncs took."""
        now = {key: value - self.before[key] for key, value in self._read(self.address).items()}
        bounds = sorted(key for key in now if not isinstance(key, str))
        within = next(bound for bound in bounds if now[bound] >= 0.99 * now[bounds[-1]])
        return {"turns": {cause: now[cause] for cause in ("cpu", "wait")}, "sync_p99_ms": within * 1000}


def go_first(pid, nice):
    """The session of a process, before all other sessions: where the kernel groups processes by session, their own nice values count only
    among themselves."""
    group = pathlib.Path(f"/proc/{pid}/autogroup")
    if nice and group.exists():
        group.write_text(str(nice))
    elif nice:
        os.setpriority(os.PRIO_PROCESS, pid, nice)


class Stage:
    """A server with so many jobs of each topic, and the conditions under which the steady load runs on it."""

    def __init__(self, args, topics):
        self.args, self.topics = args, topics
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tocsin-operate-", dir=args.data_dir))
        self.server = Server(self.folder / "server", pathlib.Path(args.bin).resolve(), args.shards)

    def __enter__(self):
        try:
            self.server.start()
            go_first(self.server.process.pid, self.args.nice)
            empty = procs.measure(self.server.process.pid)["memory_bytes"]
            began = time.monotonic()
            fill(self.server.addresses()["resp"], self.topics)
            took = time.monotonic() - began
            pending = sum(self.topics.values())
            memory = (procs.measure(self.server.process.pid)["memory_bytes"] - empty) / pending
            stored = Api(self.http).call("GET", "/stats")["totals"]["scheduled"]
            if stored != pending:
                raise RuntimeError(f"{stored} jobs of {pending} are stored")
            print(f"{stored:,} jobs of {len(PAYLOAD)} bytes, topics: {len(self.topics):,}; submitted in {took:.0f} s, "
                  f"{memory:.0f} bytes of RAM each, all in", flush=True)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def http(self):
        return self.server.addresses()["http"]

    def measure(self, loops):
        """Lateness of the steady load beside what these loops do."""
        args, disturbance = self.args, Disturbance(*loops)
        command = [pathlib.Path(args.bin) / "load_bench", "run", "--driver", "tocsin-resp", "--workload", "steady", "--rate", args.rate,
                   "--seconds", args.seconds, "--jobs", args.rate * args.seconds, "--address", self.server.addresses()["resp"]]
        told, stolen, began = Told(self.http), machine.Stolen(), time.monotonic()
        with disturbance:
            found = runner.run_load([str(word) for word in command], None, 4 * args.seconds + 60)
        found.update(told.since(), stolen=stolen.share(), counts=disturbance.counts,
                     load=os.getloadavg()[0], took_s=time.monotonic() - began)
        return found

    def compare(self, conditions):
        """Name -> the figures of its runs; a condition makes the loops that run beside the load, and is None if there are none."""
        machine.settle()
        self.measure([])  # what the submits have left to the disk is none of the load's business
        found = {name: [] for name in conditions}
        for number in range(self.args.runs):
            for name, make in conditions.items():
                one = self.measure(make(self.http) if make else [])
                found[name].append(one)
                late = one["lateness_ms"]
                print(f"run {number + 1}, {name}: late p50 {late['p50']:.2f}, p99 {late['p99']:.2f}, p99.9 {late['p999']:.1f}, "
                      f"max {late['max']:.1f} ms{'' if one['held'] else '; the rate was not held'}; turns over 5 ms: "
                      f"{one['turns']['cpu']} of CPU time, {one['turns']['wait']} that waited; "
                      f"syncs within {one['sync_p99_ms']:.1f} ms (99 %); load average {one['load']:.1f}, stolen {one['stolen']:.1%}", flush=True)
        return found


class Server(servers.Tocsind):
    def __init__(self, folder, programs, shards):
        super().__init__(folder, programs)
        self.shards = shards

    def command(self):
        words = super().command()
        words[words.index("--shards") + 1] = str(self.shards)
        return [*words, "--limits-topics", "20000"]  # those of the dashboards, and those of the load


def check_load(http, pending):
    """The answer counts every job: what is due within the day, and what comes after it."""
    now = int(time.time() * 1000)
    told = Api(http).call("GET", f"/load?from={now}&to={now + 30 * HOUR_MS}&step=60000")
    if told["total"] != pending or sum(told["jobs"]) != pending:
        raise RuntimeError(f"the future load counts {told['total']} of {pending} jobs")


def did(runs):
    """What a disturbance did, over all its runs."""
    total, took = {}, sum(one["took_s"] for one in runs)
    for one in runs:
        for what, count in one["counts"].items():
            total[what] = total.get(what, 0) + count
    if spent := total.pop("ms of answers", None):
        return f"{total['answers'] / took:.1f} answers/s, {spent / total['answers']:.1f} ms each"
    return ", ".join(f"{count / took:,.1f} {what}/s" for what, count in total.items())


def rows(found):
    """A row for each condition: medians, with the lowest and the highest p99, and the ratio to the p99 of none."""
    table, alone = [], None
    for name, runs in found.items():
        p50, p99, p999 = (sorted(one["lateness_ms"][share] for one in runs) for share in ("p50", "p99", "p999"))
        median = statistics.median(p99)
        alone = alone or median
        table.append([name, f"{statistics.median(p50):.2f}", f"{median:.2f}", f"{p99[0]:.2f} to {p99[-1]:.2f}",
                      f"{statistics.median(p999):.1f}", "" if name == ALONE else f"{median / alone:.2f}",
                      str(sum(one["turns"]["cpu"] for one in runs)), did(runs)])
    return table


HEADINGS = ["", "p50, ms", "p99, ms", "lowest to highest", "p99.9, ms", "p99 x alone", "turns over 5 ms of CPU time", "meanwhile"]


def stage_one(args):
    with Stage(args, {"pending": args.pending}) as stage:
        return stage.compare({ALONE: None, "reschedule": rescheduling, "lists and tallies": listing}), {}


def stage_many(args):
    with Stage(args, evenly([f"topic-{i:04}" for i in range(args.topics)], args.pending)) as stage:
        check_load(stage.http, args.pending)
        return stage.compare({ALONE: None, "future load": asking_for_the_load}), {}


def stage_dashboards(args):
    names = [f"topic-{i:05}" for i in range(args.pages_topics)]
    dashboards = Dashboards(names)
    with Stage(args, evenly(names, args.pending // 2) | {LARGE: args.pending - args.pending // 2}) as stage:
        found = stage.compare({ALONE: None, "dashboards": dashboards.loops})
    print(f"\nPages of {DASHBOARDS} dashboards, except those that look at all jobs of a large topic: "
          f"{'within' if dashboards.slowest() <= PAGE_MS else 'BEYOND'} {PAGE_MS} ms\n{dashboards.table()}")
    return found, {"pages": dashboards.took}


STAGES = {"one": ("one topic", stage_one), "many": ("many topics", stage_many), "dashboards": ("dashboards", stage_dashboards)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--data-dir", help="where the server's data goes; the folder for temporary files unless named")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=list(STAGES), help="these stages")
    parser.add_argument("--pending", type=int, default=5_000_000)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--pages-topics", type=int, default=10_000, help="topics of the server that dashboards look at")
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--nice", type=int, default=0, help="the priority of the server and the load; below 0 before other programs")
    parser.add_argument("--json", help="keeps the figures of all runs in this file")
    args = parser.parse_args()
    args.pending -= args.pending % (2 * math.lcm(args.topics, args.pages_topics))  # as many in each topic
    go_first(os.getpid(), args.nice)
    results = {}
    for name in args.only:
        title, run = STAGES[name]
        found, more = run(args)
        results |= {title: found} | more
        table = rows(found)
        print(f"\nLateness of {args.rate:,} jobs a second, medians of {args.runs} runs of {args.seconds} s, {args.pending:,} jobs pending, "
              f"shards: {args.shards}; {title}:\n{report.markdown_table(HEADINGS, table)}")
        for condition, *_, ratio, _, _ in table[1:]:
            print(f"{condition}: {'within' if float(ratio) <= TARGET else 'BEYOND'} {TARGET} x of the p99 without", flush=True)
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
