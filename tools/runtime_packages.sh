#!/bin/sh
# Prints the Debian packages that own the shared libraries of the programs, one a line: what a machine that only runs
# them has to install. docs/operations.md has the list, and a test compares the two.
#   tools/runtime_packages.sh [PROGRAM...]     build/release/bin/tocsind and tocsin unless given
set -eu
[ $# -gt 0 ] || {
  cd "$(dirname "$0")/.."
  set -- build/release/bin/tocsind build/release/bin/tocsin
}

libraries=$(for program in "$@"; do ldd "$program"; done | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | sort -u)
owners=$(for library in $libraries; do
  # /lib is a link to /usr/lib, and dpkg knows a file by the name that its package gave it.
  owner=$(dpkg -S "$library" 2>/dev/null || dpkg -S "/usr$library" 2>/dev/null || dpkg -S "${library#/usr}") ||
    { echo "no package owns $library" >&2; exit 1; }
  echo "${owner%%:*}"
done)
printf '%s\n' "$owners" | sort -u
