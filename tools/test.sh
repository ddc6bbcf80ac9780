#!/bin/bash
# All tests, in phases that each say what they do. A phase that fails does not stop the later ones. The last line is the
# count: N passed, N failed, N skipped; the exit status is 0 only if nothing failed.
#   tools/test.sh              everything
#   tools/test.sh unit e2e     only these phases, of: unit fuzz tsan e2e
#   FUZZ_SECONDS=600 tools/test.sh fuzz
set -u
cd "$(dirname "$0")/.."

phases=("$@")
[ ${#phases[@]} -gt 0 ] || phases=(unit fuzz tsan e2e)
results=$PWD/build/test-results
fuzz_seconds=${FUZZ_SECONDS:-15}
failed_phases=0
ahead= # the process that builds for later phases
trap '[ -z "$ahead" ] || kill -- -"$ahead" 2>/dev/null' EXIT
rm -rf "$results"
mkdir -p "$results"

say() { printf '\n== %s\n' "$*"; }

# A step that has no tests of its own, such as a build, counts as one failed test if it fails.
must() {
  "$@" && return
  echo "FAILED: $*"
  failed_phases=$((failed_phases + 1))
  return 1
}

targets_of() { # phase
  case $1 in
    unit) echo asan unit_tests fuzzers ;;
    fuzz) echo asan fuzzers ;;
    tsan) echo tsan concurrency_tests ;;
    e2e) echo release tocsind tocsin load_bench push_bench ;;
  esac
}

stop_building_ahead() {
  [ -z "$ahead" ] || { kill -- "-$ahead" 2>/dev/null; wait "$ahead"; }
  ahead=
}

# What was not built ahead is built here, no longer in the idle class.
build() { # phase
  stop_building_ahead
  # shellcheck disable=SC2046
  must tools/build.sh $(targets_of "$1")
}

# Unit tests wait for servers about half of their time. Meanwhile what the later phases need is built, with the processor
# time that nothing else wants. A build that fails here is repeated by its phase, which shows why.
build_ahead() { # phase...
  local phase commands=true
  for phase in "$@"; do commands+=" && tools/build.sh $(targets_of "$phase")"; done
  # A process group, so that it can be stopped as a whole; no session, because the kernel may share the processor out by sessions
  # first (autogroup), and the idle class would count only inside it.
  set -m
  chrt --idle 0 ionice -c 3 sh -c "$commands" >"$results/build-ahead.log" 2>&1 &
  ahead=$!
  set +m
}

run_ctest() { # folder, name of the report, further arguments
  local folder=$1 report=$results/$2.xml
  shift 2
  rm -rf "$folder/reports" # of the programs that are one test of ctest
  ctest --test-dir "$folder" --output-on-failure --no-tests=error --parallel 3 --output-junit "$report" "$@" |
    grep -v -E '^ *Start |Test +#[0-9]+: .* Passed '
  [ ! -d "$folder/reports" ] || mv "$folder/reports" "${report%.xml}.programs"
  [ -s "$report" ] || must false "ctest in $folder wrote no report"
}

unit() {
  say "unit and contract tests with ASan and UBSan (a first build takes about ten minutes, the tests six)"
  build unit || return
  build_ahead "${phases[@]}"
  run_ctest build/asan unit -LE torture
}

fuzz() {
  say "fuzzing: every target for $fuzz_seconds s, two at a time"
  build fuzz || return
  local target fuzzing=()
  for target in build/asan/fuzzers/*_fuzz; do
    [ -x "$target" ] || continue
    fuzz_one "$target" &
    fuzzing+=($!)
    [ ${#fuzzing[@]} -lt 2 ] || { wait "${fuzzing[0]}"; fuzzing=("${fuzzing[@]:1}"); }
  done
  wait "${fuzzing[@]}"
}

fuzz_one() {
  local name log found corpus
  name=$(basename "$1")
  log=$results/$name.log
  found=build/asan/corpus/$name # begin with what earlier runs found
  corpus=tests/fuzz/corpus/$name
  mkdir -p "$found"
  local arguments=(-max_total_time="$fuzz_seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$results/$name-")
  [ -d "$corpus" ] || corpus=
  [ ! -f "tests/fuzz/$name.dict" ] || arguments+=(-dict="tests/fuzz/$name.dict")
  # shellcheck disable=SC2086
  if "$1" "${arguments[@]}" "$found" $corpus >"$log" 2>&1; then
    echo "1 0 0" >"$results/$name.count"
    echo "$name: $(tail -n 1 "$log")"
  else
    echo "0 1 0" >"$results/$name.count"
    tail -n 40 "$log"
    echo "FAILED: $name. The input is in $results; run it again with: $1 <input>"
  fi
}

tsan() {
  say "the concurrency tests once more under TSan (a first build takes about four minutes, the tests one)"
  build tsan || return
  run_ctest build/tsan tsan -L concurrency -LE torture
}

e2e() {
  say "end-to-end tests against the release build (a first build takes about five minutes, the tests eight)"
  build e2e || return
  # Two at a time, because they mostly wait; those that measure run alone.
  run_pytest e2e "not torture and not alone" -n 2 --dist loadfile
  run_pytest e2e-alone "not torture and alone"
}

run_pytest() { # name of the report, marks, further arguments
  local report=$results/$1.xml marks=$2
  shift 2
  /usr/bin/python3 -m pytest -q -rs -p no:cacheprovider -m "$marks" "$@" --junitxml "$report" tests/e2e
  [ -s "$report" ] || must false "pytest wrote no report"
}

[ "${phases[*]}" = fuzz ] || tools/kafka_jars.sh

for phase in "${phases[@]}"; do
  case $phase in
    unit | fuzz | tsan | e2e)
      began=$SECONDS
      $phase
      echo "$phase: took $((SECONDS - began)) s"
      ;;
    *) must false "there is no phase $phase" ;;
  esac
done

stop_building_ahead
[ $failed_phases -eq 0 ] || echo "0 $failed_phases 0" >"$results/phases.count"
printf '\n'
exec /usr/bin/python3 tools/count_tests.py "$results"
