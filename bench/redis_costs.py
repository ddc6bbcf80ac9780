#!/usr/bin/python3
"""What a job costs a Redis that many nodes share, however many nodes and slots there are.

  bench/redis_costs.py [--bin build/release/bin] [--nodes 1,2,4,8,16] [--slots 1,8,64] [--alone-s 5] [--load-s 3] [--json FILE]
                       [--svg FILE [--before FILE]]

--json keeps the figures, and --svg draws them, beside those of another program that --json kept (--before).

Scripts (EVALSHA) as Redis counts them, without the submits and without what the nodes send while nothing happens:
 - isolated: a consumer waits on each node; one job after another, each through another node, due after 20 ms.
 - load: batches of 100 through all nodes at once, a consumer on each node that takes up to 100, 8 slots.
Commands of an idle node, each second, as MONITOR shows them. How late a job reaches a consumer of the node that owns its slot, and a
consumer of one that owns no slot of the topic: the median of three rounds of both, each with a topic of its own; and how long the machine
stood still at most meanwhile (stalls.py).
"""

import argparse
import http.client
import json
import pathlib
import re
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time

import servers
import stalls
import svg

WAIT_MS = 2000
DELAY_MS = 20
IDLE_S = 4
SETTLE_S = 30
LATE_JOBS = 40
LATE_ROUNDS = 3
TARGET = 4  # scripts for a job that comes alone


class Api:
    """One connection to a node."""

    def __init__(self, address):
        self.connection = http.client.HTTPConnection(address, timeout=60)

    def call(self, method, path, body=None):
        self.connection.request(method, "/v1" + path, None if body is None else json.dumps(body))
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 201):
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]!r}")
        return json.loads(text)

    def submit(self, topic, *jobs):
        return self.call("POST", f"/topics/{topic}/jobs", {"jobs": list(jobs)})["jobs"]

    def reserve(self, topic, most, wait_ms=WAIT_MS):
        return self.call("POST", f"/topics/{topic}/reserve", {"max": most, "wait_ms": wait_ms})["jobs"]

    def ack(self, topic, jobs):
        self.call("POST", f"/topics/{topic}/ack", {"tokens": [job["token"] for job in jobs]})


class Consumers:
    """One on each of some nodes, until the end."""

    def __init__(self, nodes, topic, most):
        self.topic, self.most = topic, most
        self.ended, self.failure = False, None
        self.acked, self.late_ms = 0, []
        self.changed = threading.Condition()
        self.threads = [threading.Thread(target=self._run, args=(Api(node),), daemon=True) for node in nodes]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        for thread in self.threads:
            thread.join(60)
        if self.failure:
            raise self.failure

    def _run(self, api):
        try:
            while not self.ended:
                jobs = api.reserve(self.topic, self.most)
                now_ms = time.time() * 1000
                if not jobs:
                    continue
                api.ack(self.topic, jobs)
                with self.changed:
                    self.acked += len(jobs)
                    self.late_ms += [now_ms - job["due_ms"] for job in jobs]
                    self.changed.notify_all()
        except Exception as error:  # shown by whoever waits
            with self.changed:
                self.failure = error
                self.changed.notify_all()

    def await_acks(self, count):
        with self.changed:
            if not self.changed.wait_for(lambda: self.acked >= count or self.failure, 60):
                raise RuntimeError(f"{self.acked} of {count} jobs were delivered within a minute")
            if self.failure:
                raise self.failure


