#!/bin/bash
# Many nodes on real Redis (single, Sentinel, Cluster) and ZooKeeper: parts are killed, stopped and cut off under load, again
# and again, and a checker says whether anything was lost, early or stuck. Prints its seed and its figures.
#   MINUTES=30   for each of the four kinds of cluster (5 unless set)
#   SEED=42      repeats the choices of a run
set -u
cd "$(dirname "$0")/.."
export MINUTES=${MINUTES:-5} SEED=${SEED:-}
results=$PWD/build/torture-cluster-results
rm -rf "$results"
mkdir -p "$results"

tools/build.sh release tocsind tocsin || exit 1
echo "Torture of clusters: four kinds, $MINUTES minutes each."
/usr/bin/python3 -m pytest -p no:cacheprovider -s --junitxml "$results/e2e.xml" tests/e2e/cluster_torture.py
exec /usr/bin/python3 tools/count_tests.py "$results"
