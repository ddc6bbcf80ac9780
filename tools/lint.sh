#!/bin/bash
# Formatting, layers, rules of style, clang-tidy. Goes on after a failure, so that one run shows everything.
#   tools/lint.sh            everything; clang-tidy takes up to ten minutes the first time
#   tools/lint.sh quick      without clang-tidy: in seconds
#   tools/lint.sh changed    with clang-tidy for what changed (tools/tidy.py), for at most TIDY_SECONDS (300)
set -u
cd "$(dirname "$0")/.."
bad=0
check() { # what it is, command
  echo "== $1"
  shift
  "$@" || { echo "FAILED: $*"; bad=1; }
}

# clang-tidy reads the precompiled headers that the compiler wrote; ccache in the commands would only confuse it.
tidy() {
  cmake --preset dev -B build/lint -DCCACHE=OFF >/dev/null &&
    cmake --build build/lint --target tocsin_pch tocsin_test_pch tocsin_net_pch tocsin_net_test_pch >/dev/null &&
    tools/tidy.py "$@"
}

check "formatting (make format repairs it)" tools/format.sh --check
check "layers" tools/check_layers.py
check "layers: the check itself" tools/check_layers_test.py
check "documents" tools/check_docs.py
check "documents: the check itself" tools/check_docs_test.py
check "the count of the tests" tools/count_tests_test.py
check "the choice of changed files" tools/tidy_test.py
check "sizes, sleeps and comments" tools/check_sources.sh
check "sizes, sleeps and comments: the check itself" tools/check_sources_test.py
case ${1:-} in
  quick) ;;
  changed) check "clang-tidy for what changed" tidy --changed --seconds "${TIDY_SECONDS:-300}" ;;
  *) check "clang-tidy (up to ten minutes for the whole tree; unchanged files are skipped)" tidy ;;
esac
exit $bad