class Cluster:
    def __init__(self, folder, programs, nodes):
        self.servers = servers.TocsinOnRedis(folder, programs, "everysec", nodes)
        self.servers.start()
        self.nodes = self.servers.addresses()["http"].split(",")
        try:
            self._await_owners()
        except BaseException:
            self.servers.stop()
            raise

    def _await_owners(self):
        """Until every node knows all others, and all say the same owner of every group. Of 16 nodes one may own none."""
        end = time.monotonic() + SETTLE_S
        while True:
            reports = [Api(node).call("GET", "/cluster") for node in self.nodes]
            said = {tuple(group["owner"] for group in report["groups"]) for report in reports}
            if len(said) == 1 and all(*said) and all(len(report["members"]) == len(self.nodes) for report in reports):
                break
            if time.monotonic() > end:
                raise RuntimeError(f"the nodes do not agree on their groups: {said}")
            time.sleep(0.1)

    def scripts(self):
        """Calls so far; 0 before the first one."""
        with socket.create_connection(("127.0.0.1", self.servers.redis.port)) as connection:
            connection.sendall(b"INFO commandstats\r\n")
            answer = connection.makefile("rb")
            stats = answer.read(int(answer.readline()[1:])).decode()
        return sum(int(calls) for calls in re.findall(r"cmdstat_evalsha:calls=(\d+)", stats))

    def idle_commands(self, seconds):
        """Each second and node, without those that scripts call."""
        with socket.create_connection(("127.0.0.1", self.servers.redis.port)) as monitor:
            monitor.sendall(b"MONITOR\r\n")
            lines = monitor.makefile("rb")
            end, count = time.monotonic() + seconds, 0
            for line in lines:
                count += b" lua] " not in line[:60]
                if time.monotonic() > end:
                    break
        return count / seconds / len(self.nodes)

    def make_topic(self, topic, slots):
        Api(self.nodes[0]).call("PUT", f"/topics/{topic}", {"slots": slots})
        for node in self.nodes:
            api, end = Api(node), time.monotonic() + SETTLE_S
            while topic not in [one["topic"] for one in api.call("GET", "/topics")["topics"]]:
                if time.monotonic() > end:
                    raise RuntimeError(f"a node does not hear of topic {topic}")
                time.sleep(0.05)

    def quiet_scripts(self, seconds):
        """Each second while nothing happens."""
        before, begun = self.scripts(), time.monotonic()
        time.sleep(seconds)
        return (self.scripts() - before) / (time.monotonic() - begun)

    def stop(self):
        self.servers.kill()


def isolated(cluster, slots, seconds):
    """Scripts for each job, over whole seconds: nodes look at all their groups once a second."""
    topic = f"isolated-{slots}"
    cluster.make_topic(topic, slots)
    apis = [Api(node) for node in cluster.nodes]
    with Consumers(cluster.nodes, topic, 1) as consumers:
        for number in range(len(apis)):  # Redis and the nodes know everything from here on
            apis[number].submit(topic, {"payload": "x", "delay_ms": DELAY_MS, "key": str(number)})
            consumers.await_acks(number + 1)
        time.sleep(1)
        quiet = cluster.quiet_scripts(IDLE_S)
        known = consumers.acked
        before, begun = cluster.scripts(), time.monotonic()
        jobs = 0
        while time.monotonic() - begun < seconds:
            apis[jobs % len(apis)].submit(topic, {"payload": "x", "delay_ms": DELAY_MS, "key": str(jobs)})
            jobs += 1
            consumers.await_acks(known + jobs)
        spent = cluster.scripts() - before - quiet * (time.monotonic() - begun) - jobs
    return spent / jobs


def loaded(cluster, seconds):
    """Scripts for each job, and jobs each second."""
    topic, batch = "load", 100
    cluster.make_topic(topic, 8)
    ended = time.monotonic() + seconds
    batches = [0] * len(cluster.nodes)

    def produce(number):
        api = Api(cluster.nodes[number])
        while time.monotonic() < ended:
            api.submit(topic, *({"payload": "x"},) * batch)
            batches[number] += 1

    quiet = cluster.quiet_scripts(2)
    with Consumers(cluster.nodes, topic, batch) as consumers:
        before, begun = cluster.scripts(), time.monotonic()
        producers = [threading.Thread(target=produce, args=(number,)) for number in range(len(cluster.nodes))]
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join()
        submits = sum(batches)
        consumers.await_acks(submits * batch)
        took = time.monotonic() - begun
        spent = cluster.scripts() - before - quiet * took - submits
    return {"scripts": spent / (submits * batch), "jobs_per_s": submits * batch / took}


def owner_of(cluster, topic):
    """The id of the node that looks after the topic's only slot, which has no job yet."""
    api = Api(cluster.nodes[0])
    before = {group["group"]: group["slots"] for group in api.call("GET", "/cluster")["groups"]}
    [job] = api.submit(topic, {"payload": "x", "delay_ms": 3_600_000})
    owner, end = None, time.monotonic() + SETTLE_S
    while owner is None:
        for group in api.call("GET", "/cluster")["groups"]:
            if group["slots"] > before[group["group"]]:
                owner = group["owner"]
        if time.monotonic() > end:
            raise RuntimeError("no group has the new slot")
        time.sleep(0.1)
    api.call("DELETE", f"/topics/{topic}/jobs/{job['id']}")
    return owner


