"""The ways into a server. Each door offers the same calls and gives the same plain values, so that a scenario is written
once and runs through all of them.

A call answers what the wire says (dictionaries and lists in the words of the HTTP API), or raises Refused.
"""

import json
import subprocess
import urllib.parse

import httpx

from conftest import BIN, DEADLINE_S, ENVIRONMENT
from openapi import Contract


class Refused(Exception):
    """An error answer. `code` is one of docs/errors.md."""

    def __init__(self, code, message, field=None):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.field = field


def path_of(*parts):
    return "/v1/topics/" + "/".join(urllib.parse.quote(part, safe="") for part in parts)


def given(**fields):
    return {name: value for name, value in fields.items() if value is not None}


class HttpDoor:
    """The calls over HTTP; subclasses send them with a client that is not ours."""

    def send(self, method, path, body=None):
        """(status, text of the answer)"""
        raise NotImplementedError

    def call(self, method, path, body=None):
        status, text = self.send(method, path, body)
        answer = json.loads(text)
        if "error" in answer:
            assert status >= 400, text
            raise Refused(answer["error"]["code"], answer["error"]["message"], answer["error"].get("field"))
        return answer

    @staticmethod
    def job_path(topic, job_id, key, *rest):
        return path_of(topic, "jobs", job_id, *rest) + (f"?key={urllib.parse.quote(key, safe='')}" if key else "")

    def submit(self, topic, **job):
        return self.call("POST", path_of(topic, "jobs"), job)["jobs"][0]

    def submit_many(self, topic, jobs):
        return self.call("POST", path_of(topic, "jobs"), {"jobs": jobs})["jobs"]

    def reserve(self, topic, max=1, wait_ms=0, lease_ms=None):
        body = given(max=max, wait_ms=wait_ms, lease_ms=lease_ms)
        return self.call("POST", path_of(topic, "reserve"), body)["jobs"]

    def settle(self, verb, topic, tokens, **fields):
        results = self.call("POST", path_of(topic, verb), {"tokens": tokens, **fields})["results"]
        assert [result["token"] for result in results] == tokens
        return [result["outcome"] for result in results]

    def ack(self, topic, *tokens):
        return self.settle("ack", topic, list(tokens))

    def nack(self, topic, *tokens, delay_ms=None, reason=None):
        return self.settle("nack", topic, list(tokens), **given(delay_ms=delay_ms, reason=reason))

    def extend(self, topic, *tokens, lease_ms=None):
        return self.settle("extend", topic, list(tokens), **given(lease_ms=lease_ms))

    def cancel(self, topic, job_id, key=None):
        return self.call("DELETE", self.job_path(topic, job_id, key))["outcome"]

    def amend(self, topic, job_id, key=None, **fields):
        return self.call("PATCH", self.job_path(topic, job_id, key), fields)

    def fire(self, topic, job_id, key=None):
        return self.call("POST", self.job_path(topic, job_id, key, "fire"))["outcome"]

    def count(self, topic, job_id, event, by=1, key=None):
        return self.call("POST", self.job_path(topic, job_id, key, "count"), {"event": event, "by": by})

    def get(self, topic, job_id, key=None):
        return self.call("GET", self.job_path(topic, job_id, key))

    def list(self, topic, state="scheduled", page=1000):
        jobs, cursor = [], ""
        while True:
            query = given(state=state, limit=page, cursor=cursor or None)
            answer = self.call("GET", path_of(topic, "jobs") + "?" + urllib.parse.urlencode(query))
            jobs += answer["jobs"]
            cursor = answer.get("cursor")
            if not cursor:
                return jobs

    def topics(self):
        return self.call("GET", "/v1/topics")["topics"]

    def topic(self, topic):
        return self.call("GET", path_of(topic))

    def set_topic(self, topic, **settings):
        return self.call("PUT", path_of(topic), settings)

    def pause(self, topic):
        return self.call("POST", path_of(topic, "pause"))

    def resume(self, topic):
        return self.call("POST", path_of(topic, "resume"))

    def purge(self, topic):
        return self.call("POST", path_of(topic, "purge"))["purged"]

    def drop(self, topic):
        return self.call("DELETE", path_of(topic))["outcome"]

    def redrive(self, topic):
        return self.call("POST", path_of(topic, "dead", "redrive"))["redriven"]

    def purge_dead(self, topic):
        return self.call("POST", path_of(topic, "dead", "purge"))["purged"]

    def stats(self):
        return self.call("GET", "/v1/stats")

    def cluster(self):
        return self.call("GET", "/v1/cluster")

    def advance(self, ms):
        return self.call("POST", "/v1/clock/advance", {"ms": ms})["now_ms"]

    def close(self):
        pass


