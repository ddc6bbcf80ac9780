#!/bin/bash
# Gets the jars of the Kafka broker that tests start, by Maven as it is configured on this machine, into build/kafka. Silent
# and instant where they are there. Where they cannot be had it says why, leaves that in build/kafka-missing for the tests
# that are skipped, and ends with 1.
set -u
cd "$(dirname "$0")/.."
folder=build/kafka
why=build/kafka-missing
log=build/kafka-maven.log
wanted=$(cksum <tools/kafka/pom.xml)
[ "$(cat "$folder/wanted" 2>/dev/null)" != "$wanted" ] || exit 0

missing() {
  echo "$1" >"$why"
  echo "Tests against a real Kafka will be skipped: $1"
  exit 1
}

mkdir -p build
command -v mvn >/dev/null || missing "the program mvn is not installed (Debian: maven)"
echo "Getting the jars of Kafka by Maven; this takes one to three minutes, most of it for the download."
rm -rf "$folder"
timeout 600 mvn --batch-mode --quiet --file tools/kafka/pom.xml dependency:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$PWD/$folder" >"$log" 2>&1 </dev/null || {
  rm -rf "$folder"
  missing "Maven could not get its jars (build/kafka-maven.log)"
}
echo "$wanted" >"$folder/wanted" # last, so that what broke off is done again
rm -f "$why" "$log"
