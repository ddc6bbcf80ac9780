#!/bin/bash
# Prints the longest turn of a shard under each of the loads that once held one up: the tests marked `turns`.
set -u
cd "$(dirname "$0")/.."
tools/build.sh release tocsind || exit 1
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider -m turns tests/e2e/test_floods.py tests/e2e/test_turns.py