class HttpxDoor(HttpDoor):
    """python3-httpx. Everything that goes through it is held against the server's own description."""

    def __init__(self, server):
        self.url = server.url
        self.client = httpx.Client(timeout=DEADLINE_S, verify=server.ca or True)
        self.contract = Contract(self.client.get(server.url + "/v1/openapi.json").json())

    def send(self, method, path, body=None):
        content = None if body is None else json.dumps(body)
        answer = self.client.request(method, self.url + path, content=content)
        if answer.status_code < 400:
            self.contract.check_request(method, path, content)
        self.contract.check_answer(method, path, answer.status_code, answer.text, answer.headers["content-type"])
        return answer.status_code, answer.text

    def close(self):
        self.client.close()


class CurlDoor(HttpDoor):
    def __init__(self, server):
        self.url = server.url

    def send(self, method, path, body=None):
        command = ["curl", "--silent", "--show-error", "--request", method, "--write-out", "\n%{http_code}"]
        command += ["--max-time", str(DEADLINE_S), "--compressed", self.url + path]
        if body is not None:
            command += ["--data-binary", "@-"]
        done = subprocess.run(
            command, input=None if body is None else json.dumps(body), capture_output=True, text=True, timeout=DEADLINE_S
        )
        assert done.returncode == 0, done.stderr
        text, _, status = done.stdout.rpartition("\n")
        return int(status), text


