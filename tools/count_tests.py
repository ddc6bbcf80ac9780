#!/usr/bin/python3
"""Adds up the reports in a folder and prints `N passed, N failed, N skipped`; exits with 1 where anything failed.

Reports are JUnit files (*.xml, from ctest and pytest) and *.count files that hold "passed failed skipped". A run in
which nothing passed at all is a failure too.
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def count_junit(path):
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except ElementTree.ParseError as problem:
        print(f"FAILED: {path} is not a report: {problem}")
        return 0, 1, 0
    failed = sum(1 for case in cases if case.find("failure") is not None or case.find("error") is not None)
    skipped = sum(1 for case in cases if case.find("skipped") is not None)
    # ctest marks a test whose program is missing or would not start "notrun" without a reason.
    lost = sum(1 for case in cases if case.get("status") == "notrun" and case.find("skipped") is None)
    return len(cases) - failed - skipped - lost, failed + lost, skipped


def main():
    folder = pathlib.Path(sys.argv[1])
    totals = [0, 0, 0]
    for path in sorted(folder.iterdir()):
        if path.suffix == ".xml":
            counts = count_junit(path)
        elif path.suffix == ".count":
            counts = [int(word) for word in path.read_text().split()]
        else:
            continue
        totals = [total + count for total, count in zip(totals, counts)]
    passed, failed, skipped = totals
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
