#!/usr/bin/python3
"""What the server costs and how exact it is when little happens: CPU with many jobs pending and none due, and lateness.

  /usr/bin/python3 bench/idle_bench.py [--bin build/release/bin] [--pending 1000000] [--seconds 30] [--jobs 1000]

Runs tocsind on a free loopback port with its data in a temporary folder. Lateness is due to delivered as the server
counts it (tocsin_lateness_seconds) and due to received as this client sees it.
"""
import argparse
import os
import pathlib
import random
import subprocess
import tempfile
import threading
import time

import httpx


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def submit_pending(client, count):
    payload = "x" * 128
    begun = time.monotonic()
    for start in range(0, count, 5000):
        jobs = [{"delay_ms": random.randint(3_600_000, 86_400_000), "payload": payload}
                for _ in range(min(5000, count - start))]
        client.post("/v1/topics/pending/jobs", json={"jobs": jobs}).raise_for_status()
    return count / (time.monotonic() - begun)


def measure_idle(pid, seconds):
    before, begun = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / (time.monotonic() - begun)


def measure_lateness(url, count):
    late = []

    def consume():
        with httpx.Client(base_url=url, timeout=60) as client:
            while len(late) < count:
                answer = client.post("/v1/topics/late/reserve", json={"max": 1, "wait_ms": 5000}).json()
                now = time.time() * 1000
                for job in answer["jobs"]:
                    late.append(now - job["due_ms"])
                    client.post("/v1/topics/late/ack", json={"tokens": [job["token"]]})

    # Several, so that one of them always waits: a consumer that is busy with an ack is not the server's lateness.
    consumers = [threading.Thread(target=consume) for _ in range(4)]
    for consumer in consumers:
        consumer.start()
    with httpx.Client(base_url=url) as client:
        for _ in range(count):
            client.post("/v1/topics/late/jobs", json={"delay_ms": random.randint(5, 50), "payload": "x" * 128})
            time.sleep(random.uniform(0.01, 0.03))
    for consumer in consumers:
        consumer.join()
    return late


def server_lateness(client):
    buckets = []
    for line in client.get("/metrics").text.splitlines():
        if line.startswith("tocsin_lateness_seconds_bucket") and 'topic="late"' in line:
            bound = line.split('le="')[1].split('"')[0]
            buckets.append((float(bound), float(line.rsplit(" ", 1)[1])))
    buckets.sort()
    total = buckets[-1][1]
    return [next(bound for bound, seen in buckets if seen >= total * share) * 1000 for share in (0.5, 0.99, 0.999)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--pending", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=1000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [f"{args.bin}/tocsind", "--data-dir", f"{folder}/data", "--http-listen", "127.0.0.1:0"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            address = next(word for line in server.stderr for word in line.split() if word.startswith("http="))
            threading.Thread(target=server.stderr.read, daemon=True).start()  # so that its log never waits for us
            url = "http://" + address.removeprefix("http=")
            with httpx.Client(base_url=url, timeout=60) as client:
                empty = resident_bytes(server.pid)
                rate = submit_pending(client, args.pending)
                memory = (resident_bytes(server.pid) - empty) / args.pending
                print(f"pending: {args.pending} jobs of 128 bytes at {rate:.0f}/s, {memory:.0f} bytes of RAM each, all in")
                time.sleep(2)
                print(f"idle: {measure_idle(server.pid, args.seconds) * 100:.2f} % of a core over {args.seconds} s")
                late = measure_lateness(url, args.jobs)
                shown = ", ".join(f"{name} {percentile(late, share):.2f} ms" for name, share in
                                  (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)))
                print(f"lateness at the client, {args.jobs} single jobs: {shown}, earliest {min(late):.2f} ms")
                p50, p99, p999 = server_lateness(client)
                print(f"lateness in the server: p50 <= {p50:.2f} ms, p99 <= {p99:.2f} ms, p99.9 <= {p999:.2f} ms")
        finally:
            server.terminate()
            server.wait(20)


if __name__ == "__main__":
    main()
