"""Sends requests without end, in a process of its own, so that it does not hold up the test that measures.

    with Flood(server, requests, connections) as flood:
        ...
    flood.statuses                     how often each status came

Every connection sends the requests in turn, from a place of its own on. It waits for each answer, and connects again if the server
closes. The process ends when its standard input does.
"""

import collections
import contextlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading

STOP_S = 20
HEAD = re.compile(rb"HTTP/1\.1 (\d+) (?s:.*?)Content-Length: (\d+)(?s:.*?)\r\n\r\n")


class Flood:
    def __init__(self, server, requests, connections):
        self.requests = tempfile.NamedTemporaryFile()  # noqa: SIM115 (closed with the flood)
        for request in requests:
            self.requests.write(b"%d\n%s" % (len(request), request))
        self.requests.flush()
        self.words = [sys.executable, pathlib.Path(__file__), str(server.port), str(connections), self.requests.name]
        self.statuses = collections.Counter()

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        return self

    def begin(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def __exit__(self, *_):
        out, _ = self.process.communicate(timeout=STOP_S)
        self.requests.close()
        self.statuses.update(json.loads(out))


def read_status(wire):
    got = b""
    while not (head := HEAD.match(got)) or len(got) < head.end() + int(head[2]):
        piece = wire.recv(65536)
        if not piece:
            raise ConnectionError
        got += piece
    return head[1].decode()


def send(port, requests, first, ended, statuses):
    at = first
    while not ended.is_set():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=STOP_S) as wire:
            while not ended.is_set():
                wire.sendall(requests[at % len(requests)])
                statuses[read_status(wire)] += 1
                at += 1


def main():
    port, connections, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    requests = []
    with open(name, "rb") as file:
        while size := file.readline():
            requests.append(file.read(int(size)))
    ended, statuses = threading.Event(), [collections.Counter() for _ in range(connections)]
    firsts = [i * len(requests) // connections for i in range(connections)]
    threads = [threading.Thread(target=send, args=(port, requests, *each)) for each in zip(firsts, [ended] * connections, statuses)]
    print("ready", flush=True)
    sys.stdin.readline()
    for thread in threads:
        thread.start()
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()
    print(json.dumps(sum(statuses, collections.Counter())))


if __name__ == "__main__":
    main()
