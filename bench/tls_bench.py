#!/usr/bin/python3
"""What TLS costs: the same load on a server with it and on one without, in turn, and how much of the speed is left.

  /usr/bin/python3 bench/tls_bench.py [--bin build/release/bin] [--jobs 400000] [--single 60000] [--repeat 3] [--idle 2000]

Every run starts tocsind with one shard on free loopback ports, with its data in a temporary folder. Also: what an idle
connection takes of the server's memory, with TLS and without.
"""
import argparse
import json
import os
import pathlib
import re
import socket
import ssl
import statistics
import subprocess
import tempfile

TIME_LIMIT_S = 120


def certificate(folder):
    """Signed by itself, so that it is its own authority. With a key of P-256."""
    files = folder / "server.crt", folder / "server.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    files[1], "-out", files[0], "-days", "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    return files


class Server:
    def __init__(self, binaries, folder, tls):
        flags = ["--tls-certificate", tls[0], "--tls-key", tls[1]] if tls else []
        self.process = subprocess.Popen(
            [binaries / "tocsind", "--data-dir", folder, "--shards", "1", "--http-listen", "127.0.0.1:0", "--resp-listen",
             "127.0.0.1:0", *flags], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")})
        for line in self.process.stderr:
            if ready := re.search(r" ready http=(\S+) resp=(\S+)", line):
                self.http, self.resp = ready.groups()
                return
        raise SystemExit("tocsind did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


def submitted(arguments, tls, driver, mode, jobs):
    """Jobs a second."""
    with tempfile.TemporaryDirectory() as folder, Server(arguments.bin, folder, tls) as server:
        address = server.http if driver == "tocsin-http" else server.resp
        batch = ["--batch", "100"] if mode == "batched" else []
        ca = ["--ca", tls[0]] if tls else []
        done = subprocess.run([arguments.bin / "load_bench", "run", "--driver", driver, "--workload", "submit", "--address",
                               address, "--mode", mode, "--jobs", str(jobs), *batch, *ca],
                              capture_output=True, text=True, timeout=TIME_LIMIT_S)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return json.loads(done.stdout)["submit_per_s"]


def idle_bytes(arguments, tls):
    """Of one connection."""
    context = ssl.create_default_context(cafile=tls[0]) if tls else None
    with tempfile.TemporaryDirectory() as folder, Server(arguments.bin, folder, tls) as server:
        host, port = server.http.rsplit(":", 1)

        def connect():
            plain = socket.create_connection((host, int(port)))
            wire = context.wrap_socket(plain, server_hostname=host) if tls else plain
            wire.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wire.recv(4096)
            return wire

        first = [connect() for _ in range(200)]  # what the process needs once
        before = server.resident_bytes()
        wires = [connect() for _ in range(arguments.idle)]
        taken = (server.resident_bytes() - before) / len(wires)
        for wire in first + wires:
            wire.close()
        return taken


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--jobs", type=int, default=400_000, help="in batches")
    parser.add_argument("--single", type=int, default=60_000, help="jobs, one by one")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--idle", type=int, default=2000, help="connections that do nothing")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tls = certificate(pathlib.Path(folder))
        for driver in ("tocsin-resp", "tocsin-http"):
            for mode, jobs in (("batched", arguments.jobs), ("single", arguments.single)):
                rates = {None: [], tls: []}
                for _ in range(arguments.repeat):
                    for way, runs in rates.items():
                        runs.append(submitted(arguments, way, driver, mode, jobs))
                plain, secure = (statistics.median(runs) for runs in rates.values())
                print(f"{driver} {mode}: {plain:,.0f} jobs/s in clear text, {secure:,.0f} with TLS: {secure / plain:.2f}", flush=True)
        plain, secure = idle_bytes(arguments, None), idle_bytes(arguments, tls)
        print(f"an idle connection: {plain / 1024:.1f} KiB in clear text, {secure / 1024:.1f} KiB with TLS")


if __name__ == "__main__":
    main()
