#!/bin/sh
# Configures and builds a preset into build/PRESET: tools/build.sh PRESET [TARGET...]
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift

if [ ! -f "build/$preset/build.ninja" ]; then
  echo "Building $preset from scratch: some minutes on two cores. Later builds only redo what changed."
  cmake --preset "$preset" >/dev/null
fi
cmake --build "build/$preset" --target "${@:-all}"
