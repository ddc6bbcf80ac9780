#!/bin/sh
# Installs the npm packages that web/package-lock.json pins, unless they are there. Builds that run at once wait for each
# other.
set -eu
cd "$(dirname "$0")/../web"
[ -f package-lock.json ] || exit 0
exec 9<package-lock.json
flock 9
[ node_modules/.package-lock.json -nt package-lock.json ] && exit 0
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && exit 0
echo "npm could not fetch the packages of web/. cmake -DTOCSIN_UI=OFF builds the server without the dashboard." >&2
exit 1
