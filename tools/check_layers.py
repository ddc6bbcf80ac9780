#!/usr/bin/python3
"""Checks that every #include in src/ obeys the table of layers, and that library headers stay where they belong.

The tables below are the only statement of the rule that a machine reads; docs/architecture.md explains it. Run it with
no arguments to check the tree (a list of violations, exit status 1), or with a folder to check another tree.
"""

import pathlib
import re
import sys

# folder under src/ -> folders it may include besides itself. A folder that is not here must not exist.
BACK_END = {"base", "model", "metrics", "spi", "clients"}
LAYERS = {
    "base": set(),
    "model": {"base"},
    "config": {"base"},
    "auth": {"base"},
    "metrics": {"base"},
    "spi": {"base", "model"},
    "core": {"base", "model", "metrics", "spi"},
    "storage": BACK_END,
    "coordination": BACK_END,
    "sinks": BACK_END | {"net"},
    "clients": {"base", "metrics"},
    "net": {"base", "metrics"},
    "frontend": {"base", "auth", "model", "metrics", "net", "core"},
    "cli": {"base", "auth", "model", "net"},
    "client": {"base", "model", "net"},
}
COMPOSITION_ROOT = "server"  # may include everything, and nothing includes it

# Folders that hold siblings, which never include each other: storage/journal and storage/redis, for example.
FAMILIES = {"storage", "coordination", "sinks", "clients", "frontend"}

# Single headers that a folder may include besides: the offline journal tools of the command line read segments directly.
EXCEPTIONS = {("cli", "storage/journal/inspect.h")}

# A front end hands the types of the SPI through: they are what the use cases take and return.
INDIRECT = {("frontend", "spi")}

# The beginning of a library's header -> folders that may include it. Libraries that are not here may be used anywhere.
NETWORK = {"net", "frontend", "server", "cli", "client"}
LIBRARIES = {
    "toml.hpp": {"config"},
    "toml/": {"config"},
    "zlib.h": {"frontend/http"},
    "boost/asio": NETWORK | {"clients", "coordination", "sinks"},
    "boost/beast": NETWORK | {"sinks"},
    "openssl/": {"auth", "clients/redis", "net", "sinks"},
    "rocksdb/": {"storage/journal"},
    "hiredis/": {"clients/redis"},
    "mysql": {"storage/mysql"},
    "mariadb": {"storage/mysql"},
    "zookeeper/": {"coordination/zookeeper"},
    "librdkafka/": {"sinks/kafka"},
    "rabbitmq-c/": {"sinks/rabbitmq"},
    "amqp": {"sinks/rabbitmq"},
    "grpc": {"frontend/grpc"},
    "google/protobuf": {"frontend/grpc"},
}
# What src/base keeps to, so that everything can stand on it.
BASE_LIBRARIES = ("fmt/", "spdlog/")
TEST_LIBRARIES = ("gtest/", "gmock/", "benchmark/")
# tests/real starts real servers, tests/sim simulates clocks, loops and disks: only tests may include them.
TEST_SUPPORT = {"real", "sim"}
# The server's own loop, on which tests of back ends run what they test.
TEST_LOOP = "net/asio_loop.h"
TEST_FILE = re.compile(r"(_test|_bench|_suite|contract)\w*\.(cc|h)$")

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
    if included == TEST_LOOP and TEST_FILE.search(path):
        return None
    if folder == target_folder or layer == COMPOSITION_ROOT or (layer, included) in EXCEPTIONS:
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


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    found = list(violations(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "src"))
    for violation in found:
        print(violation)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
