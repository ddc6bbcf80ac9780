#!/bin/sh
# Installs the Debian packages of the lists named (tools/packages-NAME.txt): tools/install.sh build test
# Silent and instant if nothing is missing.
set -eu
cd "$(dirname "$0")"

wanted=$(for list in "$@"; do cat "packages-$list.txt"; done | sort -u)
# shellcheck disable=SC2086
present=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^ii  *//p' | sort -u)
missing=$(printf '%s\n' "$wanted" | grep -vxF -e "$present" || true)
# A package of another origin may stand for one of Debian's, and exclude it: other builds of nodejs come with their npm.
[ -z "$missing" ] || {
  provided=$(dpkg-query -W -f '${db:Status-Abbrev} ${Provides}\n' | sed -n 's/^ii  *//p' | tr ',' '\n' | sed 's/^ *//; s/ .*//')
  missing=$(printf '%s\n' "$missing" | grep -vxF -e "$provided" || true)
}
[ -n "$missing" ] || exit 0

echo "Tocsin needs these Debian packages, which are not installed:"
printf '%s\n' "$missing" | paste -sd' ' | fold -s -w 100 | sed 's/^/  /'
as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "Please install them as root: this user has no sudo." >&2; exit 1; }
  as_root=sudo
  echo "Installing them with sudo apt-get; this takes one to five minutes, most of it for the download."
else
  echo "Installing them with apt-get; this takes one to five minutes, most of it for the download."
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
step() {
  echo "  $*"
  $as_root env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    echo "This step failed: $*" >&2
    exit 1
  }
}
step apt-get -o Acquire::Retries=3 update -q
# shellcheck disable=SC2086
step apt-get -o Acquire::Retries=3 install -q -y --no-install-recommends $missing
echo "Installed."
