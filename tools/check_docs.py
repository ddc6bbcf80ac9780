#!/usr/bin/python3
"""Checks the documents: their form, and that every file and test that they name exists.

- README.md has at most 120 lines and shows the two commands in the first 30.
- No cell of a table is longer than 120 characters, unless it is one `span` such as the syntax of a command: a cell holds a
  few words or a number.
- Words that CONTRIBUTING.md's rules replace by common ones do not occur ("anew", "but for").
- Every relative link leads to a file.
- Every file named in `backticks` exists: with its folder (`src/core/service.h`), or by its name alone (`wheel.h`).
  <name> stands for anything, {a,b} for each of both.
- Every test that docs/reliability.md names exists.
- Every thread that the code names, and every folder of src, is in docs/architecture.md.

tests/e2e/test_docs.py checks the rest: what the documents show is what the programs do.
"""

import fnmatch
import pathlib
import re
import subprocess
import sys

README_LINES_MAX = 120
COMMANDS_WITHIN = 30
CELL_MAX = 120
GENERATED = {"docs/cli.md", "docs/configuration.md", "docs/errors.md"}  # their tables are the programs' own
FOLDERS = ("src", "tests", "tools", "docs", "bench", "deploy", "cmake", "examples", ".ci", "proto", "web")
SUFFIXES = ("h", "cc", "py", "sh", "lua", "json", "toml", "txt", "md", "in", "yml", "js", "service", "cmake")

INSTEAD = {"anew": "again", "but for": "except", "besides": "also", "whilst": "while", "shall": "must"}

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`\n]+)`")
TEST = re.compile(r"(?:test_\w+|(?:Invariant|PeerBug)\d\d_\w*|\w+\.[A-Z]\w+|(?:[A-Z][a-z]*){3,})\*?")


def without_code(text):
    return re.sub(r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)


def without_generated(text):
    """Without what a program writes, between <!-- name:begin --> and <!-- name:end -->."""
    part = re.compile(r"<!-- (\w+):begin.*?<!-- \1:end", re.DOTALL)
    return part.sub(lambda found: "\n" * found[0].count("\n"), text)


def expanded(path):
    """a/{b,c}.h as a/b.h and a/c.h."""
    found = re.search(r"\{([^{}]*)\}", path)
    if not found:
        return [path]
    return [each for choice in found[1].split(",") for each in expanded(path[: found.start()] + choice + path[found.end() :])]


def is_a_path(span):
    return re.fullmatch(rf"(?:{'|'.join(map(re.escape, FOLDERS))})/[\w./{{}},*<>-]*", span) is not None


def is_a_file_name(span):
    return re.fullmatch(rf"[a-z][\w.-]*\.(?:{'|'.join(SUFFIXES)})", span) is not None


class Documents:
    def __init__(self, root, files):
        self.root, self.files = root, files
        self.names = {pathlib.PurePath(file).name for file in files}
        self.known = set(files) | {str(parent) for file in files for parent in pathlib.PurePath(file).parents}

    def text(self, page):
        return (self.root / page).read_text()

    def exists(self, path):
        pattern = re.sub(r"<\w+>", "*", path.rstrip("/"))
        return any(fnmatch.fnmatchcase(known, pattern) for known in self.known) if "*" in pattern else pattern in self.known

    def problems(self):
        yield from self.readme()
        pages = [file for file in self.files if file.endswith(".md")]
        for page in pages:
            yield from self.links(page)
            yield from self.names_of_files(page)
            if page not in GENERATED:
                yield from self.cells(page)
                yield from self.words(page)
        if "docs/reliability.md" in pages:
            yield from self.tests("docs/reliability.md")
        if "docs/architecture.md" in pages:
            yield from self.threads("docs/architecture.md")
            yield from self.folders("docs/architecture.md")

    def readme(self):
        lines = self.text("README.md").splitlines()
        if len(lines) > README_LINES_MAX:
            yield f"README.md: {len(lines)} lines; at most {README_LINES_MAX}"
        for command in ("make run", "make test"):
            if not any(command in line for line in lines[:COMMANDS_WITHIN]):
                yield f"README.md: {command} is not in the first {COMMANDS_WITHIN} lines"

    def links(self, page):
        for target in LINK.findall(without_code(self.text(page))):
            path = target.partition("#")[0]
            if not path or re.match(r"[a-z]+:", target):
                continue
            file = (self.root / page).parent / path
            if not file.exists():
                yield f"{page}: the link {target} leads nowhere"

    def names_of_files(self, page):
        for span in SPAN.findall(without_code(self.text(page))):
            if is_a_path(span):
                yield from (f"{page}: there is no {path}" for path in expanded(span) if not self.exists(path))
            elif is_a_file_name(span) and span not in self.names:
                yield f"{page}: there is no file called {span}"

    def cells(self, page):
        text = without_generated(without_code(self.text(page)))
        for number, line in enumerate(text.splitlines(), 1):
            if not line.startswith("|"):
                continue
            for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")):
                shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).strip()
                if len(shown) > CELL_MAX and not SPAN.fullmatch(shown):
                    yield f"{page}:{number}: a cell of {len(shown)} characters (at most {CELL_MAX}): \"{shown[:40]}...\""

    def words(self, page):
        text = without_generated(without_code(self.text(page)))
        for number, line in enumerate(text.splitlines(), 1):
            for word, better in INSTEAD.items():
                if re.search(rf"\b{word}\b", SPAN.sub("", line), re.IGNORECASE):
                    yield f"{page}:{number}: \"{word}\": write \"{better}\""

    def tests(self, page):
        sources = "\n".join(self.text(file) for file in self.files if re.search(r"(_test|contract\w*)\.(cc|h)$|tests/.*\.(py|cc|h)$|/contract/", file))
        words = set(re.findall(r"\w+", sources))
        for span in SPAN.findall(without_code(self.text(page))):
            if not TEST.fullmatch(span) or is_a_file_name(span):
                continue
            name = span.rpartition(".")[2]
            found = any(word.startswith(name[:-1]) for word in words) if name.endswith("*") else name in words
            if name and not found and name != "*":
                yield f"{page}: there is no test {span}"


    def folders(self, page):
        named = set(SPAN.findall(self.text(page)))
        for folder in sorted({file.split("/")[1] for file in self.files if re.match(r"src/\w+/", file)}):
            if not any(span == f"src/{folder}" or span.startswith(f"src/{folder}/") for span in named):
                yield f"{page}: the folder src/{folder} has no row"

    def threads(self, page):
        """Every thread that the code names has a row."""
        text = self.text(page)
        for file in self.files:
            if not file.startswith("src/") or not file.endswith((".cc", ".h")) or file.endswith("_test.cc"):
                continue
            for name in re.findall(r'pthread_setname_np\([^;]*"([\w-]+)"\)', self.text(file)):
                if f"| `{name}` |" not in text:
                    yield f"{page}: the thread {name} of {file} has no row"


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True)
    files = sorted(file for file in listed.stdout.splitlines() if (root / file).is_file())
    found = list(Documents(root, files).problems())
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
