"""A small client for the examples, on the standard library alone."""

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

SERVER = os.environ.get("TOCSIN_SERVER", "http://127.0.0.1:7420")


def send(method, path, body=None, timeout=30):
    """The status and the JSON of the answer. Ends the program where there is none."""
    request = urllib.request.Request(SERVER + path, method=method, data=json.dumps(body or {}).encode())
    if token := os.environ.get("TOCSIN_TOKEN"):
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except OSError as error:
        sys.exit(f"cannot reach {SERVER}: {error}; is the server running?")


def call(method, path, body=None, timeout=30):
    """The JSON of the answer. Ends the program where the server refuses the call."""
    status, answer = send(method, path, body, timeout)
    if status >= 400:
        sys.exit(f"{method} {path}: {status} {answer}")
    return answer


def expect(real, wanted, what):
    if real != wanted:
        sys.exit(f"{what}: expected {wanted!r}, got {real!r}")


class Clock:
    """The server's. A virtual one is advanced; with a real one we wait, so the examples shorten their times."""

    def __init__(self):
        status, answer = send("POST", "/v1/clock/advance", {"ms": 0})
        if status not in (200, 404):
            sys.exit(f"{SERVER}: {status} {answer}")
        self.virtual = status == 200

    def now_ms(self):
        if self.virtual:
            return call("POST", "/v1/clock/advance", {"ms": 0})["now_ms"]
        return time.time_ns() // 1_000_000

    def passes(self, ms):
        if self.virtual:
            call("POST", "/v1/clock/advance", {"ms": ms})
        else:
            time.sleep(ms / 1000)


class Topic:
    """A topic of its own for this run, removed at the end."""

    def __init__(self, name, **settings):
        self.name = f"example.{name}.{os.getpid()}-{time.time_ns()}"
        self.path = "/v1/topics/" + self.name
        call("PUT", self.path, settings)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        call("DELETE", self.path)

    def job_path(self, job_id):
        return f"{self.path}/jobs/{urllib.parse.quote(job_id, safe='')}"

    def submit(self, **job):
        """The outcome and the due time. Repeated after a lost connection, the same id is stored once."""
        answer = call("POST", self.path + "/jobs", job)["jobs"][0]
        return answer["outcome"], answer.get("due_ms")

    def reserve(self, wait_ms=0, **fields):
        return call("POST", self.path + "/reserve", {"wait_ms": wait_ms, **fields}, 30 + wait_ms / 1000)["jobs"]

    def settle(self, verb, job, **fields):
        return call("POST", f"{self.path}/{verb}", {"tokens": [job["token"]], **fields})["results"][0]["outcome"]
