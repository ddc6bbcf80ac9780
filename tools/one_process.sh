#!/bin/bash
# Runs a whole GoogleTest program as one test of ctest. Ends with its status; with 77, which ctest shows as skipped, where
# it passed but skipped some of its tests.
set -u
output=$(mktemp)
trap 'rm -f "$output"' EXIT
"$@" 2>&1 | tee "$output"
status=${PIPESTATUS[0]}
[ "$status" -ne 0 ] || ! grep -q '^\[  SKIPPED \]' "$output" || exit 77
exit "$status"
