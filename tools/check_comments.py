#!/usr/bin/python3
"""Finds C++ comments that are hard to read because a formatter broke them, or that are too wide.

clang-format does not wrap comments here (ReflowComments in .clang-format), so people do. A comment that does not fit at
the end of its line belongs above the line. Checks src, tests, bench and cmake below the folder given, or of this tree.
"""

import pathlib
import re
import sys

COLUMNS = 120
FOLDERS = ("src", "tests", "bench", "cmake")
COMMENT_ONLY = re.compile(r"^\s*//+ ?(.*)$")
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|(?<!\w)\'(?:\\.|[^\'\\])+\'')


def comment_column(line):
    """Where // begins outside of literals, or -1."""
    return LITERAL.sub(lambda match: "x" * len(match.group()), line).find("//")


def orphan(before, line, after):
    """A word or two alone between two lines of one paragraph: the rest of a line that was wrapped by a machine."""
    texts = [COMMENT_ONLY.match(part) for part in (before, line, after)]
    if not all(texts) or len(before) < COLUMNS - 25:
        return False
    text, following = texts[1].group(1).strip(), texts[2].group(1).split()
    if not text or not following or len(text) >= 25 or len(text.split()) > 3 or text[-1] in ".:;!?":
        return False
    return len(line) + 1 + len(following[0]) <= COLUMNS - 10


def broken_by_comment(line, after, column):
    """`int x =` and the value on the next line, for no other reason than the comment behind it."""
    if not line.endswith(("=", "(")) or comment_column(line) >= 0:
        return False
    code = after[:column].strip()
    return code.endswith((";", ",", "{}")) and len(line) + 1 + len(code) <= COLUMNS


def problems(text):
    """Yields (number of the line, what is wrong with it)."""
    lines = text.split("\n")
    columns = [comment_column(line) for line in lines]
    has_code = [column != 0 and bool(line[:column].strip()) for line, column in zip(lines, columns)]
    for i, (line, column) in enumerate(zip(lines, columns)):
        if column >= 0 and len(line) > COLUMNS:
            yield i + 1, f"a comment beyond column {COLUMNS}: wrap it"
        if i == 0:
            continue
        if column == columns[i - 1] > 0 and has_code[i - 1] and not has_code[i]:
            yield i, "a comment behind code that goes on below: move it above the code"
        if column > 0 and has_code[i] and broken_by_comment(lines[i - 1], line, column):
            yield i, "code broken in two by the comment behind it: move the comment above"
        if i + 1 < len(lines) and orphan(lines[i - 1], line, lines[i + 1]):
            yield i + 1, "a few words alone in the middle of a paragraph: wrap the paragraph again"


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    bad = False
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*")):
        if path.suffix in {".h", ".cc"}:
            for number, problem in problems(path.read_text(encoding="utf-8")):
                print(f"{path.relative_to(root)}:{number}: {problem}")
                bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
