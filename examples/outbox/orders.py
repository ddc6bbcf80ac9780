#!/usr/bin/env python3
"""An order and the job that closes it, in one transaction: the outbox (docs/mysql.md), with PyMySQL.

A-1 is paid in time: the payment and the cancel of the job are one transaction. A-2 is not paid, and is closed. A-3 is
rolled back: it leaves neither an order nor a job.

MYSQL_HOST, MYSQL_PORT, MYSQL_USER, MYSQL_PASSWORD and MYSQL_DATABASE name the database, where `tocsin mysql migrate` has made
the outbox. The server runs with --outbox-url for it.
"""

import os
import pathlib
import sys

import pymysql

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tocsin_http import Topic, expect  # noqa: E402

DELAY_MS = 1_500


def connect():
    return pymysql.connect(host=os.environ.get("MYSQL_HOST", "127.0.0.1"), port=int(os.environ.get("MYSQL_PORT", "3306")),
                           user=os.environ.get("MYSQL_USER", "root"), password=os.environ.get("MYSQL_PASSWORD", ""),
                           database=os.environ["MYSQL_DATABASE"], charset="utf8mb4")


def place(cursor, topic, order):
    cursor.execute("INSERT INTO example_orders (id, state) VALUES (%s, 'open')", (order,))
    cursor.execute("INSERT INTO tocsin_outbox (topic, job_id, payload, delay_ms) VALUES (%s, %s, %s, %s)",
                   (topic, order, f"close {order}", DELAY_MS))


def pay(cursor, topic, order):
    cursor.execute("UPDATE example_orders SET state = 'paid' WHERE id = %s AND state = 'open'", (order,))
    cursor.execute("INSERT INTO tocsin_outbox (op, topic, job_id) VALUES ('cancel', %s, %s)", (topic, order))


def close(cursor, order):
    """A job may come twice, and a payment may have come first: the order's own state decides."""
    return cursor.execute("UPDATE example_orders SET state = 'closed' WHERE id = %s AND state = 'open'", (order,))


def work(connection, topic):
    with connection.cursor() as cursor:
        for order in ("A-1", "A-2"):
            place(cursor, topic.name, order)
        connection.commit()
        print("A-1 and A-2 are placed")

        place(cursor, topic.name, "A-3")
        connection.rollback()
        print("A-3 is rolled back")

        pay(cursor, topic.name, "A-1")
        connection.commit()
        print("A-1 is paid")

        [job] = topic.reserve(wait_ms=20_000)
        print(f"delivered: {job['payload']}")
        expect(job["id"], "A-2", "the job that is due")
        expect(close(cursor, job["id"]), 1, "orders closed")
        connection.commit()
        expect(topic.settle("ack", job), "ok", "ack")
        expect(topic.reserve(wait_ms=500), [], "further jobs")

        cursor.execute("SELECT id, state FROM example_orders ORDER BY id")
        expect(list(cursor.fetchall()), [("A-1", "paid"), ("A-2", "closed")], "the orders")
        print("A-1 paid, A-2 closed, nothing of A-3")


def main():
    with connect() as connection, Topic("outbox") as topic:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE example_orders (id VARCHAR(64) PRIMARY KEY, state VARCHAR(16)) ENGINE=InnoDB")
        try:
            work(connection, topic)
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DROP TABLE example_orders")


if __name__ == "__main__":
    main()