def late_ms(cluster, place, topic):
    """The median, at the node that owns the topic's only slot ("owner") or at another one."""
    cluster.make_topic(topic, 1)
    owner = owner_of(cluster, topic)
    ids = {Api(node).call("GET", "/cluster")["node"]: node for node in cluster.nodes}
    chosen = ids[owner] if place == "owner" else next(node for name, node in ids.items() if name != owner)
    # Through a third one, if there is one: what a submit answers wakes consumers of its node.
    api = Api(next((node for node in cluster.nodes if node not in (ids[owner], chosen)), cluster.nodes[0]))
    with Consumers([chosen], topic, 1) as consumers:
        time.sleep(1.5)  # the owner knows that it waits
        for number in range(LATE_JOBS):
            api.submit(topic, {"payload": "x", "delay_ms": DELAY_MS})
            consumers.await_acks(number + 1)
    return statistics.median(consumers.late_ms)


def lateness(cluster):
    """By the place, in ms: the median of several rounds."""
    rounds = [{place: late_ms(cluster, place, f"late-{place}-{number}") for place in ("owner", "other")}
              for number in range(LATE_ROUNDS)]
    return {place: statistics.median(one[place] for one in rounds) for place in rounds[0]}


def measure(programs, nodes, slots, alone_s, load_s):
    found = {"nodes": nodes, "isolated": {}}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tocsin-costs-"))
    try:
        cluster = Cluster(folder / "cluster", programs, nodes)
        try:
            time.sleep(1)
            found["idle_commands"] = cluster.idle_commands(IDLE_S)
            for one in slots:
                found["isolated"][one] = isolated(cluster, one, alone_s)
            if load_s > 0:
                found["load"] = loaded(cluster, load_s)
            if nodes > 1:
                with stalls.Witness() as witness:
                    found["late_ms"] = lateness(cluster)
                found["stood_still_ms"] = witness.longest_ms
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def show(found, slots):
    def number(value, digits=2):
        return "-" if value is None else f"{value:.{digits}f}"

    head = ["nodes", *(f"{one} slots" for one in slots), "load, 8 slots", "idle cmd/s", "late owner", "late other", "stood still"]
    print("Redis: scripts for each job beyond its submit; commands of an idle node; median lateness in ms", flush=True)
    print("  ".join(f"{one:>13}" for one in head))
    for row in found:
        late = row.get("late_ms", {})
        cells = [row["nodes"], *(number(row["isolated"][one]) for one in slots),
                 number(row.get("load", {}).get("scripts"), 3), number(row["idle_commands"], 1),
                 number(late.get("owner")), number(late.get("other")), number(row.get("stood_still_ms"), 1)]
        print("  ".join(f"{cell:>13}" for cell in cells))


def picture(found, before):
    """Against the nodes, with the middle number of slots; and against the slots, with the middle number of nodes."""
    def panel(title, places):
        bars = []
        for label, row, slots in places:
            for name, kind, all_rows in (("before", "peer", before), ("now", "ours", found)):
                cost = next((one["isolated"].get(str(slots)) for one in all_rows if one["nodes"] == row), None)
                if cost is not None:
                    bars.append(svg.Bar(f"{label}, {name}" if before else label, cost, f"{cost:.1f}", kind))
        return svg.Panel(title, "scripts for each job, beyond its submit", bars, target=TARGET, target_name="target")

    nodes = [row["nodes"] for row in found]
    slots = [int(one) for one in found[0]["isolated"]]
    middle_nodes, middle_slots = nodes[len(nodes) // 2], slots[len(slots) // 2]
    return svg.chart("What a job that comes alone costs Redis", [
        panel(f"Against the nodes, {counted(middle_slots, 'slot')}", [(counted(one, "node"), one, middle_slots) for one in nodes]),
        panel(f"Against the slots, {counted(middle_nodes, 'node')}", [(counted(one, "slot"), middle_nodes, one) for one in slots]),
    ])


def counted(number, what):
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(word) for word in text.split(",")]  # noqa: E731
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--nodes", type=numbers, default=[1, 2, 4, 8, 16])
    parser.add_argument("--slots", type=numbers, default=[1, 8, 64])
    parser.add_argument("--alone-s", type=int, default=5)
    parser.add_argument("--load-s", type=float, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--svg", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    args = parser.parse_args()
    if not shutil.which("redis-server"):
        print("Redis: what a job costs is not measured: there is no redis-server")
        return 0
    programs = pathlib.Path(args.bin).resolve()
    found = [measure(programs, nodes, args.slots, args.alone_s, args.load_s) for nodes in args.nodes]
    show(found, args.slots)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    if args.svg:
        as_kept = json.loads(json.dumps(found))  # names of fields are texts there
        args.svg.write_text(picture(as_kept, json.loads(args.before.read_text()) if args.before else []))
    return 0


if __name__ == "__main__":
    sys.exit(main())
