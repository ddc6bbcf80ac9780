#!/bin/sh
# Writes the pages that are generated from the tables of options, errors and commands.
set -eu
cd "$(dirname "$0")/.."
write() { # file, the command that prints it
  file=$1
  shift
  "$@" >"$file.new"
  mv "$file.new" "$file"
  echo "wrote $file"
}
page() { write "$2" build/release/bin/tocsind --print-docs "$1"; }
command_page() { write "$2" build/release/bin/tocsin docs "$1"; }
page configuration docs/configuration.md
page errors docs/errors.md
page sample deploy/tocsin.toml
page man deploy/tocsind.8
mkdir -p deploy/completion
command_page cli docs/cli.md
command_page man deploy/tocsin.1
command_page bash deploy/completion/tocsin.bash
command_page zsh deploy/completion/_tocsin
command_page fish deploy/completion/tocsin.fish
tools/fill_tables.py
