#!/usr/bin/python3
"""Checks that every #include in src/ obeys the table of layers, and that library headers stay where they belong.

The tables below are the rule; docs/architecture.md explains it. Without arguments this checks src/, otherwise the folder
given. It prints violations, and rows of the tables that nothing in the tree uses, and then exits with status 1.
"""

import pathlib
import re
import sys

# folder under src/ -> other folders that it may include. Every folder has a row, and every row a folder.
BACK_END = {"base", "model", "metrics", "spi", "clients"}
LAYERS = {
    "base": set(),
    "model": {"base"},
    "config": {"base"},
    "auth": {"base"},
    "api": {"base", "auth", "model"},
    "metrics": {"base"},
    "spi": {"base", "model"},
    "core": {"base", "model", "metrics", "spi"},
    "storage": BACK_END,
    "coordination": BACK_END,
    "sinks": BACK_END | {"net"},
    "clients": {"base", "metrics", "net"},
    "net": {"base", "metrics"},
    "outbox": {"base", "model", "metrics", "net", "core", "clients"},
    "frontend": {"base", "auth", "api", "model", "metrics", "net", "core"},
    "cli": {"base", "auth", "api", "model", "net", "clients"},
}
COMPOSITION_ROOT = "server"  # may include everything, and nothing includes it

# Folders that hold siblings, which never include each other: storage/journal and storage/redis, for example.
FAMILIES = {"storage", "coordination", "sinks", "clients", "frontend"}

# Single headers that a folder may also include: the offline journal tools of the command line read segments directly.
EXCEPTIONS = {("cli", "storage/journal/inspect.h")}

# What all siblings of a family may include.
SHARED = {"frontend/shared", "coordination/shared"}

# The use cases take and return types of the SPI, so a front end passes them through.
INDIRECT = {("frontend", "spi")}

# The beginning of a library's header -> folders that may include it. Libraries that are not here may be used anywhere.
NETWORK = {"net", "frontend", "server", "cli"}
LIBRARIES = {
    "toml.hpp": {"config"},
    "zlib.h": {"frontend/http"},
    "boost/asio": NETWORK | {"clients", "coordination", "sinks"},
    "boost/beast": NETWORK | {"sinks"},
    "openssl/": {"auth", "clients/redis", "net", "sinks"},
    "hiredis/": {"clients/redis"},
    "mariadb/": {"clients/mysql"},
    "zookeeper/": {"coordination/zookeeper"},
    "librdkafka/": {"sinks/kafka"},
    "amqp": {"sinks/rabbitmq"},
}
# The only libraries of src/base, because everything depends on it.
BASE_LIBRARIES = ("fmt/", "spdlog/")
TEST_LIBRARIES = ("gtest/", "gmock/", "benchmark/")
# tests/real starts real servers, tests/sim simulates clocks, loops and disks: only tests may include them.
TEST_SUPPORT = {"real", "sim"}
# Tests of back ends run on the server's own loop.
TEST_LOOP = "net/asio_loop.h"
# The contract suites and the model store, which only tests use.
CONTRACTS = "spi/contract/"
TEST_FILE = re.compile(r"(_test|_bench|_suite)\w*\.(cc|h)$|/test_\w+\.h$|^" + CONTRACTS)

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def folder_of(path):
    """storage/journal/x.h -> (storage, storage/journal); base/x.h -> (base, base)."""
    parts = path.split("/")
    family = parts[0] in FAMILIES and len(parts) > 2
    return parts[0], "/".join(parts[:2]) if family else parts[0]


def project_violation(path, included):
    layer, folder = folder_of(path)
    target_layer, target_folder = folder_of(included)
    if target_layer in TEST_SUPPORT:
        return None if TEST_FILE.search(path) else f"tests/{target_layer} belongs in tests"
    if included.startswith(CONTRACTS) and not TEST_FILE.search(path):
        return "contract suites belong in tests"
    if included == TEST_LOOP and TEST_FILE.search(path):
        return None
    if folder == target_folder or layer == COMPOSITION_ROOT or (layer, included) in EXCEPTIONS:
        return None
    if target_folder in SHARED and layer == target_layer:
        return None
    if layer == target_layer:
        return f"siblings never include each other: {folder} -> {target_folder}"
    if target_layer == COMPOSITION_ROOT:
        return f"nothing includes {COMPOSITION_ROOT}"
    if target_layer not in LAYERS[layer] and (layer, target_layer) not in INDIRECT:
        allowed = ", ".join(sorted(LAYERS[layer])) or "nothing"
        return f"{layer} may include {allowed}; not {target_layer}"
    return None


def library_violation(path, included):
    layer, folder = folder_of(path)
    for prefix, allowed in LIBRARIES.items():
        if included.startswith(prefix) and layer not in allowed and folder not in allowed:
            return f"only {', '.join(sorted(allowed))} may include <{prefix}...>"
    standard = re.fullmatch(r"[a-z_0-9]+", included) or included.endswith(".h") and not included.startswith("boost/")
    if layer == "base" and not standard and not included.startswith(BASE_LIBRARIES + TEST_LIBRARIES):
        return "base may include the standard library, fmt and spdlog alone"
    if included.startswith(TEST_LIBRARIES) and not TEST_FILE.search(path):
        return "test libraries belong in tests"
    return None


def violations(src):
    """Yields 'file:line: why' for every include of the tree at `src` that the tables forbid."""
    files = sorted(path for path in src.rglob("*") if path.suffix in {".h", ".cc"})
    for file in files:
        path = file.relative_to(src).as_posix()
        layer = path.split("/")[0]
        if layer not in LAYERS and layer != COMPOSITION_ROOT:
            yield f"{path}: the folder {layer} is not in the table of tools/check_layers.py"
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, included = match.groups()
            if quote == '"' and not (src / included).is_file() and included.count("/") == 0:
                why = "include project headers by their path from src/"
            else:
                why = project_violation(path, included) if quote == '"' else library_violation(path, included)
            if why:
                yield f"{path}:{number}: {included}: {why}"


def stale_rows(src):
    """Yields a line for every row of the tables above that names a folder, header or library which `src` lacks."""
    folders = set(LAYERS) | FAMILIES | {COMPOSITION_ROOT}
    folders |= {folder for allowed in [*LAYERS.values(), *LIBRARIES.values()] for folder in allowed}
    folders |= {folder for pair in INDIRECT for folder in pair} | {folder for folder, _ in EXCEPTIONS}
    folders -= {folder for folder in folders if (src / folder).is_dir()}
    headers = {header for _, header in EXCEPTIONS} | {TEST_LOOP}
    headers -= {header for header in headers if (src / header).is_file()}
    text = "\n".join(path.read_text(encoding="utf-8") for path in src.rglob("*") if path.suffix in {".h", ".cc"})
    included = set(re.findall(r"^\s*#\s*include\s+<([^>]+)>", text, re.MULTILINE))
    libraries = [prefix for prefix in LIBRARIES if not any(name.startswith(prefix) for name in included)]
    for kind, names in (("folder", folders), ("header", headers), ("library", libraries)):
        for name in sorted(names):
            yield f"tools/check_layers.py names the {kind} {name}, which does not occur in the tree: remove it"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    src = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "src"
    found = [*violations(src), *stale_rows(src)]
    for violation in found:
        print(violation)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