class CommandDoor:
    """The `tocsin` command."""

    def __init__(self, server):
        self.url = server.url

    def run(self, *words, stdin=None):
        return subprocess.run(
            [BIN / "tocsin", *words, "--server", self.url, "--json"],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            env=ENVIRONMENT,
        )

    def call(self, *words, stdin=None):
        """The objects that it prints, one a line."""
        done = self.run(*words, stdin=stdin)
        if done.stderr and not done.stdout:
            self.refuse(done)
        return [json.loads(line) for line in done.stdout.splitlines()]

    @staticmethod
    def refuse(done):
        # tocsin: code: message (field)
        assert done.stderr.startswith("tocsin: "), done
        code, _, message = done.stderr[len("tocsin: ") :].strip().partition(": ")
        message, _, field = message.rpartition(" (") if message.endswith(")") else (message, "", "")
        raise Refused(code, message, field.removesuffix(")") or None)

    @staticmethod
    def flags(**values):
        words = []
        for name, value in values.items():
            if value is not None:
                words += ["--" + name.replace("_", "-"), str(value)]
        return words

    @staticmethod
    def when(delay_ms=None, due_ms=None):
        words = [] if delay_ms is None else ["--in", f"{delay_ms}ms"]
        return words + ([] if due_ms is None else ["--at", f"@{due_ms}"])

    def submit(
        self,
        topic,
        payload="",
        delay_ms=None,
        due_ms=None,
        id=None,
        key=None,
        headers=None,
        trigger=None,
        count=None,
        max_attempts=None,
        on_conflict=None,
    ):
        words = ["submit", topic, *self.when(delay_ms, due_ms), *self.flags(id=id, key=key, attempts=max_attempts)]
        words += self.flags(trigger=trigger, count=count, on_conflict=on_conflict)
        for name, value in (headers or {}).items():
            words += ["--header", f"{name}={value}"]
        return self.call(*words, "--file", "-", stdin=payload)[0]

    def submit_many(self, topic, jobs):
        return [self.submit(topic, **job) for job in jobs]

    def reserve(self, topic, max=1, wait_ms=0, lease_ms=None):
        lease = None if lease_ms is None else f"{lease_ms}ms"
        return self.call("reserve", topic, *self.flags(max=max, wait=f"{wait_ms}ms", lease=lease))

    def settle(self, verb, topic, tokens, *words):
        results = self.call(verb, topic, *tokens, *words)
        assert [result["token"] for result in results] == list(tokens)
        return [result["outcome"] for result in results]

    def ack(self, topic, *tokens):
        return self.settle("ack", topic, tokens)

    def nack(self, topic, *tokens, delay_ms=None, reason=None):
        return self.settle("nack", topic, tokens, *self.when(delay_ms), *self.flags(reason=reason))

    def extend(self, topic, *tokens, lease_ms=None):
        return self.settle("extend", topic, tokens, *self.flags(lease=None if lease_ms is None else f"{lease_ms}ms"))

    def cancel(self, topic, job_id, key=None):
        return self.call("cancel", topic, job_id, *self.flags(key=key))[0]["outcome"]

    def amend(self, topic, job_id, key=None, delay_ms=None, due_ms=None, payload=None):
        words = ["amend", topic, job_id, *self.flags(key=key), *self.when(delay_ms, due_ms)]
        return self.call(*words, *([] if payload is None else ["--file", "-"]), stdin=payload)[0]

    def fire(self, topic, job_id, key=None):
        return self.call("fire", topic, job_id, *self.flags(key=key))[0]["outcome"]

    def count(self, topic, job_id, event, by=1, key=None):
        return self.call("count", topic, job_id, *self.flags(event=event, by=by, key=key))[0]

    def get(self, topic, job_id, key=None):
        return self.call("get", topic, job_id, *self.flags(key=key))[0]

    def list(self, topic, state="scheduled", page=1000):
        return self.call("list", topic, "--state", state, "--all")

    def topics(self):
        return self.call("topics")

    def topic(self, topic):
        return self.call("topic", "get", topic)[0]

    def set_topic(self, topic, **settings):
        words = self.flags(
            slots=settings.pop("slots", None),
            capacity_jobs=settings.pop("capacity_jobs", None),
            capacity_bytes=settings.pop("capacity_bytes", None),
            attempts=settings.pop("max_attempts", None),
            count=settings.pop("count_limit", None),
        )
        names = {"lease_ms": "lease", "backoff_base_ms": "backoff", "backoff_max_ms": "backoff-max"}
        names["retention_ms"] = "retention"
        for name, flag in names.items():
            if name in settings:
                words += ["--" + flag, f"{settings.pop(name)}ms"]
        if "paused" in settings:
            words += ["--paused", "yes" if settings.pop("paused") else "no"]
        assert not settings, settings
        return self.call("topic", "set", topic, *words)[0]

    def pause(self, topic):
        return self.call("topic", "pause", topic)[0]

    def resume(self, topic):
        return self.call("topic", "resume", topic)[0]

    def purge(self, topic):
        return self.call("topic", "purge", topic, "--yes")[0]["purged"]

    def drop(self, topic):
        return self.call("topic", "drop", topic, "--yes")[0]["outcome"]

    def redrive(self, topic):
        return self.call("dead", "redrive", topic, "--yes")[0]["redriven"]

    def purge_dead(self, topic):
        return self.call("dead", "purge", topic, "--yes")[0]["purged"]

    def stats(self):
        return self.call("stats")[0]

    def cluster(self):
        return self.call("cluster")[0]

    def advance(self, ms):
        return self.call("clock", "advance", "--by", f"{ms}ms")[0]["now_ms"]

    def close(self):
        pass


DOORS = {"httpx": HttpxDoor, "curl": CurlDoor, "tocsin": CommandDoor}
