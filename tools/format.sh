#!/bin/sh
# Formats every C++ file, or with --check only says which are not formatted.
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = --check ]; then set -- --dry-run -Werror; else set -- -i; fi
find src tests bench cmake \( -name '*.h' -o -name '*.cc' \) -print0 | xargs -0 -n 40 -P 2 clang-format-19 "$@"
