#!/bin/bash
# Kills, overloads and otherwise mistreats a real server, and checks that nothing was lost: what is labelled `torture` among
# the unit tests, then what is marked `torture` among the end-to-end tests. Each end-to-end test prints its seed, its cycles
# and what its clients met.
#   TOCSIN_TORTURE_CYCLES=1000   kills in each test (200 unless set)
#   TORTURE_MINUTES=60           bounds each test (10 unless set)
#   TOCSIN_TORTURE_SEED=42       repeats the choices of a run
set -u
cd "$(dirname "$0")/.."
export TORTURE_MINUTES=${TORTURE_MINUTES:-10} TOCSIN_TORTURE_CYCLES=${TOCSIN_TORTURE_CYCLES:-200}
results=$PWD/build/torture-results
rm -rf "$results"
mkdir -p "$results"

tools/build.sh release || exit 1
echo "Torture: $TOCSIN_TORTURE_CYCLES kills or $TORTURE_MINUTES minutes for each test, whichever comes first."
ctest --test-dir build/release -L torture --output-on-failure --output-junit "$results/ctest.xml" \
  --timeout $((TORTURE_MINUTES * 60 + 600))
/usr/bin/python3 -m pytest -p no:cacheprovider -s -m torture --junitxml "$results/e2e.xml" tests/e2e
exec /usr/bin/python3 tools/count_tests.py "$results"
