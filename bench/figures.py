"""From runs to figures: medians, ratios and the verdict on each target. Pure: a results object in, rows out."""

import dataclasses
import statistics
import typing

import subjects

REFERENCE = subjects.REDIS_ALWAYS
FLAGSHIP = "tocsin-resp"


@dataclasses.dataclass(frozen=True)
class Metric:
    key: str
    title: str
    unit: str
    cell: str  # the key of the runs that it is taken from
    read: typing.Callable  # run -> number or None
    higher: bool = True  # is more better?
    limit: typing.Callable = lambda limits: None  # limits -> number or None


@dataclasses.dataclass
class Row:
    subject: str
    values: list
    held: bool = True
    early: int = 0
    note: str = ""  # why there is no figure

    @property
    def median(self):
        return statistics.median(self.values) if self.values else None

    @property
    def low(self):
        return min(self.values) if self.values else None

    @property
    def high(self):
        return max(self.values) if self.values else None


def dig(mapping, *names):
    """The value at a path of keys, or None if one of them is missing."""
    for name in names:
        mapping = mapping.get(name) if isinstance(mapping, dict) else None
    return mapping


def ratio(value, reference, higher=True):
    """How many times better than the reference a value is; None if there is nothing to compare."""
    if value is None or reference is None or value <= 0 or reference <= 0:
        return None
    return value / reference if higher else reference / value


def _memory_per_job(run):
    jobs = dig(run, "figures", "jobs")
    after, before = dig(run, "server", "memory_after_bytes"), dig(run, "server", "memory_before_bytes")
    return (after - before) / jobs if jobs and after is not None and before is not None else None


def _written_per_job(run):
    jobs, written = dig(run, "figures", "jobs"), dig(run, "server", "written_bytes")
    # Nothing written is a subject without a log: no figure to compare with.
    return written / jobs if jobs and written else None


def _lateness(share):
    return lambda run: dig(run, "figures", "lateness_ms", share)


def metrics(results):
    """The metrics for which there are runs; the sizes of rates and backlogs come from the runs themselves."""
    keys = {run["key"] for run in results["runs"]}
    found = [
        Metric("submit", "Submit, batched", "jobs/s", "drain", lambda run: dig(run, "figures", "submit_per_s"),
               limit=lambda limits: dig(limits, "probe_drain", "submit_per_s")),
        Metric("drain", "Drain (reserve and ack), batched", "jobs/s", "drain", lambda run: dig(run, "figures", "drain_per_s"),
               limit=lambda limits: dig(limits, "probe_drain", "drain_per_s")),
        Metric("life", "Whole lives, batched", "jobs/s", "life", lambda run: dig(run, "figures", "life_per_s"),
               limit=lambda limits: dig(limits, "probe_life", "life_per_s")),
        Metric("life-busy", "Whole lives, without the wait at the end for the last ones to come due", "jobs/s", "life",
               lambda run: dig(run, "figures", "life_without_wait_per_s"),
               limit=lambda limits: dig(limits, "probe_life", "life_without_wait_per_s")),
        Metric("single", "Submit one by one over 50 connections", "jobs/s", "submit-single",
               lambda run: dig(run, "figures", "submit_per_s")),
        Metric("single-p99", "Time of one submit, p99, 50 connections", "us", "submit-single",
               lambda run: dig(run, "figures", "latency_us", "p99"), higher=False),
    ]
    for rate in ("5k", "20k", "100k"):
        for share, name in (("p50", "p50"), ("p99", "p99"), ("p999", "p99.9"), ("max", "largest")):
            found.append(Metric(f"late-{rate}-{share}", f"Lateness at a steady {rate}/s, {name}", "ms", f"steady-{rate}",
                                _lateness(share), higher=False, limit=_lateness_limit(rate, share)))
    for key in sorted((key for key in keys if key.startswith("backlog-")), key=backlog_size):
        size = key.removeprefix("backlog-")
        found += [
            Metric(f"backlog-submit-{size}", f"Submit up to {size} pending", "jobs/s", key,
                   lambda run: dig(run, "figures", "submit_per_s")),
            Metric(f"ram-{size}", f"RAM for a pending job, {size} pending, all in", "bytes", key, _memory_per_job, higher=False),
            Metric(f"recovery-{size}", f"Recovery of {size} pending after kill -9", "s", key,
                   lambda run: dig(run, "server", "recovery_s"), higher=False),
        ]
    found.append(Metric("written", "Disk written for a whole life", "bytes", "life", _written_per_job, higher=False))
    return [metric for metric in found if metric.cell in keys]


