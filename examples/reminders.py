#!/usr/bin/env python3
"""Reminders at moments that people name: 09:00 on a given day, in the time zone of whoever is reminded.

Tocsin takes milliseconds UTC, so the time zone is the application's: convert once, when the reminder is made. A change of
the rules of a time zone, or of the appointment, is an amendment of the stored job.
"""

import datetime
import zoneinfo

from tocsin_http import Clock, Topic, call, expect


def at_nine(now_ms, days, zone):
    """09:00 there, so many days from now, as milliseconds UTC."""
    there = datetime.datetime.fromtimestamp(now_ms / 1000, zoneinfo.ZoneInfo(zone))
    day = there.date() + datetime.timedelta(days=days)
    nine = datetime.datetime.combine(day, datetime.time(9), zoneinfo.ZoneInfo(zone))
    return int(nine.timestamp() * 1000)


def shown(ms, zone):
    return datetime.datetime.fromtimestamp(ms / 1000, zoneinfo.ZoneInfo(zone)).isoformat(timespec="minutes")


PEOPLE = [("ming", "Asia/Shanghai"), ("nora", "Europe/Oslo"), ("ann", "America/New_York")]


def make_reminders(topic, now_ms):
    due = {}
    for person, zone in PEOPLE:
        due[person] = at_nine(now_ms, 2, zone)
        expect(topic.submit(id=f"dentist-{person}", due_ms=due[person], payload=f"{person}: dentist today",
                            headers={"zone": zone}), ("accepted", due[person]), "submit")
        print(f"{person}: reminder at {shown(due[person], zone)}, which is {shown(due[person], 'UTC')}")
    return due


def main():
    clock = Clock()
    with Topic("reminders") as topic:
        due = make_reminders(topic, clock.now_ms())

        due["nora"] = at_nine(clock.now_ms(), 3, "Europe/Oslo")
        answer = call("PATCH", topic.job_path("dentist-nora"), {"due_ms": due["nora"]})
        expect(answer, {"outcome": "amended", "due_ms": due["nora"]}, "amend")
        print(f"nora: moved to {shown(due['nora'], 'Europe/Oslo')}")

        if not clock.virtual:
            print("the clock is real: nobody waits two days here (start the server with --clock virtual)")
            return
        for person, zone in sorted(PEOPLE, key=lambda one: due[one[0]]):
            at = due[person]
            clock.passes(at - clock.now_ms() - 1)
            expect(topic.reserve(), [], "a millisecond before its time")
            clock.passes(1)
            job = topic.reserve()[0]
            expect((job["payload"], job["due_ms"]), (f"{person}: dentist today", at), "reminder")
            expect(topic.settle("ack", job), "ok", "ack")
            print(f"{shown(clock.now_ms(), zone)} {job['payload']}")


if __name__ == "__main__":
    main()
