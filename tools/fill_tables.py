#!/usr/bin/python3
"""Fills the tables of the documents that come from the program's tables.

A document marks each with `<!-- table: NAME -->` and `<!-- end -->`; `tocsin docs NAME` prints what goes between. With
--check nothing is written, and the exit status is 1 if a table is not what the program prints. TOCSIN_BIN_DIR names the
folder of the program; build/release/bin unless set.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("TOCSIN_BIN_DIR", ROOT / "build/release/bin")) / "tocsin"
BLOCK = re.compile(r"(<!-- table: (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(text, program):
    def table(match):
        run = subprocess.run([program, "docs", match[2]], capture_output=True, text=True, check=True)
        return match[1] + run.stdout + match[3]

    return BLOCK.sub(table, text)


def main():
    check = "--check" in sys.argv
    stale = []
    for page in sorted(ROOT.glob("docs/**/*.md")):
        before = page.read_text()
        after = fill(before, PROGRAM)
        if after == before:
            continue
        stale.append(page.relative_to(ROOT))
        if not check:
            page.write_text(after)
            print(f"wrote {page.relative_to(ROOT)}")
    if check and stale:
        print("not what the program prints (make docs repairs it):", *stale)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
