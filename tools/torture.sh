#!/bin/bash
# Kills, overloads and otherwise mistreats a real server, and checks that nothing was lost: what is labelled `torture` among
# the unit tests, then what is marked `torture` among the end-to-end tests. TORTURE_MINUTES (default 10) bounds each.
set -u
cd "$(dirname "$0")/.."
export TORTURE_MINUTES=${TORTURE_MINUTES:-10}
results=$PWD/build/torture-results
rm -rf "$results"
mkdir -p "$results"

tools/build.sh release || exit 1
echo "Torture: $TORTURE_MINUTES minutes for each test; set TORTURE_MINUTES for more."
ctest --test-dir build/release -L torture --output-on-failure --output-junit "$results/ctest.xml" \
  --timeout $((TORTURE_MINUTES * 60 + 600))
/usr/bin/python3 -m pytest -p no:cacheprovider -s -m torture --junitxml "$results/e2e.xml" tests/e2e
exec /usr/bin/python3 tools/count_tests.py "$results"
