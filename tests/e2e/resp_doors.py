"""The RESP doors into a server, with clients that are not ours; see doors.py for what a door is."""

import json
import re
import subprocess
from unittest.mock import ANY

import redis

from conftest import DEADLINE_S, ENVIRONMENT, ROOT
from doors import Refused, given

# The outcomes of a submit that HTTP shows as such, and that are errors here.
NOT_STORED = ("conflict", "in_flight", "over_capacity", "storage_full", "overloaded", "unavailable")
DELIVERED = ("id", "token", "payload", "attempt", "max_attempts", "due_ms", "lease_deadline_ms", "key", "headers")


def read_codes():
    """The code of HTTP for each of RESP: of several the first."""
    rows = re.findall(r"^\| `(\w+)` \| \d+ \| `(\w+)` \|", (ROOT / "docs/errors.md").read_text(), re.M)
    return {resp: name for name, resp in reversed(rows)}


CODES = read_codes()


def refused(text):
    """The exception for `CODE message`; what is at fault is in the message alone."""
    code, _, message = text.partition(" ")
    return Refused(CODES.get(code, code), message, ANY)


def mapping(reply):
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def options(**values):
    words = []
    for name, value in values.items():
        if value is not None:
            words += [name.upper(), value]
    return words


def job_words(payload="", delay_ms=None, due_ms=None, id=None, key=None, headers=None, trigger=None, count=None,
              max_attempts=None, on_conflict=None):
    words = [payload, *options(id=id, key=key, delay=delay_ms, at=due_ms, count=count, trigger=trigger)]
    words += options(attempts=max_attempts) + ([on_conflict.upper()] if on_conflict else [])
    for name, value in (headers or {}).items():
        words += ["HEADER", name, value]
    return words


def job_of(fields):
    job = mapping(fields)
    if "headers" in job:
        job["headers"] = mapping(job["headers"])
    return job


def delivery_of(fields):
    job = dict(zip(DELIVERED, fields, strict=True))
    job["headers"] = mapping(job["headers"])
    return {name: value for name, value in job.items() if value is not None}


def topic_of(fields):
    topic = mapping(fields)
    topic["paused"] = bool(topic["paused"])
    for name in ("figures", "lateness_ms", "delivery"):
        if name in topic:
            topic[name] = mapping(topic[name])
    return topic


def stats_of(text):
    """INFO as /v1/stats shows it: what `totals_` and `conservation_` begin is of the object of that name."""
    stats = {"totals": {}, "conservation": {}}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, value = line.partition(":")
        value = int(value) if re.fullmatch(r"-?\d+", value) else value
        group, _, rest = name.partition("_")
        if group in stats:
            stats[group][rest] = value
        else:
            stats[name.removeprefix("tocsin_")] = value
    return stats


def cluster_of(fields):
    cluster = mapping(fields)
    for name in ("members", "groups", "servers"):
        cluster[name] = [mapping(one) for one in cluster[name]]
    cluster["coordinator"] = mapping(cluster["coordinator"])
    for one in (*cluster["members"], *cluster["servers"], cluster["coordinator"]):
        for name in ("self", "connected"):
            if name in one:
                one[name] = bool(one[name])
    return cluster