def _lateness_limit(rate, share):
    return lambda limits: dig(limits, f"probe_steady_{rate.replace('k', '000')}", "lateness_ms", share)


def backlog_size(key):
    text = key.removeprefix("backlog-")
    return int(text.rstrip("km")) * {"k": 1_000, "m": 1_000_000}.get(text[-1], 1)


def rows(results, metric):
    """A row for each subject with runs of the metric, best first, then those that failed or did not hold the rate."""
    found = {}
    for run in results["runs"]:
        if run["key"] != metric.cell:
            continue
        row = found.setdefault(run["subject"], Row(run["subject"], []))
        if run.get("error"):
            row.note = "failed: " + run["error"]
            continue
        value = metric.read(run)
        if value is None:
            continue
        row.values.append(value)
        row.held = row.held and dig(run, "figures", "held") is not False
        row.early += dig(run, "figures", "lateness_ms", "early") or 0
    shown = [row for row in found.values() if row.values or row.note]
    return sorted(shown, key=lambda row: (not row.values, not row.held,
                                          (-row.median if metric.higher else row.median) if row.values else 0))


def median_of(table, subject):
    """The median of a subject that has one and held the rate."""
    return next((row.median for row in table if row.subject == subject and row.values and row.held), None)


def best_peer(table):
    """The first row, which is the best, that is not ours."""
    return next((row for row in table if not row.subject.startswith("tocsin-") and row.values and row.held), None)


def median_limits(results):
    """The limits of all rounds as one object, number by number."""
    def merge(objects):
        merged = {}
        for key in {key for each in objects for key in each}:
            values = [each[key] for each in objects if key in each]
            if all(isinstance(value, dict) for value in values):
                merged[key] = merge(values)
            elif all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
                merged[key] = statistics.median(values)
            else:
                merged[key] = values[0]
        return merged

    return merge(results.get("limits", []))


@dataclasses.dataclass
class Verdict:
    what: str
    target: str
    measured: str
    met: typing.Optional[bool]  # None: not measured in this run


class _Judge:
    """Holds figures of subjects against promises."""

    def __init__(self, results):
        self.known = {metric.key: (metric, rows(results, metric)) for metric in metrics(results)}

    def value(self, key, subject):
        return median_of(self.known[key][1], subject) if key in self.known else None

    def failed(self, key, subject):
        """It was asked for, and has no figure that counts."""
        asked = any(row.subject == subject for row in self.known.get(key, (None, []))[1])
        return asked and self.value(key, subject) is None

    def times(self, what, key, subject, reference, least, name):
        target = f">= {least} x {name}"
        if self.failed(key, subject):
            return Verdict(what, target, "failed", False)
        got = ratio(self.value(key, subject), self.value(key, reference))
        digits = 2 if least < 1 else 1
        return Verdict(what, target, "" if got is None else f"{got:.{digits}f} x", None if got is None else got >= least)

    def at_most(self, what, key, subject, most, unit):
        target = f"<= {most} {unit}"
        if self.failed(key, subject):
            return Verdict(what, target, "rate not held, or failed", False)
        got = self.value(key, subject)
        return Verdict(what, target, "" if got is None else f"{number(got)} {unit}", None if got is None else got <= most)


