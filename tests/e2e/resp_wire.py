"""A RESP connection of our own: raw bytes where a client would hide them, and a strict reader of both protocols.

Bulk strings are bytes, simple strings `Simple`, errors `Error` (returned, not raised), maps dict, null None.
"""

import socket

from conftest import DEADLINE_S

RESP2_TYPES = b"+-:$*"


class Simple(str):
    """A simple string: a status."""


class Error(str):
    """An error: `CODE message`."""

    @property
    def code(self):
        return self.partition(" ")[0]

    @property
    def message(self):
        return self.partition(" ")[2]


class Closed(Exception):
    """The server closed the connection; `rest` is what it said that nobody had read."""

    def __init__(self, rest):
        super().__init__(f"closed after {bytes(rest)!r}")
        self.rest = bytes(rest)


def pack(*words):
    """One command as the array of bulk strings that every client sends."""
    raw = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(raw) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in raw)


class Wire:
    """One connection. With protocol=2 a type of RESP3 is a failure, and with protocol=3 a null of RESP2 is."""

    def __init__(self, server, protocol=2, auth=None):
        self.socket = socket.create_connection(("127.0.0.1", server.resp_port), timeout=DEADLINE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.at = 0
        self.protocol = 2
        if protocol == 3:
            self.hello(3, auth)
        elif auth is not None:
            assert self.call("AUTH", auth) == "OK"

    def hello(self, protocol, auth=None):
        """Changes the protocol; the answer comes in the new one."""
        self.protocol = protocol
        answer = self.call("HELLO", protocol, *([] if auth is None else ["AUTH", "default", auth]))
        assert not isinstance(answer, Error), answer
        return self.map(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, *words):
        self.socket.sendall(pack(*words))

    def send_raw(self, data):
        self.socket.sendall(data)

    def call(self, *words):
        self.send(*words)
        return self.read()

    def map(self, reply):
        """What the contract calls a map: in RESP2 a flat array."""
        if self.protocol == 3:
            assert isinstance(reply, dict), reply
            return {key.decode(): value for key, value in reply.items()}
        assert isinstance(reply, list) and len(reply) % 2 == 0, reply
        return {key.decode(): value for key, value in zip(reply[::2], reply[1::2])}

    def boolean(self, reply):
        if self.protocol == 3:
            assert isinstance(reply, bool), reply
        else:
            assert not isinstance(reply, bool) and reply in (0, 1), reply
        return bool(reply)

    def double(self, reply):
        assert isinstance(reply, float if self.protocol == 3 else bytes), reply
        return float(reply)

    def read(self):
        """The next reply."""
        kind, line = self._line()
        assert self.protocol == 3 or kind in RESP2_TYPES, f"{kind!r} is no type of RESP2"
        if kind in b"+-":
            return (Simple if kind == b"+" else Error)(line.decode())
        if kind == b":":
            return int(line)
        if kind == b"_":
            assert line == b"", line
            return None
        if kind == b"#":
            return {b"t": True, b"f": False}[line]
        if kind == b",":
            return float(line)
        assert kind in b"$*%", f"a reply must not begin with {kind + line!r}"
        return self._sized(kind, int(line))

    def _sized(self, kind, size):
        if size == -1:
            assert self.protocol == 2 and kind in b"$*", "the null of RESP3 is _"
            return None
        assert size >= 0
        if kind == b"$":
            value = self._take(size)
            assert self._take(2) == b"\r\n"
            return value
        if kind == b"*":
            return [self.read() for _ in range(size)]
        found = {}
        for _ in range(size):
            key = self.read()
            assert key not in found, f"{key!r} comes twice"
            found[key] = self.read()
        return found

    def read_all(self):
        """Until the server closes: the bytes that nobody had read."""
        try:
            while True:
                self._fill()
        except Closed as closed:
            return closed.rest
        except ConnectionResetError:
            return bytes(self.buffer[self.at :])

    def _line(self):
        while (end := self.buffer.find(b"\r\n", self.at)) < 0:
            self._fill()
        kind, line = bytes(self.buffer[self.at : self.at + 1]), bytes(self.buffer[self.at + 1 : end])
        self.at = end + 2
        return kind, line

    def _take(self, size):
        while len(self.buffer) - self.at < size:
            self._fill()
        self.at += size
        return bytes(self.buffer[self.at - size : self.at])

    def _fill(self):
        if self.at > 1 << 16:
            del self.buffer[: self.at]
            self.at = 0
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise Closed(self.buffer[self.at :])
        self.buffer += piece
