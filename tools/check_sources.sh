#!/bin/sh
# Rules of style that a search can check: no file of ours over 600 lines, and no sleeping in tests.
set -eu
cd "$(dirname "$0")/.."
bad=0

long=$(find src tests bench tools \( -name '*.h' -o -name '*.cc' -o -name '*.py' -o -name '*.sh' \) -type f \
  -exec awk 'FNR == 601 { print FILENAME ": over 600 lines, split it" }' {} +)
[ -z "$long" ] || { echo "$long"; bad=1; }

sleeps=$(find src tests \( -name '*_test.cc' -o -path 'tests/*.cc' -o -path 'tests/*.h' \) -type f \
  -exec grep -nHE 'sleep_for|sleep_until|[^a-z_](u|nano)?sleep\(' {} + || true)
[ -z "$sleeps" ] || { printf '%s\n' "$sleeps" | sed 's/$/   <- move a clock or wait for an event instead/'; bad=1; }

exit $bad
