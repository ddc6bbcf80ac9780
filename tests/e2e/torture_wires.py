"""One connection of a torture client over HTTP or over RESP: the same calls and the same plain answers.

It is made again when it is lost. A call answers, or raises Refused or Lost.
"""

import http.client
import json
import urllib.parse

import redis

from conftest import DEADLINE_S
from resp_doors import delivery_of, job_words, options

TOPIC = "t"
NOTHING_DONE = ("OVERLOADED", "SHUTTINGDOWN", "STORAGEFULL")
REFUSED = "refused"  # the outcome of one job of a batch: nothing was done about it
UNAVAILABLE = "UNAVAILABLE"  # what is behind the server did not answer: the call may have reached it


class Refused(Exception):
    """Nothing was done: there was no connection, or the server said so."""


class Lost(Exception):
    """The connection was lost while a call was under way: it may have happened or not."""


def known(outcome):
    """The outcome of one job of a batch; None where it is unknown."""
    if outcome == "storage_full":
        return REFUSED  # the others are stored
    return None if outcome == UNAVAILABLE.lower() else outcome


class HttpWire:
    def __init__(self, server, topic=TOPIC, timeout_s=DEADLINE_S):
        self.topic = topic
        host = urllib.parse.urlsplit(server.url).hostname
        self.connection = http.client.HTTPConnection(host, server.port, timeout=timeout_s)

    def submit(self, jobs):
        answers = self.call("POST", "/jobs", {"jobs": jobs} if len(jobs) > 1 else jobs[0])["jobs"]
        return [{**answer, "outcome": known(answer["outcome"])} for answer in answers]

    def cancel(self, job_id):
        return self.call("DELETE", f"/jobs/{job_id}")["outcome"]

    def reserve(self, **fields):
        return self.call("POST", "/reserve", fields)["jobs"]

    def settle(self, kind, tokens, **fields):
        results = self.call("POST", f"/{kind}", {"tokens": tokens, **fields})["results"]
        assert [result["token"] for result in results] == tokens, results
        return [known(result["outcome"]) for result in results]

    def abandon_reserve(self, **fields):
        """Sends a request and goes away without the answer."""
        self.connect()
        try:
            self.send("POST", "/reserve", fields)
        except (OSError, http.client.HTTPException):
            pass
        self.connection.close()

    def call(self, method, path, body=None):
        self.connect()
        try:
            self.send(method, path, body)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Lost from error
        if answer.status == 503 and "error" in json.loads(text):
            raise Lost if json.loads(text)["error"]["code"] == UNAVAILABLE.lower() else Refused
        if answer.status == 507:
            raise Refused
        assert answer.status in (200, 201, 503), f"{method} {path}: {answer.status} {text[:300]}"
        return json.loads(text)

    def connect(self):
        if self.connection.sock is None:
            try:
                self.connection.connect()
            except OSError as error:
                self.connection.close()
                raise Refused from error

    def send(self, method, path, body):
        self.connection.request(method, f"/v1/topics/{self.topic}{path}", None if body is None else json.dumps(body))

    def close(self):
        self.connection.close()


class RespWire:
    """python3-redis, one level below its client, which would send a lost command again by itself."""

    def __init__(self, server, topic=TOPIC, timeout_s=DEADLINE_S):
        self.topic = topic
        host = urllib.parse.urlsplit(server.url).hostname
        self.connection = redis.Connection(host, server.resp_port, socket_timeout=timeout_s, decode_responses=True)

    def submit(self, jobs):
        """Many jobs are a pipeline."""
        replies = self.replies(*[["JOB.SUBMIT", self.topic, *job_words(**job)] for job in jobs])
        return [{"outcome": self.failed(reply)} if isinstance(reply, redis.ResponseError)
                else dict(zip(("id", "outcome", "due_ms"), reply, strict=True)) for reply in replies]

    def cancel(self, job_id):
        return self.call(["JOB.CANCEL", self.topic, job_id])[0]

    def reserve(self, max, wait_ms, lease_ms):
        jobs = self.call(["JOB.RESERVE", self.topic, *options(max=max, wait=wait_ms, lease=lease_ms)])[0]
        return [delivery_of(job) for job in jobs]

    def settle(self, kind, tokens, delay_ms=None, reason=None):
        outcomes = self.call([f"JOB.{kind.upper()}", self.topic, *tokens, *options(delay=delay_ms, reason=reason)])[0]
        return [known(outcome) for outcome in outcomes]

    def abandon_reserve(self, max, wait_ms, lease_ms):
        """Sends a command and goes away without the answer."""
        self.connect()
        try:
            self.connection.send_command("JOB.RESERVE", self.topic, *options(max=max, wait=wait_ms, lease=lease_ms))
        except redis.ConnectionError:
            pass
        self.close()

    @staticmethod
    def failed(error):
        """The outcome of a command that answered an error."""
        if str(error).startswith(NOTHING_DONE):
            return REFUSED
        assert str(error).startswith(UNAVAILABLE), error
        return None

    def call(self, *commands):
        """The replies to a pipeline, none of which may be an error."""
        replies = self.replies(*commands)
        errors = [reply for reply in replies if isinstance(reply, redis.ResponseError)]
        if errors:
            raise Refused if all(self.failed(error) for error in errors) and len(errors) == len(replies) else Lost
        return replies

    def replies(self, *commands):
        """Of a pipeline, in which some may be errors."""
        self.connect()
        try:
            self.connection.send_packed_command(self.connection.pack_commands(commands))
            replies = [self.read() for _ in commands]
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            self.close()
            raise Lost from error
        return replies

    def read(self):
        try:
            return self.connection.read_response()
        except redis.ResponseError as error:
            return error

    def connect(self):
        try:
            self.connection.connect()
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            self.close()
            raise Refused from error

    def close(self):
        self.connection.disconnect()
