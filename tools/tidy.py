#!/usr/bin/python3
"""Runs clang-tidy over the source files in build/lint's compile_commands.json, as many at a time as there are cores.

Tests and benchmarks are left out: they would take as long again, and the sanitizers look at what they do.

What passed is remembered under a hash of the file, the project headers that it reaches, the configuration and the
compile command, so that only what changed is looked at again.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "lint"
PASSED = BUILD / "tidy-passed"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@functools.cache
def includes_of(path):
    names = INCLUDE.findall(path.read_text(encoding="utf-8"))
    return [file for name in names for file in (ROOT / "src" / name, path.parent / name) if file.is_file()]


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
    return run.stdout + (run.stderr if not run.stdout else "")


def main():
    PASSED.mkdir(parents=True, exist_ok=True)
    rules = (ROOT / ".clang-tidy").read_bytes()
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    entries = [entry for entry in commands if is_ours(entry["file"])]
    waiting = [(entry, PASSED / fingerprint(entry, rules)) for entry in entries]
    waiting = [(entry, stamp) for entry, stamp in waiting if not stamp.exists()]
    print(f"clang-tidy: {len(waiting)} of {len(entries)} files to look at", flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for output in pool.map(lambda pair: tidy(*pair), waiting):
            if output:
                failed += 1
                print(output, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
