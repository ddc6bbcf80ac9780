"""Bytes on the RESP door: how commands may be cut, joined and malformed, and what the server takes of them."""

import random
import socket
import threading

import pytest

from conftest import Server
from resp_wire import Error, Wire, pack

MIB = 1 << 20


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("wire") / "data", "--clock", "virtual", "--shards", "2")
    yield one
    assert one.stop() == 0, "".join(one.errors)


def rss_bytes(server):
    for line in open(f"/proc/{server.process.pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def exchange(server, data):
    """Sends bytes on a new connection, and nothing more; all that comes back until the server closes."""
    with Wire(server) as wire:
        try:
            wire.send_raw(data)
            wire.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it was closed meanwhile
        return wire.read_all()


def test_inline_commands(shared):
    with Wire(shared) as wire:
        wire.send_raw(b"PING\r\nping hello\n\r\n\n  \tPING  tabs\t\r\n")
        assert [wire.read(), wire.read(), wire.read()] == ["PONG", b"hello", b"tabs"]
        wire.send_raw(b'JOB.SUBMIT inline "two \\"words\\"" ID \'q 1\'\r\n' + pack("PING") + b'JOB.GET inline "q 1"\n')
        assert wire.read()[:2] == [b"q 1", "accepted"]
        assert wire.read() == "PONG"
        assert wire.map(wire.read())["payload"] == b'two "words"'
    assert exchange(shared, b'PING "open\r\nPING\r\n').startswith(b"-INVALID protocol: ")


def test_empty_commands_are_passed_over(shared):
    with Wire(shared) as wire:
        wire.send_raw(b"*0\r\n\r\n*-1\r\n" + pack("PING"))
        assert wire.read() == "PONG"


def test_an_inline_command_is_bounded(shared):
    with Wire(shared) as wire:
        wire.send_raw(b"PING " + b"x" * 60_000 + b"\r\n")
        assert wire.read() == b"x" * 60_000
    with Wire(shared) as wire:
        wire.send_raw(b"PING " + b"x" * 70_000)  # no end of the line: it must not be waited for
        assert wire.read_all().startswith(b"-TOOLARGE protocol: ")


HTTP = [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
    b"POST /v1/topics/web/jobs HTTP/1.0\r\n\r\n",
    b"PUT / HTTP/1.1\r\n\r\n",
    b"OPTIONS / HTTP/1.1\r\nOrigin: http://evil.example\r\n\r\n",
    b"HEAD / HTTP/1.1\r\n\r\n",
    b"Host: x\r\nX: y\r\n",
]


@pytest.mark.parametrize("head", HTTP, ids=lambda head: head.split(b"\r")[0].decode().strip())
def test_http_is_dropped_and_nothing_of_it_is_done(shared, head):
    body = b"JOB.SUBMIT web inline\r\n" + pack("JOB.SUBMIT", "web", "x") * 3 + b"PING\r\n"
    assert exchange(shared, head + body) == b""
    with Wire(shared) as wire:  # in two pieces
        wire.send_raw(head[:2])
        wire.send_raw(head[2:])
        try:
            wire.send_raw(body)
        except ConnectionError:
            pass
        assert wire.read_all() == b""
    with Wire(shared) as wire:  # behind a command that is none of HTTP
        assert wire.call("PING") == "PONG"
        wire.send_raw(head + body)
        assert wire.read_all() == b""
    with Wire(shared) as wire:
        assert wire.call("TOPIC.GET", "web").code == "NOTOPIC"


def test_a_browser_that_posts_commands_in_its_header_gets_nowhere(shared):
    request = b"POST / HTTP/1.1\r\nJOB.SUBMIT web x\r\nHost: x\r\n\r\n" + pack("JOB.SUBMIT", "web", "y")
    assert exchange(shared, request) == b""
    with Wire(shared) as wire:
        assert wire.call("TOPIC.GET", "web").code == "NOTOPIC"


def test_the_http_door_takes_no_commands(shared, client):
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as wire:
        wire.sendall(pack("JOB.SUBMIT", "web", "x") + b"\r\n\r\n")
        assert wire.recv(12) == b"HTTP/1.1 400"
    assert client.get(shared.topic("web")).status_code == 404


MALFORMED = [
    b"*1000000\r\n",
    b"*99999999999999999999\r\n",
    b"*x\r\n",
    b"*3x\r\n",
    b"*+1\r\n$4\r\nPING\r\n",
    b"*\r\n",
    b"* 1\r\n",
    b"*1" + b"0" * 100,
    b"*2\r\n$10\r\nJOB.SUBMIT\r\n$99999999999\r\n",
    b"*2\r\n$10\r\nJOB.SUBMIT\r\n$16777217\r\n",
    b"*2\r\n$4\r\nPING\r\n$-1\r\n",
    b"*2\r\n$4\r\nPING\r\n$-9223372036854775809\r\n",
    b"*2\r\n$4\r\nPING\r\n$1x\r\nab\r\n",
    b"*1\r\n:5\r\n",
    b"*1\r\n*1\r\n$4\r\nPING\r\n",
    b"*1\r\n+PING\r\n",
    b"*1\r\nPING\r\n",
    b"*1\r\n$4\r\nPINGxx",
    b"*1\r\n$4\r\nPINGPONG\r\n",
]


@pytest.mark.parametrize("data", MALFORMED, ids=lambda data: repr(data)[2:50])
def test_malformed_frames_are_refused_before_they_are_stored(shared, data):
    before = rss_bytes(shared)
    with Wire(shared) as wire:
        wire.send_raw(pack("PING") + data)
        assert wire.read() == "PONG", "what came before is answered"
        said = wire.read()
        assert isinstance(said, Error) and said.startswith(("INVALID protocol: ", "TOOLARGE protocol: ")), said
        assert wire.read_all() == b""
    assert rss_bytes(shared) - before < 8 * MIB


def test_what_follows_a_malformed_frame_is_not_done(shared):
    assert exchange(shared, b"*1\r\n$x\r\n" + pack("JOB.SUBMIT", "behind", "x")).count(b"\r\n") == 1
    with Wire(shared) as wire:
        assert wire.call("TOPIC.GET", "behind").code == "NOTOPIC"


def test_a_frame_whose_words_are_too_large_together_is_refused(shared):
    """Each of them is allowed, and the frame is not: it must not pile up."""
    before = rss_bytes(shared)
    with Wire(shared) as wire:
        piece = b"$1000000\r\n" + b"x" * 1_000_000 + b"\r\n"
        try:
            wire.send_raw(b"*200\r\n$12\r\nJOB.MSUBMIT\x00\r\n")
            for _ in range(199):
                wire.send_raw(piece)
        except ConnectionError:
            pass
        assert b"PONG" not in wire.read_all()
    assert rss_bytes(shared) - before < 64 * MIB


def test_many_announced_frames_take_no_memory(shared):
    """A length is a promise, not memory."""
    before = rss_bytes(shared)
    wires = [Wire(shared) for _ in range(200)]
    for wire in wires:
        wire.send_raw(b"*3\r\n$10\r\nJOB.SUBMIT\r\n$1\r\nt\r\n$1000000\r\nbegun")
    with Wire(shared) as other:
        assert other.call("PING") == "PONG"
    assert rss_bytes(shared) - before < 100 * MIB  # of the 200 MB that were announced
    for wire in wires:
        wire.close()


@pytest.mark.parametrize("words", [["COMMAND", "DOCS"], ["NONSENSE"]], ids=" ".join)
def test_short_commands_with_long_replies_are_bounded(shared, words):
    """Of those who send and never read: the replies must not pile up."""
    before = rss_bytes(shared)
    wires = [Wire(shared) for _ in range(20)]
    for wire in wires:
        wire.socket.setblocking(False)
        try:
            wire.socket.send((" ".join(words) + "\n").encode() * 100_000)
        except BlockingIOError:
            pass
    with Wire(shared) as other:
        for i in range(100):
            assert other.call("JOB.SUBMIT", "beside", str(i))[1] == "accepted"
            assert rss_bytes(shared) - before < 100 * MIB
    for wire in wires:
        wire.close()


def test_garbage_ends_nothing_but_its_connection(shared):
    draw = random.Random(7)
    for _ in range(200):
        exchange(shared, draw.randbytes(draw.randrange(1, 400)) + draw.choice((b"", b"\r\n", pack("PING"))))
    tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2
    exchange(shared, tls)
    with Wire(shared) as wire:
        assert wire.call("PING") == "PONG"


def test_a_command_in_single_bytes(shared):
    frame = pack("JOB.SUBMIT", "bytes", b"pay\r\nload", "ID", "one") + b"PING x\r\n" + pack("JOB.GET", "bytes", "one")
    with Wire(shared, 3) as wire:
        for i in range(len(frame)):
            wire.send_raw(frame[i : i + 1])
        assert wire.read()[:2] == [b"one", "accepted"]
        assert wire.read() == b"x"
        assert wire.map(wire.read())["payload"] == b"pay\r\nload"


def test_frames_cut_at_every_place(shared):
    frames = pack("JOB.SUBMIT", "cut", b"*1\r\n$4\r\nPING\r\n", "ID", "c") + pack("JOB.CANCEL", "cut", "c")
    with Wire(shared) as wire:
        for cut in range(1, len(frames)):
            wire.send_raw(frames[:cut])
            wire.send_raw(frames[cut:])
            assert wire.read()[1] == "accepted"
            assert wire.read() == "cancelled"


def pipeline(wire, commands):
    """All of them in one write; their replies."""
    data = b"".join(pack(*command) for command in commands)
    sender = threading.Thread(target=wire.send_raw, args=(data,))
    sender.start()
    replies = [wire.read() for _ in commands]
    sender.join()
    return replies


def test_ten_thousand_pipelined_commands_take_effect_in_their_order(shared):
    """Of one job: only this order of effects gives these answers."""
    turn = [
        (["JOB.SUBMIT", "order", "a", "ID", "x", "DELAY", 1000], "accepted"),
        (["JOB.SUBMIT", "order", "a", "ID", "x", "DELAY", 1000], "duplicate"),
        (["JOB.SUBMIT", "order", "b", "ID", "x", "DELAY", 1000, "REPLACE"], "accepted"),
        (["JOB.SUBMIT", "order", "a", "ID", "x", "DELAY", 1000], "conflict"),
        (["JOB.AMEND", "order", "x", "PAYLOAD", "c"], "amended"),
        (["JOB.GET", "order", "x"], b"c"),
        (["JOB.CANCEL", "order", "x"], "cancelled"),
        (["JOB.CANCEL", "order", "x"], "unknown"),
        (["JOB.GET", "order", "x"], None),
        (["PING", "between"], b"between"),
    ]
    with Wire(shared) as wire:
        replies = pipeline(wire, [command for command, _ in turn] * 1000)
        for i, reply in enumerate(replies):
            command, expected = turn[i % len(turn)]
            assert plain(wire, command, reply) == expected, f"reply {i} to {command}"


def test_what_follows_a_large_command_takes_effect_after_all_of_it(shared):
    """The shard works on such a command in several turns. Here only the last job finds no room."""
    jobs = 9_000
    with Wire(shared) as wire:
        wire.call("TOPIC.SET", "full", "capacity_jobs", jobs)
        first, second = pipeline(wire, [["JOB.MSUBMIT", "full", "DELAY", 1000, *["p"] * jobs],
                                        ["JOB.SUBMIT", "full", "p", "DELAY", 1000]])
        assert not any(isinstance(each, Error) for each in first)
        assert isinstance(second, Error), second


def plain(wire, command, reply):
    if isinstance(reply, Error):
        return reply.message.partition(":")[0]
    if command[0] == "JOB.GET":
        return reply and wire.map(reply)["payload"]
    if command[0] == "JOB.SUBMIT":
        return reply[1]
    return reply[0] if isinstance(reply, list) else reply


def test_pipelined_commands_for_many_shards_are_answered_in_their_order(shared):
    topics = [f"shards-{i}" for i in range(8)]
    draw = random.Random(3)
    commands = []
    for i in range(2500):
        topic = draw.choice(topics)
        job = ["JOB.SUBMIT", topic, str(i), "ID", f"j{i}", "DELAY", 1000]
        commands += [job, ["JOB.GET", topic, f"j{i}"], ["JOB.CANCEL", topic, f"j{i}"], ["JOB.CANCEL", topic, f"j{i}"]]
    with Wire(shared, 3) as wire:
        replies = pipeline(wire, commands)
        for i in range(2500):
            submitted, shown, cancelled, again = replies[4 * i : 4 * i + 4]
            assert submitted[:2] == [b"j%d" % i, "accepted"]
            assert wire.map(shown)["payload"] == b"%d" % i
            assert (cancelled, again) == ("cancelled", "unknown")


def test_counts_in_a_pipeline_go_down_by_one(shared):
    with Wire(shared) as wire:
        wire.call("JOB.SUBMIT", "counted", "p", "ID", "c", "TRIGGER", "count", "COUNT", 5000)
        replies = pipeline(wire, [["JOB.COUNT", "counted", "c", f"e{i}"] for i in range(5000)])
        assert [reply[1] for reply in replies] == list(range(4999, -1, -1))
        assert replies[-1][0] == "fired"


def test_a_pipeline_ends_with_its_client_s_last_byte(shared):
    commands = b"".join(pack("JOB.SUBMIT", "half", "p", "ID", f"h{i}") for i in range(1000))
    assert exchange(shared, commands).count(b"accepted") == 1000


def test_a_payload_as_large_as_allowed(shared):
    payload = random.Random(5).randbytes(MIB)
    with Wire(shared) as wire:
        wire.call("JOB.SUBMIT", "large", payload, "ID", "l")
        assert wire.map(wire.call("JOB.GET", "large", "l"))["payload"] == payload
        assert wire.call("JOB.SUBMIT", "large", payload + b"x").code == "TOOLARGE"
        ids = wire.call("JOB.MSUBMIT", "large", "DELAY", 0, *[payload[: MIB - 100]] * 15)
        assert len(ids) == 15 and all(isinstance(one, bytes) for one in ids)
