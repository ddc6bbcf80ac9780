"""A receiver of webhooks: an HTTP server in a process of its own, so that it can be killed. The jobs say how it answers.

A job's header `answers` is a JSON list with an entry for each attempt, the last one for all further ones: a status, "hang" (no
answer until the other side gives up), or an object {"status", "headers", "body"}. Without it: 204. In a batch the entries are the
outcomes, such as {"outcome": "refuse"}. Every request is a line of JSON in the log before it is answered.
"""

import argparse
import base64
import http.server
import json
import os
import ssl
import sys
import threading
import time
import urllib.parse
import urllib.request

from programs import Program, free_port

PYTHON = "/usr/bin/python3"


def answer_for(headers, attempt):
    answers = json.loads(headers.get("answers", "[204]"))
    return answers[min(attempt, len(answers)) - 1]


def own_headers(fields):
    mark = "tocsin-header-"
    return {name[len(mark):]: urllib.parse.unquote(value) for name, value in fields.items() if name.startswith(mark)}


def outcomes_for(body):
    outcomes = []
    for job in json.loads(body)["jobs"]:
        answer = answer_for(job.get("headers", {}), job["attempt"])
        if answer != "leave out":
            outcomes.append({"id": job["id"], **({"outcome": "ok"} if answer == 204 else answer)})
    return {"status": 200, "body": json.dumps({"outcomes": outcomes})}


def handler(log):
    lock = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            self.send_response(204)
            self.end_headers()

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            fields = {name.lower(): value for name, value in self.headers.items()}
            line = {"path": self.path, "fields": fields, "body": base64.b64encode(body).decode(), "from": self.client_address[1],
                    "at_ms": time.time_ns() / 1e6}
            with lock:
                log.write(json.dumps(line).encode() + b"\n")
            if "tocsin-batch" in fields:
                return self.say(outcomes_for(body))
            answer = answer_for(own_headers(fields), int(fields["tocsin-attempt"]))
            if answer == "hang":
                self.rfile.read(1)  # until the other side has gone
                self.close_connection = True
                return
            self.say(answer if isinstance(answer, dict) else {"status": answer})

        def say(self, answer):
            body = answer.get("body", "").encode()
            self.send_response(answer["status"])
            for name, value in answer.get("headers", {}).items():
                self.send_header(name, value)
            if answer["status"] != 204:
                self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Handler


def serve():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--log")
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    arguments = parser.parse_args()
    log = open(arguments.log, "ab", buffering=0)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", arguments.port), handler(log))
    if arguments.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(arguments.certificate, arguments.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


class WebhookReceiver(Program):
    """The process, from the side of a test. `certificate` and `key`: it speaks TLS."""

    def __init__(self, folder, certificate=None, key=None):
        self.requests_file = folder / "requests"
        self.scheme = "https" if certificate else "http"
        self.tls = ["--certificate", certificate, "--key", key] if certificate else []
        super().__init__([PYTHON, "-B", os.path.abspath(__file__), "--log", self.requests_file, *self.tls], folder)
        self.without_port = self.arguments
        self.start_on_free_port()

    def _configure(self):
        self.port = free_port()
        self.arguments = [*self.without_port, "--port", str(self.port)]

    def _ready(self):
        context = ssl._create_unverified_context() if self.tls else None
        try:
            with urllib.request.urlopen(self.url("/"), timeout=1, context=context) as answer:
                return answer.status == 204
        except OSError:
            return False

    def url(self, path="/hook"):
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    def close(self):
        self.stop()

    def requests(self):
        """All that came so far: each with path, fields and body, the port that it came from, and when it came."""
        if not self.requests_file.exists():
            return []
        lines = self.requests_file.read_text().split("\n")[:-1]
        requests = [json.loads(line) for line in lines]
        for request in requests:
            request["body"] = base64.b64decode(request["body"])
        return requests

    def of(self, job_id):
        """The requests of one job."""
        return [request for request in self.requests() if request["fields"].get("tocsin-job-id") == job_id]


if __name__ == "__main__":
    sys.exit(serve())