def targets(results):
    """The promises, each with what was measured for Tocsin over RESP."""
    judge = _Judge(results)
    known, limits = judge.known, median_limits(results)

    def times(what, key, reference, least):
        return judge.times(what, key, FLAGSHIP, reference, least, "Redis, appendfsync " + reference.rsplit("-", 1)[1])

    def at_most(what, key, most, unit):
        return judge.at_most(what, key, FLAGSHIP, most, unit)

    backlogs = [key for key in known if key.startswith("ram-")]
    life_share = ratio(judge.value("life", FLAGSHIP), known["life"][0].limit(limits)) if "life" in known else None
    return [
        times("submit, batched", "submit", REFERENCE, 8),
        times("submit, batched", "submit", subjects.REDIS_EVERYSEC, 4),
        times("drain, batched", "drain", REFERENCE, 5),
        times("whole lives, batched", "life", REFERENCE, 8),
        times("submit one by one, 50 connections", "single", REFERENCE, 1.5),
        at_most("lateness p99 at a steady 20 k/s", "late-20k-p99", 3, "ms"),
        at_most("lateness p99.9 at a steady 20 k/s", "late-20k-p999", 20, "ms"),
        _never_early(known),
        at_most("lateness p99 at a steady 100 k/s, held", "late-100k-p99", 10, "ms"),
        at_most("RAM for a pending job, all in", backlogs[-1] if backlogs else "", 220, "bytes"),
        at_most("disk written for a whole life", "written", 210, "bytes"),
        at_most("recovery of 5 M jobs after kill -9", "recovery-5m", 5, "s"),
        Verdict("whole lives against the limit probe", ">= 0.4 of it", "" if life_share is None else f"{life_share:.2f}",
                None if life_share is None else life_share >= 0.4),
        _idle(results),
    ]


def redis_targets(results):
    """The promises of Tocsin on Redis; each peer runs on a Redis that is set in the same way. None if the results know no such
    subject."""
    if not any(name in results["subjects"] for name in subjects.ON_REDIS.values()):
        return []
    judge = _Judge(results)
    found = []
    for sync, ours in reversed(subjects.ON_REDIS.items()):
        recipe, bullmq = f"redis-slot-{sync}", f"bullmq-{sync}"
        found += [
            judge.times(f"submit, batched, {sync}", "submit", ours, recipe, 0.8, "the recipe with a hash per slot"),
            judge.times(f"drain, batched, {sync}", "drain", ours, recipe, 0.8, "the recipe with a hash per slot"),
            judge.times(f"whole lives, batched, {sync}", "life", ours, bullmq, 10, "BullMQ"),
            judge.at_most(f"lateness p99 at a steady 20 k/s, {sync}", "late-20k-p99", ours, 15, "ms"),
        ]
    alone = subjects.ON_REDIS["everysec"]
    for what, key in (("submit, batched", "submit"), ("drain, batched", "drain"), ("whole lives, batched", "life")):
        found.append(judge.times(f"{what}, two nodes together", key, subjects.TWO_NODES, alone, 0.9, "one node"))
    return found


PUSH_TARGETS = {"kafka": 80_000, "rabbitmq": 20_000, "rabbitmq-ram": 20_000, "webhook": 10_000, "webhook-batch": 10_000}
PUSH_LATE_MS = 25
_PUSH_DRAIN = Metric("push", "Push", "jobs/s", "push-drain", lambda run: dig(run, "figures", "drain_per_s"))
_PUSH_RAW = Metric("push-raw", "The receiver's limit", "jobs/s", "push-drain", lambda run: dig(run, "figures", "raw_per_s"))


@dataclasses.dataclass
class Pushed:
    """What one sink did, over all runs; rows are None if nothing was measured."""

    subject: str
    drain: typing.Optional[Row]
    raw: typing.Optional[Row]  # the same receiver with a client that does nothing but send
    late: dict  # p50, p99, p999, max -> Row or None
    cores: dict  # program -> cores in drain, median


