"""Which runs there are, in which order. Pure: subjects and a form in, cells out."""

import dataclasses

import subjects

SHORT, FULL = "short", "full"
START_STOP_S = 2
MAX_DELAY_S = 5
PUSH_START_S = 8  # of a broker, which is slower than the servers
PUSH_RATE = 5_000
# Of ours and of the probe, which are compared: many, because the last ones of a run wait for their due time, and because a
# journal that still grows writes zeros first.
LIVES = {SHORT: 4_000_000, FULL: 32_000_000}


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of one workload against one fresh subject."""

    subject: str
    key: str  # drain, life, steady-20k, backlog-1m, submit-single
    workload: str  # as the load generator names it
    arguments: dict
    expected_s: float
    repeat: int = 0

    def describe(self):
        numbers = ", ".join(f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"
                            for name, value in self.arguments.items())
        return f"{self.subject}: {self.key} ({numbers})"

    @property
    def limit_s(self):
        """When a run is given up: long after it should have ended."""
        return int(max(150, 6 * self.expected_s))


def rounded(jobs):
    """Two digits that matter, so that the tables read well."""
    scale = 10 ** max(0, len(str(int(jobs))) - 2)
    return max(1000, int(jobs) // scale * scale)


def short_number(number):
    for size, letter in ((1_000_000, "m"), (1_000, "k")):
        if number % size == 0 and number >= size:
            return f"{number // size}{letter}"
    return str(number)


def drain(subject, seconds):
    jobs = rounded(seconds / (1 / subject.submit_per_s + 1 / subject.drain_per_s))
    arguments = {"jobs": jobs}
    if subject.on_redis:
        # Its driver sets the due time by the speed of the embedded store: all would be due before they are submitted.
        arguments["ahead"] = round(1 + 1.6 * jobs / subject.submit_per_s, 1)
    return Cell(subject.name, "drain", "drain", arguments, seconds + START_STOP_S + 2)


def life(subject, seconds, form):
    jobs = LIVES[form] if subject.name == subjects.OURS[0] else rounded(seconds * subject.life_per_s)
    return Cell(subject.name, "life", "life", {"jobs": jobs}, jobs / subject.life_per_s + START_STOP_S + MAX_DELAY_S / 2)


def steady(subject, rate, seconds):
    return Cell(subject.name, f"steady-{short_number(rate)}", "steady", {"rate": rate, "seconds": seconds},
                seconds + MAX_DELAY_S + START_STOP_S + 2)


def backlog(subject, jobs):
    recovery = jobs / (2_000_000 if subject.embedded else 150_000)
    idle = 10 if subject.ours else 0
    return Cell(subject.name, f"backlog-{short_number(jobs)}", "backlog", {"jobs": jobs},
                jobs / subject.submit_per_s + recovery + idle + START_STOP_S)


def single(subject, seconds):
    # One by one, a peer with bulk calls does about half of what it does batched, and nobody more than 50,000 a second.
    jobs = rounded(seconds * min(40_000, subject.submit_per_s / 2))
    return Cell(subject.name, "submit-single", "submit", {"jobs": jobs, "connections": 50, "mode": "single"},
                seconds + START_STOP_S)


def push_drain(subject, seconds):
    return Cell(subject.name, "push-drain", "drain", {"jobs": rounded(seconds * subject.drain_per_s)}, 3 * seconds + PUSH_START_S)


def push_steady(subject, seconds):
    return Cell(subject.name, f"push-steady-{short_number(PUSH_RATE)}", "steady", {"rate": PUSH_RATE, "seconds": seconds},
                seconds + MAX_DELAY_S + PUSH_START_S)


def _pushes(names, drain_s, steady_s):
    pushed = [subject for subject in subjects.SUBJECTS if subject.pushes and subject.name in names]
    yield from (push_drain(subject, drain_s) for subject in pushed)
    yield from (push_steady(subject, steady_s) for subject in pushed)


def _short(names):
    loaded = [subjects.BY_NAME[name] for name in
              ("tocsin-resp", "tocsin-http", "redis-hash-always", "redis-hash-everysec", "beanstalkd-f1000") if name in names]
    on_redis, two, replica, recipe, bullmq, graphile, rabbitmq = (
        [subjects.BY_NAME[name]] if name in names else [] for name in
        (subjects.ON_REDIS["everysec"], subjects.TWO_NODES, subjects.WITH_REPLICA, "redis-slot-everysec", "bullmq-everysec",
         "graphile", "rabbitmq"))
    yield from (drain(subject, 5) for subject in loaded + on_redis + two + replica + recipe + bullmq + graphile + rabbitmq)
    yield from (life(subject, 8, SHORT) for subject in loaded + on_redis + bullmq)
    yield from (steady(subject, 20_000, 8) for subject in loaded + on_redis)
    yield from (single(subject, 4) for subject in loaded if subject.name != "beanstalkd-f1000")
    yield from (backlog(subject, 300_000) for subject in loaded if subject.name not in ("tocsin-http", "beanstalkd-f1000"))
    yield from _pushes(names, 4, 8)


def _full(names, repeat):
    every = [subject for subject in subjects.SUBJECTS if subject.name in names and not subject.pushes]
    loaded = [subject for subject in every if subject.client == "load_bench"]
    main = [subject for subject in loaded if subject.embedded or subject.name in
            (subjects.REDIS_ALWAYS, subjects.REDIS_EVERYSEC, "beanstalkd-f1000")]
    on_redis = [subject for subject in loaded if subject.on_redis]
    compared = main + on_redis + [subject for subject in every if subject.name.startswith(("redis-slot-", "bullmq-"))]
    alone = [subject for subject in loaded if subject.name != subjects.TWO_NODES]
    first = repeat == 0
    if not first:  # who is named in no target is measured once
        every = compared
        alone = [subject for subject in alone if subject in compared]
    yield from (drain(subject, 6) for subject in every)
    # The last lives of a run wait for their due time: runs of the same length make that alike for all who are compared.
    yield from (life(subject, 20 if subject in compared else 12, FULL) for subject in every)
    # Who is far from a rate is asked for it once, and for a shorter time.
    yield from (steady(subject, 5_000, 30) for subject in main + [s for s in every if s not in loaded]
                if subject.name == "tocsin-resp" or first)
    yield from (steady(subject, 20_000, 30) for subject in main + on_redis if first or subject.name != subjects.TWO_NODES)
    yield from (steady(subject, 100_000, 30 if subject.ours else 10) for subject in main if subject.ours or first)
    yield from (single(subject, 6) for subject in alone)
    yield from (backlog(subject, 1_000_000) for subject in alone
                if subject.name != "beanstalkd-f0" and (subject.embedded or first))
    yield from (backlog(subject, 5_000_000) for subject in main if subject.ours or first)
    yield from _pushes(names, 6, 30)


def cells(form, names, repeats):
    """All cells, in rounds: a slow minute of the machine then hits every subject alike."""
    found = []
    for repeat in range(repeats):
        for cell in _short(names) if form == SHORT else _full(names, repeat):
            found.append(dataclasses.replace(cell, repeat=repeat))
    return found
