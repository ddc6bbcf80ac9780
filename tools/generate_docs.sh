#!/bin/sh
# Writes the pages that are generated from the option table and the error table.
set -eu
cd "$(dirname "$0")/.."
page() {
  build/release/bin/tocsind --print-docs "$1" >"$2.new"
  mv "$2.new" "$2"
  echo "wrote $2"
}
page configuration docs/configuration.md
page errors docs/errors.md
page sample deploy/tocsin.toml