class RespDoor:
    """The calls as commands; subclasses send them. A reply has text, numbers, None, lists, and maps in either form."""

    def send(self, *words):
        raise NotImplementedError

    def submit(self, topic, **job):
        try:
            job_id, outcome, due_ms = self.send("JOB.SUBMIT", topic, *job_words(**job))
        except Refused as error:
            outcome = error.message.partition(":")[0]
            if outcome not in NOT_STORED:
                raise
            return {"outcome": outcome, **given(id=job.get("id"))}
        return {"id": job_id, "outcome": outcome, "due_ms": due_ms}

    def submit_many(self, topic, jobs):
        return [self.submit(topic, **job) for job in jobs]

    def reserve(self, topic, max=1, wait_ms=0, lease_ms=None):
        jobs = self.send("JOB.RESERVE", topic, *options(max=max, wait=wait_ms, lease=lease_ms))
        return [delivery_of(job) for job in jobs]

    def ack(self, topic, *tokens):
        return self.send("JOB.ACK", topic, *tokens)

    def nack(self, topic, *tokens, delay_ms=None, reason=None):
        return self.send("JOB.NACK", topic, *tokens, *options(delay=delay_ms, reason=reason))

    def extend(self, topic, *tokens, lease_ms=None):
        return self.send("JOB.EXTEND", topic, *tokens, *options(lease=lease_ms))

    def cancel(self, topic, job_id, key=None):
        return self.send("JOB.CANCEL", topic, job_id, *options(key=key))

    def amend(self, topic, job_id, key=None, delay_ms=None, due_ms=None, payload=None):
        words = options(key=key, delay=delay_ms, at=due_ms, payload=payload)
        outcome, due_ms = self.send("JOB.AMEND", topic, job_id, *words)
        return {"outcome": outcome, **given(due_ms=due_ms)}

    def fire(self, topic, job_id, key=None):
        return self.send("JOB.FIRE", topic, job_id, *options(key=key))[0]

    def count(self, topic, job_id, event, by=1, key=None):
        outcome, left = self.send("JOB.COUNT", topic, job_id, event, *options(by=by, key=key))
        return {"outcome": outcome, "left": left}

    def get(self, topic, job_id, key=None):
        job = self.send("JOB.GET", topic, job_id, *options(key=key))
        if job is None:
            raise Refused("not_found", "a null", "id")
        return job_of(job)

    def list(self, topic, state="scheduled", page=1000):
        jobs, cursor = [], None
        while True:
            cursor, found = self.send("JOB.LIST", topic, *options(state=state, limit=page, cursor=cursor))
            jobs += map(job_of, found)
            if cursor is None:
                return jobs

    def topics(self):
        return [topic_of(one) for one in self.send("TOPIC.LIST")]

    def topic(self, topic):
        return topic_of(self.send("TOPIC.GET", topic))

    def set_topic(self, topic, **settings):
        words = [word for name, value in settings.items() for word in (name, str(value).lower())]
        return topic_of(self.send("TOPIC.SET", topic, *words))

    def pause(self, topic):
        return topic_of(self.send("TOPIC.PAUSE", topic))

    def resume(self, topic):
        return topic_of(self.send("TOPIC.RESUME", topic))

    def purge(self, topic):
        return self.send("TOPIC.PURGE", topic)

    def drop(self, topic):
        assert self.send("TOPIC.DROP", topic) == "OK"
        return "dropped"

    def redrive(self, topic):
        return self.send("JOB.REDRIVE", topic)

    def purge_dead(self, topic):
        return self.send("TOPIC.PURGE", topic, "DEAD")

    def stats(self):
        return stats_of(self.send("INFO"))

    def cluster(self):
        return cluster_of(self.send("NODES"))

    def advance(self, ms):
        return self.send("CLOCK.ADVANCE", ms)

    def close(self):
        pass


class RedisPyDoor(RespDoor):
    """python3-redis, which speaks RESP2. Many jobs go as one pipeline."""

    def __init__(self, server):
        tls = {} if server.ca is None else {"ssl": True, "ssl_ca_certs": server.ca}
        self.client = redis.Redis("127.0.0.1", server.resp_port, socket_timeout=DEADLINE_S, decode_responses=True, **tls)
        # The library knows the INFO of Redis, and makes a dictionary of what looks like it.
        self.client.response_callbacks.clear()

    def send(self, *words):
        try:
            return self.client.execute_command(*words)
        except redis.ResponseError as error:
            raise refused(str(error)) from error

    def submit_many(self, topic, jobs):
        pipeline = self.client.pipeline(transaction=False)
        for job in jobs:
            pipeline.execute_command("JOB.SUBMIT", topic, *job_words(**job))
        return [dict(zip(("id", "outcome", "due_ms"), reply)) for reply in pipeline.execute()]

    def close(self):
        self.client.close()


class RedisCliDoor(RespDoor):
    """redis-cli, which speaks RESP3 for its JSON output."""

    def __init__(self, server):
        self.port = server.resp_port

    def send(self, *words):
        done = subprocess.run(
            ["redis-cli", "-p", str(self.port), "--json", "-e", *map(str, words)],
            capture_output=True, text=True, timeout=DEADLINE_S, env=ENVIRONMENT,
        )
        if done.returncode != 0:
            raise refused(done.stderr.strip())
        return done.stdout if words[0] == "INFO" else json.loads(done.stdout)  # it shows INFO as it is


RESP_DOORS = {"redis-py": RedisPyDoor, "redis-cli": RedisCliDoor}
