#!/usr/bin/python3
"""How fast rows of the outbox are picked up, beside a bare loop that SELECTs and DELETEs the same rows and does nothing else,
and how long rows wait at a steady rate.

  /usr/bin/python3 bench/outbox_bench.py [--bin build/release/bin] [--rows 50000] [--rate 2000] [--seconds 10]

Starts a MariaDB and a tocsind on free loopback ports, with their data in a temporary folder. The wait is from the moment that
the application notes before its INSERT to the moment that the server notes when it has the job.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import httpx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/e2e"))
import mysql_server  # noqa: E402
from mysql_server import MySqlServer, Outbox, add_many  # noqa: E402

PAGE = 512
HOUR_MS = 3_600_000
PAYLOAD = "x" * 128


def fill(outbox, rows):
    with outbox.connect() as connection:
        for start in range(0, rows, 1000):
            add_many(connection, [("bench", None, PAYLOAD, HOUR_MS) for _ in range(min(1000, rows - start))])
            connection.commit()


def bare_rate(outbox, rows):
    begun = time.monotonic()
    with outbox.connect(autocommit=True) as connection, connection.cursor() as cursor:
        while cursor.execute("SELECT id, op, topic, job_id, job_key, payload, headers, delay_ms, due_ms, event_count, created FROM "
                             f"tocsin_outbox FORCE INDEX (pick_up) WHERE state = 0 ORDER BY id LIMIT {PAGE}"):
            ids = ", ".join(str(row[0]) for row in cursor.fetchall())
            cursor.execute(f"DELETE FROM tocsin_outbox WHERE id IN ({ids})")
    return rows / (time.monotonic() - begun)


def start_server(binary, outbox, folder):
    command = [f"{binary}/tocsind", "--data-dir", f"{folder}/data", "--http-listen", "127.0.0.1:0", "--resp-listen", "127.0.0.1:0",
               *map(str, outbox.flags())]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    address = next(word for line in server.stderr for word in line.split() if word.startswith("http="))
    threading.Thread(target=server.stderr.read, daemon=True).start()  # so that its log never waits for us
    return server, "http://" + address.removeprefix("http=")


def await_empty(outbox):
    while outbox.waiting() > 0:
        time.sleep(0.01)


def insert_steadily(outbox, rate, seconds, batch=20):
    begun = time.monotonic()
    with outbox.connect() as connection:
        for i in range(rate * seconds // batch):
            time.sleep(max(0, begun + i * batch / rate - time.monotonic()))
            add_many(connection, [("steady", None, str(time.time_ns() // 1_000_000), HOUR_MS) for _ in range(batch)])
            connection.commit()


def waits(url):
    found, cursor = [], ""
    with httpx.Client(base_url=url, timeout=60) as client:
        while True:
            page = client.get("/v1/topics/steady/jobs", params={"limit": 1000, **({"cursor": cursor} if cursor else {})}).json()
            found += [job["created_ms"] - int(job["payload"]) for job in page["jobs"]]
            if not (cursor := page.get("cursor")):
                return sorted(found)


def measure(arguments, outbox, folder):
    fill(outbox, arguments.rows)
    print(f"bare SELECT and DELETE, pages of {PAGE}: {bare_rate(outbox, arguments.rows):,.0f} rows/s")
    fill(outbox, arguments.rows)
    begun = time.monotonic()
    server, url = start_server(arguments.bin, outbox, folder)
    try:
        await_empty(outbox)
        took = time.monotonic() - begun
        print(f"picked up and stored, synced: {arguments.rows / took:,.0f} rows/s, with the start of the server")
        insert_steadily(outbox, arguments.rate, arguments.seconds)
        await_empty(outbox)
        late = waits(url)
        shown = ", ".join(f"{name} {late[min(len(late) - 1, int(len(late) * share))]} ms"
                          for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1)))
        print(f"from the INSERT to the job at {arguments.rate:,} rows/s, {len(late):,} rows: {shown}")
    finally:
        server.terminate()
        server.wait(20)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--seconds", type=int, default=10)
    arguments = parser.parse_args()
    if why := mysql_server.why_not():
        raise SystemExit(why)
    with tempfile.TemporaryDirectory() as folder:
        mysql = MySqlServer(pathlib.Path(folder) / "mysql")
        try:
            with Outbox(mysql) as outbox:
                subprocess.run([f"{arguments.bin}/tocsin", "mysql", "migrate", outbox.url(), "--password-file", mysql.password_file],
                               check=True, stdout=subprocess.DEVNULL)
                measure(arguments, outbox, folder)
        finally:
            mysql.kill()


if __name__ == "__main__":
    main()
