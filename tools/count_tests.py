#!/usr/bin/python3
"""Adds up the reports in a folder, prints why tests were skipped, and last `N passed, N failed, N skipped`. Exits with 1 if
anything failed, or if nothing passed.

Reports are JUnit files (*.xml, from ctest and pytest) and *.count files with "passed failed skipped". A program that is one
test of ctest writes a report of its own tests, NAME.programs/PROGRAM.xml beside NAME.xml: they are counted instead.
"""

import collections
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

PASSED, FAILED, SKIPPED = range(3)


def verdict(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return FAILED
    if case.find("skipped") is not None:
        return SKIPPED
    # ctest marks a test whose program is missing or would not start "notrun" without a reason.
    return FAILED if case.get("status") == "notrun" else PASSED


def why_skipped(case):
    """The first line of what the test said. GoogleTest puts the place above it; ctest has it only in the output."""
    said = case.find("skipped").get("message", "")
    if said.startswith("SKIP_"):
        said = (case.findtext("system-out") or said).partition(": Skipped\n")[2]
    lines = [line for line in said.split("\n") if line.strip() and not line.startswith("/")]
    return lines[0].strip() if lines else "without a reason"


def count_junit(path, skips):
    """(passed, failed, skipped); adds the reasons to `skips`."""
    totals = [0, 0, 0]
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as problem:
        print(f"FAILED: {path} is not a report: {problem}")
        return [0, 1, 0]
    for case in cases:
        own = path.with_suffix(".programs") / f"{case.get('name')}.xml"
        if own.exists():
            counts = count_junit(own, skips)
            totals = [total + count for total, count in zip(totals, counts)]
            # Its tests may all have passed, and the program failed after them: a leak, say.
            totals[FAILED] += verdict(case) == FAILED and not counts[FAILED]
            continue
        totals[verdict(case)] += 1
        if verdict(case) == SKIPPED:
            skips[why_skipped(case)] += 1
    return totals


def main():
    folder = pathlib.Path(sys.argv[1])
    totals, skips = [0, 0, 0], collections.Counter()
    for path in sorted(folder.iterdir()):
        if path.suffix == ".xml":
            counts = count_junit(path, skips)
        elif path.suffix == ".count":
            counts = [int(word) for word in path.read_text().split()]
        else:
            continue
        totals = [total + count for total, count in zip(totals, counts)]
    for reason, times in sorted(skips.items()):
        print(f"skipped {times}: {reason}")
    passed, failed, skipped = totals
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
