"""Cuts the network of single processes: each runs in a network namespace with one cable to a bridge, which can be pulled.

    network = Network()                     # see why_not() first
    place = network.place("master")         # a programs.Place: hand it to RedisServer, ZooKeeperServer or node()
    place.cut(); place.heal()
    network.close()                         # after what runs there has ended

Everything in a namespace has an address of its own on the bridge, which the tests reach too. What a cut process sends is
dropped without a word, and so is what is sent to it: connections hang, as they do when a machine is lost.
"""

import itertools
import os
import re
import secrets
import shutil
import subprocess

from programs import Place

# For measurements between networks: nothing else uses it, and it is routed nowhere.
ADDRESSES = "198.18"
# The number of the process is in the names of namespaces and bridges, so that what a killed run left can be told.
NAME = re.compile(r"tocsin-(\d+)-.+")
BRIDGE = re.compile(r"tb(\d+)n\d+")
_count = itertools.count()


def _enter(namespace):
    return ["nsenter", f"--net=/run/netns/{namespace}"]


def _ip(*words, inside=None):
    """`inside` a namespace by nsenter: `ip -n` mounts /sys anew, which a chroot does not allow."""
    command = [*(_enter(inside) if inside else []), "ip", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout


def why_not():
    """None where namespaces can be made; otherwise the reason to skip."""
    for program, package in (("ip", "iproute2"), ("nsenter", "util-linux")):
        if not shutil.which(program):
            return f"the program {program} is not installed (Debian: {package})"
    if os.geteuid() != 0:
        return "network namespaces need root and CAP_NET_ADMIN"
    try:
        network = Network()
        try:
            network.place("try")
        finally:
            network.close()
    except (subprocess.SubprocessError, OSError) as error:
        return f"network namespaces cannot be made here: {getattr(error, 'stderr', None) or error}"
    return None


class Namespace(Place):
    """One namespace and its cable."""

    def __init__(self, name, cable, host):
        super().__init__(host, _enter(name))
        self.name, self.cable = name, cable

    def cut(self):
        _ip("link", "set", self.cable, "down")

    def heal(self):
        _ip("link", "set", self.cable, "up")


class Network:
    """A bridge, and the namespaces on it."""

    def __init__(self):
        _remove_leftovers()
        self._places = {}
        self._bridge = f"tb{os.getpid()}n{next(_count) % 100}"
        self.subnet = next(subnet for subnet in _subnets() if not _ip("-4", "-o", "addr", "show", "to", f"{subnet}.0/24"))
        _ip("link", "add", self._bridge, "type", "bridge")
        try:
            _ip("addr", "add", f"{self.subnet}.1/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
        except BaseException:
            self.close()
            raise

    def place(self, name):
        """The namespace of that name, made where it does not exist yet."""
        if name not in self._places:
            self._places[name] = self._make()
        return self._places[name]

    def _make(self):
        number = len(self._places) + 2  # the bridge itself is 1
        namespace = f"tocsin-{os.getpid()}-{self._bridge}-{number}"
        cable = f"tc{secrets.token_hex(4)}"
        host = f"{self.subnet}.{number}"
        _ip("netns", "add", namespace)
        try:
            _ip("link", "add", cable, "type", "veth", "peer", "name", "cable", "netns", namespace)
            _ip("addr", "add", f"{host}/24", "dev", "cable", inside=namespace)
            _ip("link", "set", "cable", "up", inside=namespace)
            _ip("link", "set", "lo", "up", inside=namespace)
            _ip("link", "set", cable, "master", self._bridge, "up")
        except BaseException:
            _ip("netns", "del", namespace)
            raise
        return Namespace(namespace, cable, host)

    def close(self):
        for place in self._places.values():
            _ip("link", "del", place.cable)
            _ip("netns", "del", place.name)
        self._places.clear()
        _ip("link", "del", self._bridge)


def _subnets():
    while True:
        yield f"{ADDRESSES}.{secrets.randbelow(256)}"


def _remove_leftovers():
    """What runs left behind that were killed."""
    for name in (line.split()[0] for line in _ip("netns", "list").splitlines()):
        if (match := NAME.fullmatch(name)) and not os.path.exists(f"/proc/{match[1]}"):
            _ip("netns", "del", name)
    for name in (line.split(": ")[1] for line in _ip("-o", "link", "show", "type", "bridge").splitlines()):
        if (match := BRIDGE.fullmatch(name)) and not os.path.exists(f"/proc/{match[1]}"):
            _ip("link", "del", name)
