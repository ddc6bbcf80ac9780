#!/usr/bin/env python3
"""A group buy: the price holds when 3 people join, or else the group is closed after 24 hours. Whichever comes first.

One job with the trigger `either` is both: it fires once, by the third distinct event or by its time. An event has an id,
so that a repeated call for the same person does not count twice.
"""

from tocsin_http import Clock, Topic, call, expect


def join(topic, group, person):
    answer = call("POST", topic.job_path(group) + "/count", {"event": person})
    print(f"{group}: {person} joins: {answer['outcome']}, {answer['left']} to go")
    return answer["outcome"]


def close(topic, group, wanted):
    """What the consumer does when the job arrives, by either way."""
    job = topic.reserve(wait_ms=5000)[0]
    expect(job["id"], group, "delivered")
    left = call("GET", topic.job_path(group))["count_left"]
    verdict = "ship" if left == 0 else "refund"
    expect(verdict, wanted, group)
    expect(topic.settle("ack", job), "ok", "ack")
    print(f"{group}: {verdict}")


def main():
    clock = Clock()
    day_ms = 86_400_000 if clock.virtual else 3000
    with Topic("groups", count_limit=3) as topic:
        for group in ("kettles", "lamps"):
            expect(topic.submit(id=group, trigger="either", delay_ms=day_ms)[0], "accepted", "submit")
            print(f"{group}: open, 3 people or 24 hours")

        expect([join(topic, "kettles", person) for person in ("ann", "bob", "ann", "cy")],
               ["counted", "counted", "repeated", "fired"], "kettles")
        close(topic, "kettles", "ship")

        expect(join(topic, "lamps", "dee"), "counted", "lamps")
        expect(topic.reserve(), [], "lamps is neither full nor due")
        clock.passes(day_ms)
        print("24 hours pass")
        close(topic, "lamps", "refund")
        expect(join(topic, "lamps", "eve"), "unknown", "a closed group")


if __name__ == "__main__":
    main()
