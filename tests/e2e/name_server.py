"""A name server on loopback, and a place where a program asks it alone: its /etc/resolv.conf is another one there.

    names = NameServer(tmp_path, {"well.test": "127.0.0.1"})   # see why_not() first
    server = Server(folder, *flags, place=names.place)
    names.close()

Names that begin with "hang" are never answered; those that it does not know do not exist.
"""

import os
import socket
import struct
import subprocess
import threading

from programs import Place

HOST, PORT = "127.0.0.153", 53  # glibc asks no other port
A, NAME_ERROR, ANSWER = 1, 3, 0x8180


def why_not():
    """None where it can run; otherwise the reason to skip."""
    if os.geteuid() != 0:
        return "a name server and a mount of its own need root"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((HOST, PORT))
        subprocess.run(["unshare", "--mount", "true"], check=True, capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError) as error:
        return f"a name server cannot be run here: {error}"
    return None


class NameServer:
    def __init__(self, folder, names):
        self.names = dict(names)
        self.asked = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((HOST, PORT))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        conf = folder / "resolv.conf"
        conf.write_text(f"nameserver {HOST}\noptions timeout:5 attempts:2\n")
        # nsswitch.conf may name other sources of names than DNS.
        switch = folder / "nsswitch.conf"
        switch.write_text("hosts: dns\n")
        mounts = f"mount --bind {conf} /etc/resolv.conf && mount --bind {switch} /etc/nsswitch.conf"
        self.place = Place(prefix=["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh"])

    def close(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"", (HOST, PORT))
        self._thread.join(10)
        self._socket.close()

    def _serve(self):
        while True:
            query, client = self._socket.recvfrom(4096)
            if not query:
                return
            if answer := self._answer(query):
                self._socket.sendto(answer, client)

    def _answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        name, end = ".".join(labels), at + 5
        [kind] = struct.unpack_from("!H", query, at + 1)
        self.asked.append(name)
        if name.startswith("hang"):
            return None
        found = self.names.get(name)
        records = b""
        if found and kind == A:
            records = struct.pack("!HHHIH", 0xC00C, A, 1, 5, 4) + socket.inet_aton(found)
        flags = ANSWER if found else ANSWER | NAME_ERROR
        return query[:2] + struct.pack("!HHHHH", flags, 1, 1 if records else 0, 0, 0) + query[12:end] + records
