#!/usr/bin/python3
"""Runs clang-tidy over the source files in build/lint's compile_commands.json, as many at a time as there are cores.

    tools/tidy.py                              everything
    tools/tidy.py --changed --seconds 300      only what changed, newest first, until the time is up

Tests and benchmarks are left out: they would take as long again, and the sanitizers look at what they do.

What changed is measured from the merge base with origin/main. On origin/main itself, or if there is no such branch, it
is the last ten commits, or as many as a shallow clone has. Uncommitted changes always count. A changed header is checked
through the source file of its name, or else through one file that includes it.

What passed is remembered under a hash of the file, the project headers that it reaches, the configuration and the
compile command, so that only what changed is looked at again.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "lint"
PASSED = BUILD / "tidy-passed"
LAST_COMMITS = 10
LEFT_OUT = object()
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@functools.cache
def includes_of(path):
    names = INCLUDE.findall(path.read_text(encoding="utf-8"))
    return [file for name in names for file in (ROOT / "src" / name, path.parent / name) if file.is_file()]


@functools.cache
def reached_from(path):
    """The file itself and all project headers that it includes, directly or not."""
    reached, waiting = set(), [path]
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached.add(file)
            waiting.extend(includes_of(file))
    return sorted(reached)


def is_ours(file):
    return file.startswith(str(ROOT / "src")) and not file.endswith(("_test.cc", "_bench.cc"))


def fingerprint(entry, rules):
    digest = hashlib.sha256(rules)
    digest.update(entry["command"].encode())
    for file in reached_from(pathlib.Path(entry["file"])):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def tidy(entry, stamp):
    run = subprocess.run(
        ["clang-tidy-19", "--quiet", "-p", str(BUILD), entry["file"]], capture_output=True, text=True, check=False
    )
    if run.returncode == 0:
        stamp.touch()
        return None
    return run.stdout or run.stderr or f"{entry['file']}: clang-tidy ended with status {run.returncode}"


def git(*arguments):
    """The lines that git prints; none if it fails, as it does for a branch that does not exist or outside a repository."""
    # A checkout may belong to another user than the one who runs this.
    command = ["git", "-C", str(ROOT), "-c", "safe.directory=*", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout.splitlines() if run.returncode == 0 else []


def base_commit():
    """The commit from which changes are measured, or nothing if there is no older commit."""
    head, base = git("rev-parse", "HEAD"), git("merge-base", "HEAD", "origin/main")
    if base and base != head:
        return base[0]
    last = git("rev-list", "--first-parent", "-n", str(LAST_COMMITS + 1), "HEAD")
    return last[-1] if len(last) > 1 else None


def changed_paths():
    """Paths from the root of the repository, those that changed last first."""
    paths = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    if base := base_commit():
        paths += git("log", "-m", "--first-parent", "--format=", "--name-only", f"{base}..HEAD")
    return [path for path in dict.fromkeys(paths) if (ROOT / path).is_file()]


def only_changed(entries):
    """The entries through which clang-tidy sees every file that changed, those that changed last first."""
    by_file = {entry["file"]: entry for entry in entries}
    chosen = {}
    for path in map(ROOT.joinpath, changed_paths()):
        if path.suffix == ".h" and str(path.with_suffix(".cc")) not in by_file:
            through = (file for file in by_file if path in reached_from(pathlib.Path(file)))
        else:
            through = iter([str(path.with_suffix(".cc"))] if path.suffix in (".h", ".cc") else [])
        if (file := next(through, None)) in by_file:
            chosen[file] = by_file[file]
    return list(chosen.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no file after so long")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds

    PASSED.mkdir(parents=True, exist_ok=True)
    rules = (ROOT / ".clang-tidy").read_bytes()
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    entries = [entry for entry in commands if is_ours(entry["file"])]
    if options.changed:
        entries = only_changed(entries)
    waiting = [(entry, PASSED / fingerprint(entry, rules)) for entry in entries]
    waiting = [(entry, stamp) for entry, stamp in waiting if not stamp.exists()]
    kind = "changed files" if options.changed else "files"
    print(f"clang-tidy: {len(waiting)} of {len(entries)} {kind} to look at", flush=True)

    failed = left_out = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for output in pool.map(lambda pair: tidy(*pair) if time.monotonic() < end else LEFT_OUT, waiting):
            left_out += output is LEFT_OUT
            if output and output is not LEFT_OUT:
                failed += 1
                print(output, flush=True)
    if left_out:
        print(f"clang-tidy: no time for {left_out} of {len(waiting)} files; `make lint` looks at all of them")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
