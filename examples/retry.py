#!/usr/bin/env python3
"""A webhook that fails: attempts with back-off, then a dead letter, then a redrive after the fault is mended.

The back-off is the topic's: 10 s, 20 s, 40 s... and up to a quarter more, so that retries of many jobs spread. A consumer
that dies is the same as one that says nack: its lease ends, and an attempt is used up.
"""

from tocsin_http import Clock, Topic, call, expect

ATTEMPTS = 3


def fail_until_dead(topic, clock, base_ms):
    for attempt in range(1, ATTEMPTS + 1):
        job = topic.reserve(wait_ms=5000)[0]
        expect(job["attempt"], attempt, "attempt")
        outcome = topic.settle("nack", job, reason=f"502 from the receiver, attempt {attempt}")
        print(f"attempt {attempt} of {ATTEMPTS} failed: {outcome}")
        expect(outcome, "dead" if attempt == ATTEMPTS else "ok", "nack")
        if outcome == "dead":
            return
        rest_ms = call("GET", topic.job_path("hook-1"))["due_ms"] - clock.now_ms()
        doubled_ms = base_ms * 2 ** (attempt - 1)
        if clock.virtual and not doubled_ms <= rest_ms <= doubled_ms * 1.25:
            raise SystemExit(f"the back-off is {rest_ms} ms, not {doubled_ms} and up to a quarter more")
        print(f"next attempt in {rest_ms} ms")
        clock.passes(max(0, rest_ms))


def main():
    clock = Clock()
    base_ms = 10_000 if clock.virtual else 200
    with Topic("webhooks", max_attempts=ATTEMPTS, backoff_base_ms=base_ms) as topic:
        expect(topic.submit(id="hook-1", payload="POST https://receiver.example/paid")[0], "accepted", "submit")
        print("hook-1 is submitted")
        fail_until_dead(topic, clock, base_ms)

        dead = call("GET", topic.path + "/jobs?state=dead")["jobs"]
        expect([(job["id"], job["attempt"]) for job in dead], [("hook-1", ATTEMPTS)], "dead letters")
        print(f"dead letter: {dead[0]['id']}, {dead[0]['reason']}")
        expect(topic.reserve(), [], "a dead letter is not delivered")

        expect(call("POST", topic.path + "/dead/redrive"), {"redriven": 1}, "redrive")
        print("the receiver is mended: redrive")
        job = topic.reserve(wait_ms=5000)[0]
        expect((job["id"], job["attempt"]), ("hook-1", 1), "after the redrive it has all its attempts")
        expect(topic.settle("ack", job), "ok", "ack")
        print("attempt 1 of 3 went through: done")


if __name__ == "__main__":
    main()
