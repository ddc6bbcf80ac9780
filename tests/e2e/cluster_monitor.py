"""Reads along what a Redis does (MONITOR): how many commands each node sends, and whether a chore with an old epoch ever
changed anything.

A script is known by the first line of its source (`-- tocsin chores`), which the first call on each connection carries.
"""

import codecs
import collections
import hashlib
import re
import socket
import threading

WORD = re.compile(rb'"((?:[^"\\]|\\.)*)"')
NAME = re.compile(rb"-- tocsin (\w+)\n")
GROUP = re.compile(rb"\{[^}]*\.(\d+)\}owner$")
EPOCH_ARGUMENT = 3  # of the script `chores`: ARGV[4]


def words_of(line):
    return [codecs.escape_decode(word)[0] for word in WORD.findall(line)]


class Monitor:
    """`entry(line, by_script)` is called for each command, on a thread of its own; `by_script`: a script called it."""

    def __init__(self, server):
        self.socket = socket.create_connection((server.host, server.port))
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

    def entry(self, line, by_script):
        raise NotImplementedError

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.lines.close()
        self.socket.close()


class CommandCount(Monitor):
    """Commands that clients sent, by name."""

    def __init__(self, server):
        self.counts = collections.Counter()
        super().__init__(server)

    def entry(self, line, by_script):
        if not by_script:
            self.counts[WORD.search(line)[1].decode().upper()] += 1


class FenceWatch(Monitor):
    """Counts chores that were done and refused, and keeps those that were done with an epoch other than the group's."""

    def __init__(self, server, epochs):
        """`epochs`: of each group, while nobody changes them."""
        self.epochs = dict(epochs)
        self.done = self.refused = self.takes = 0
        self.stale = []
        self.names = {}  # of scripts, by digest
        self.chore = None  # the one under way: group and epoch
        super().__init__(server)

    def entry(self, line, by_script):
        if not by_script:
            self._end_chore()
            if b'"EVAL' in line[:64]:
                self._begin_script(words_of(line))
        elif self.chore and b'"ZRANGEBYSCORE"' in line[:64]:
            self._done()
        elif b'"HINCRBY"' in line[:64] and b'}owner" "epoch"' in line:
            self.epochs[int(GROUP.search(words_of(line)[1])[1])] += 1
            self.takes += 1

    def _begin_script(self, words):
        digest = words[1]
        if words[0].upper() == b"EVAL":
            digest = hashlib.sha1(words[1]).hexdigest().encode()
            name = NAME.search(words[1])
            self.names[digest] = name[1] if name else b""
        if self.names.get(digest) != b"chores":
            return
        arguments = 3 + int(words[2])
        group = int(GROUP.search(words[arguments - 1])[1])
        self.chore = (group, int(words[arguments + EPOCH_ARGUMENT]))

    def _done(self):
        group, epoch = self.chore
        self.done += 1
        if epoch != self.epochs[group]:
            self.stale.append(f"group {group}: epoch {epoch}, and Redis has {self.epochs[group]}")
        self.chore = None

    def _end_chore(self):
        if self.chore is not None:
            self.refused += 1
        self.chore = None
