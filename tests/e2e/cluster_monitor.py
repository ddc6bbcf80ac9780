"""Reads along what a Redis does (MONITOR): how many commands each node sends, and whether a chore of anybody but the owner
of its group, with the owner's epoch, ever changed anything.
"""

import codecs
import collections
import itertools
import json
import re
import socket
import subprocess
import sys
import threading

from group_tags import NUMBERS

WORD = re.compile(rb'"((?:[^"\\]|\\.)*)"')
GROUP = re.compile(rb"(\{[^}]*\.\d+\})owner$")
EPOCH_ARGUMENT, NODE_ARGUMENT = 5, 9  # of the script `chores`: ARGV[6], ARGV[10]


def words_of(line):
    return [codecs.escape_decode(word)[0] for word in WORD.findall(line)]


class Monitor:
    """`entry(line, by_script)` is called for each command, on a thread of its own; `by_script`: a script called it."""

    cut_off = False  # the server ended the connection
    closing = False

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port))
        self.socket.sendall(b"MONITOR\r\n")
        self.lines = self.socket.makefile("rb")
        assert self.lines.readline() == b"+OK\r\n"
        self.thread = threading.Thread(target=self._read, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def _read(self):
        try:
            for line in self.lines:
                self.entry(line, b" lua] " in line[:48])
        except OSError:
            pass
        self.cut_off = not self.closing

    def entry(self, line, by_script):
        raise NotImplementedError

    def close(self):
        self.closing = True
        if self.thread.is_alive():
            self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.lines.close()
        self.socket.close()


class CommandCount(Monitor):
    """Commands that clients sent, by name."""

    def __init__(self, server):
        self.counts = collections.Counter()
        super().__init__(server.host, server.port)

    def entry(self, line, by_script):
        if not by_script:
            self.counts[WORD.search(line)[1].decode().upper()] += 1


class Fence(Monitor):
    """Counts the chores that were done, and those of old owners that were refused. Keeps what must not be: chores of others
    than the owner that were done (stale), and chores of the owner that were refused (denied)."""

    def __init__(self, host, port, owners):
        self.owners = owners  # group -> node and epoch, as Redis has them
        self.done = self.refused = self.takes = 0
        self.stale, self.denied = [], []
        self.chore = None  # the one under way: group, and node and epoch
        super().__init__(host, port)

    def entry(self, line, by_script):
        if not by_script:
            self._end_chore()
            if b'"EVAL' in line[:64]:
                self._begin_script(line)
        elif self.chore and b'"ZRANGEBYSCORE"' in line[:64]:
            self._done()
        elif b'"HSET"' in line[:64] and b'}owner" "node"' in line:
            self._owner(line)[0] = words_of(line)[3].decode()
        elif b'"HINCRBY"' in line[:64] and b'}owner" "epoch"' in line:
            self._owner(line)[1] += 1
            self.takes += 1

    def _owner(self, line):
        return self.owners[NUMBERS[GROUP.search(words_of(line)[1])[1].decode()]]

    def _begin_script(self, line):
        """The script `chores` alone has a slot's meta for its first key and the group's owner among the others."""
        count, first = (found[1] for found in itertools.islice(WORD.finditer(line), 2, 4))
        if not first.endswith(b":meta"):
            return
        words = words_of(line)
        arguments = 3 + int(count)
        if group := next(filter(None, map(GROUP.search, words[3:arguments])), None):
            who = [words[arguments + NODE_ARGUMENT].decode(), int(words[arguments + EPOCH_ARGUMENT])]
            self.chore = (NUMBERS[group[1].decode()], who)

    def _done(self):
        group, who = self.chore
        self.done += 1
        if who != self.owners[group]:
            self.stale.append(f"group {group}: {who}, and Redis has {self.owners[group]}")
        self.chore = None

    def _end_chore(self):
        if self.chore is None:
            return
        group, who = self.chore
        if who != self.owners[group]:
            self.refused += 1
        else:
            self.denied.append(f"group {group}: {who}")
        self.chore = None


class FenceWatch:
    """A Fence in a process of its own, so that its work does not hold up the clients of the test."""

    def __init__(self, server, owners):
        """`owners`: node and epoch of each group, while nobody changes them."""
        words = [server.host, str(server.port), json.dumps([owners[group] for group in sorted(owners)])]
        self.process = subprocess.Popen(
            [sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "ready\n"

    def close(self):
        """What it saw: done, refused, takes, stale, denied; and whether the server ended it before."""
        found, _ = self.process.communicate(timeout=30)
        return json.loads(found)


def main():
    """Watches until its input ends."""
    host, port, owners = sys.argv[1:]
    fence = Fence(host, int(port), dict(enumerate(json.loads(owners)))).start()
    print("ready", flush=True)
    sys.stdin.read()
    fence.close()
    print(json.dumps({name: getattr(fence, name) for name in ("done", "refused", "takes", "stale", "denied", "cut_off")}))


if __name__ == "__main__":
    main()