def pushes(results):
    """Each sink with runs, in the order of the subjects."""
    def row(metric, name):
        return next((row for row in rows(results, metric) if row.subject == name), None)

    found = []
    for name in subjects.PUSHED.values():
        runs = [run for run in results["runs"] if run["subject"] == name]
        if not runs:
            continue
        late = {share: row(Metric(share, "", "ms", "push-steady-5k", _lateness(share), higher=False), name)
                for share in ("p50", "p99", "p999", "max")}
        drains = [run for run in runs if run["key"] == "push-drain" and dig(run, "server", "parts")]
        cores = {program: statistics.median(run["server"]["parts"][program]["cpu_cores"] for run in drains)
                 for program in (drains[0]["server"]["parts"] if drains else ())}
        found.append(Pushed(name, row(_PUSH_DRAIN, name), row(_PUSH_RAW, name), late, cores))
    return found


def push_targets(results):
    """The promises of push; none if the results know no such subject."""
    if not any(name in results["subjects"] for name in subjects.PUSHED.values()):
        return []
    measured = {each.subject: each for each in pushes(results)}
    found = []
    for sink, least in PUSH_TARGETS.items():
        each = measured.get(subjects.PUSHED[sink])
        drain, late = (each.drain, each.late["p99"]) if each else (None, None)
        got = drain.median if drain else None
        found.append(Verdict(f"push to {sink}, confirmed", f">= {least:,} jobs/s", _told(drain, "jobs/s"),
                             None if drain is None else got is not None and got >= least))
        got = late.median if late and late.held else None
        found.append(Verdict(f"push to {sink}, due to confirmed, p99 at a steady 5 k/s", f"<= {PUSH_LATE_MS} ms", _told(late, "ms"),
                             None if late is None else got is not None and got <= PUSH_LATE_MS))
    return found


def _told(row, unit):
    if row is None:
        return ""
    return f"{number(row.median)} {unit}" if row.values and row.held else "rate not held, or failed"


@dataclasses.dataclass
class Part:
    """What one program of a subject with several took; medians, None if nothing was measured."""

    subject: str
    program: str
    cores: dict  # key of the runs -> cores
    idle: typing.Optional[float]  # cores, with a backlog
    written: typing.Optional[float]  # bytes for a whole life
    memory: typing.Optional[float]  # bytes for a pending job


def parts(results, keys):
    """The programs of the subjects that have several; the cores of runs with these keys."""
    found = []
    for name in results["subjects"]:
        if name in subjects.PUSHED.values():
            continue  # they have a table of their own
        runs = [run for run in results["runs"] if run["subject"] == name and dig(run, "server", "parts")]
        for program in dict.fromkeys(program for run in runs for program in run["server"]["parts"]):
            own = [{**run, "server": run["server"]["parts"][program]} for run in runs]

            def median(key, read):
                values = [read(run) for run in own if run["key"].startswith(key)]
                values = [value for value in values if value is not None]
                return statistics.median(values) if values else None

            found.append(Part(name, program, {key: median(key, lambda run: dig(run, "server", "cpu_cores")) for key in keys},
                              median("backlog-", lambda run: dig(run, "server", "idle_cores")),
                              median("life", _written_per_job), median("backlog-", _memory_per_job)))
    return found


def _never_early(known):
    early, seen = 0, False
    for key, (_, table) in known.items():
        if key.startswith("late-") and key.endswith("-p99"):
            for row in table:
                if row.subject.startswith("tocsin-") and row.values:
                    early, seen = early + row.early, True
    return Verdict("jobs received early, all steady runs", "none", f"{early}" if seen else "", early == 0 if seen else None)


def _idle(results):
    found = [run for run in results["runs"] if run["subject"] in subjects.OURS and dig(run, "server", "idle_cores") is not None]
    if not found:
        return Verdict("CPU, idle, 1 M pending", "<= 1 % of a core", "", None)
    worst = max(dig(run, "server", "idle_cores") for run in found)
    largest = max(backlog_size(run["key"]) for run in found)
    return Verdict("CPU, idle, 1 M pending", "<= 1 % of a core", f"{worst * 100:.2f} % ({number(largest)} pending)", worst <= 0.01)


def number(value):
    """A figure as people read it: three digits that matter, thousands apart."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 10_000:
        digits = len(str(int(size))) - 3
        return f"{round(value, -digits):,.0f}"
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"
