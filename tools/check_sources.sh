#!/bin/sh
# Rules of style that a search can check: no file over 600 lines, no Lua function over 70, no sleeping in tests, no broken
# comments, one version.
#   tools/check_sources.sh [folder]    another tree than this one
set -eu
tools=$(cd "$(dirname "$0")" && pwd)
root=$(cd "${1:-$tools/..}" && pwd)
cd "$root"
bad=0
report() { # what was found, the advice behind each line
  [ -z "$1" ] || { printf '%s\n' "$1" | sed "s/\$/   <- $2/"; bad=1; }
}

long=$(find src tests bench tools \( -name '*.h' -o -name '*.cc' -o -name '*.py' -o -name '*.sh' -o -name '*.lua' \) -type f \
  -exec awk 'FNR == 601 { print FILENAME }' {} +)
report "$long" "over 600 lines, split it"

# What is outside all functions of a Lua file is a function too.
long=$(find src -name '*.lua' -type f -exec awk '
  FNR == 1 { begun = 0; outside = 0 }
  /^local function / && !/ end$/ { begun = FNR }
  begun && /^end$/ { if (FNR - begun >= 70) print FILENAME ":" begun; begun = 0; next }
  !begun && !/^--/ && ++outside == 71 { print FILENAME ":" FNR }' {} +)
report "$long" "a function over 70 lines, split it"

# Tests, contract suites and what only they use. Waiting for a file or an event that comes is no sleep.
sleeps=$(find src tests -type f \( -name '*_test.cc' -o -name '*_test_*.h' -o -name 'test_*.h' -o -path 'src/spi/contract*' \
  -o -path 'tests/*.cc' -o -path 'tests/*.h' \) \
  -exec grep -nHE 'sleep_for|sleep_until|[^a-z_](u|nano|clock_nano)?sleep\(|[^a-z_]p?poll\((nullptr|NULL|0),' {} + || true)
report "$sleeps" "move a clock or wait for an event instead"

# tests/e2e/programs.py has the two helpers that may sleep: wait_for(condition) and hold(seconds). An event that nobody
# can set, and one that is called a pause, are sleeps too.
sleeps=$(find tests -name '*.py' -type f ! -path tests/e2e/programs.py \
  -exec grep -nHE '(^|[^a-z_."])(time\.|asyncio\.)?sleep\(|import .*\bsleep\b|Event\(\)\.wait\(|pause\w*\.wait\(|select\(\[\], *\[\], *\[\]' {} + || true)
report "$sleeps" "call wait_for(condition); hold(seconds) only if the time itself is the fault or the measure"

# The version has one home; the changelog's newest heading names it.
version=$(sed -n 's/^project(tocsin VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt 2>/dev/null || true)
heading=$(grep -m 1 '^## ' CHANGELOG.md 2>/dev/null || true)
case " $heading " in
  *[\ \(\[]"$version"[\ \)\]]*) ;;
  *) report "CHANGELOG.md: $heading" "the first heading must name version $version of CMakeLists.txt" ;;
esac

"$tools/check_comments.py" "$root" || bad=1
exit $bad
