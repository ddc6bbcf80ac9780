"""What a run with a sink finds in addition to the figures of the load: what the server counted, how late its confirmations were, what the
receiver has, and what the receiver takes from a client that does nothing but send. All but findings() is pure."""

import re

import receivers

LATENESS = "tocsin_push_lateness_seconds"
OUTCOMES = "tocsin_push_outcomes_total"
CLOCK_MS = 1
SHARES = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}


def samples(text, name):
    """The samples of a metric: pairs of labels and a value."""
    found = []
    for labels, value in re.findall(rf"^{name}{{(.*)}} (\S+)$", text, re.MULTILINE):
        found.append((dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)))
    return found


def quantile_ms(buckets, share):
    """As Prometheus does it: straight lines within a bucket. `buckets`: (upper bound in seconds, how many up to it), in order."""
    if not buckets or buckets[-1][1] == 0:
        return None
    rank, low, below = share * buckets[-1][1], 0.0, 0.0
    for bound, up_to in buckets:
        if up_to >= rank and up_to > below:
            high = bound if bound != float("inf") else low
            return 1e3 * (low + (high - low) * (rank - below) / (up_to - below))
        low, below = bound, up_to
    return 1e3 * low


def lateness_ms(text):
    """Due to confirmed, from the server's histogram, whose buckets are powers of two of microseconds. Its clock has whole ms, which
    hides up to one: that is added."""
    buckets = sorted((float(labels["le"]), count) for labels, count in samples(text, LATENESS + "_bucket"))
    found = {name: quantile_ms(buckets, share) for name, share in SHARES.items()}
    found = {name: None if value is None else value + CLOCK_MS for name, value in found.items()}
    return {**found, "count": int(buckets[-1][1]) if buckets else 0}


def outcomes(text):
    return {labels["outcome"]: int(value) for labels, value in samples(text, OUTCOMES)}


def problem(jobs, counted, received):
    """Why the figures of a run do not count, or None."""
    bad = {name: count for name, count in counted.items() if name != "confirmed" and count}
    if bad or counted.get("confirmed") != jobs:
        return f"of {jobs} jobs the server counts {counted}"
    return None if received == jobs else f"the receiver has {received} of {jobs} jobs"


def findings(server, jobs, raw_jobs):
    """Figures of the run that has just ended on a receivers.Pushed; with `raw_jobs`, the receiver's limit too. It is measured twice:
    the first time may still warm the receiver up."""
    text = server.metrics()
    receiver = server.receiver
    found = {"outcomes": outcomes(text), "received": receiver.received(), "lateness_ms": lateness_ms(text)}
    wrong = problem(jobs, found["outcomes"], found["received"])
    if wrong:
        return {**found, "problem": wrong}
    if raw_jobs and receiver.has_limit:
        found["raw_runs_per_s"] = [receiver.raw(f"{receivers.TOPIC}_raw_{turn}", raw_jobs)["per_s"] for turn in range(2)]
        found["raw_per_s"] = max(found["raw_runs_per_s"])
    return found
