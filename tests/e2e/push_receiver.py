"""A receiver of webhooks that misbehaves when it is told to, and keeps a record of what came and of what it has said. A
process of its own, so that it can be killed.

The record is a file of JSON lines, written before anything else happens: ["came", ns, id, token, attempt, due_ms, crc32 of
the body] with the request, ["said", ns, token, status] when its answer has been given to the system, and ["tick", ns, late_ns]
for a timer of its own that ought to have rung late_ns earlier, or a sync of a small file that took late_ns: what the machine
and its disk do to any program.
"""

import argparse
import asyncio
import json
import os
import sys
import threading
import time
import urllib.request
import zlib

from programs import Program, free_port, hold, hold_async

PYTHON = "/usr/bin/python3"
TICK_S = 0.005


class Receiver:
    def __init__(self, record):
        self.file = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.status, self.after_s = 204, 0.0

    def write(self, *line):
        os.write(self.file, json.dumps(line).encode() + b"\n")

    async def tick(self):
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_S
            await hold_async(TICK_S)
            self.write("tick", time.time_ns(), max(0, int((loop.time() - due) * 1e9)))

    def sync(self, path):
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        while True:
            began = time.monotonic_ns()
            os.write(file, b"sync")
            os.fsync(file)
            self.write("tick", time.time_ns(), time.monotonic_ns() - began)
            hold(TICK_S)

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                at_ns = time.time_ns()
                fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                if head[0].startswith("POST "):
                    await self.receive(at_ns, fields, body, reader, writer)
                else:
                    self.behave(body)
                    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def behave(self, body):
        if body:
            wanted = json.loads(body)
            self.status, self.after_s = wanted["status"], wanted["after_s"]

    async def receive(self, at_ns, fields, body, reader, writer):
        token = fields["tocsin-token"]
        number = (int(fields["tocsin-attempt"]), int(fields["tocsin-due-ms"]), zlib.crc32(body))
        self.write("came", at_ns, fields["tocsin-job-id"], token, *number)
        status = self.status
        if self.after_s is None:
            await reader.read()  # until the other side has gone
            raise ConnectionResetError
        if self.after_s:
            await hold_async(self.after_s)
        if reader.at_eof():
            raise ConnectionResetError  # nobody hears it any more
        writer.write(f"HTTP/1.1 {status} As Told\r\ncontent-length: 0\r\n\r\n".encode())
        self.write("said", time.time_ns(), token, status)


async def serve():
    parser = argparse.ArgumentParser()
    parser.add_argument("--record")
    parser.add_argument("--port", type=int)
    arguments = parser.parse_args()
    receiver = Receiver(arguments.record)
    threading.Thread(target=receiver.sync, args=[arguments.record + ".sync"], daemon=True).start()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", arguments.port, backlog=1024)
    await asyncio.gather(receiver.tick(), server.serve_forever())


class PushReceiver(Program):
    """The process, from the side of a test."""

    def __init__(self, folder):
        self.record_file = folder / "record"
        super().__init__([PYTHON, "-B", os.path.abspath(__file__), "--record", self.record_file], folder)
        self.without_port = self.arguments
        self.start_on_free_port()

    def _configure(self):
        self.port = free_port()
        self.arguments = [*self.without_port, "--port", str(self.port)]

    def _ready(self):
        return self._ask(b"")

    def _ask(self, body):
        request = urllib.request.Request(self.url, data=body, method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status == 204
        except OSError:
            return False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def behave(self, status=204, after_s=0.0):
        """How requests that come from now on are answered; after_s None: never."""
        assert self._ask(json.dumps({"status": status, "after_s": after_s}).encode())

    def record(self):
        """(what came, what was said, ticks), each as written but for the first word."""
        kinds = {"came": [], "said": [], "tick": []}
        for line in self.record_file.read_text().split("\n")[:-1]:
            kind, *rest = json.loads(line)
            kinds[kind].append(rest)
        return kinds["came"], kinds["said"], kinds["tick"]


if __name__ == "__main__":
    sys.exit(asyncio.run(serve()))
