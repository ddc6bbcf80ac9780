#!/bin/bash
# A whole cluster on this machine, to try it out: a Redis Cluster (3 masters, 3 replicas), ZooKeeper, three Tocsin nodes.
# All on 127.0.0.1, in one terminal; Ctrl-C stops all of it. `make cluster` builds and installs what it needs first.
#   deploy/local-cluster.sh [--port-base N] [--folder DIR]
#     --port-base N   Redis listens on N+1 to N+6 (and 10,000 above, for itself), ZooKeeper on N+181, the nodes on
#                     N+420, N+430 and N+440 for HTTP and one above each for RESP. 7000 unless given.
#     --folder DIR    data and logs; what an earlier cluster left there is removed at the start. build/cluster unless given.
# A part that ends, because you killed it, starts again after ten seconds, as systemd would do it.
set -euo pipefail
cd "$(dirname "$0")/.."

base=7000
folder=build/cluster
while [ $# -gt 0 ]; do
  case $1 in
    --port-base) base=${2:?"--port-base needs a number"} ;;
    --folder) folder=${2:?"--folder needs a folder"} ;;
    -h | --help)
      sed -n 's/^# \{0,1\}//p; /^set/q' "$0" | tail -n +2
      exit 0
      ;;
    *)
      echo "deploy/local-cluster.sh: there is no option $1; --help shows all" >&2
      exit 2
      ;;
  esac
  shift 2
done
[[ $base =~ ^[0-9]+$ ]] && ((base >= 1024 && base <= 50000)) || {
  echo "deploy/local-cluster.sh: --port-base $base is not a number from 1024 to 50000" >&2
  exit 2
}

programs=${TOCSIN_BIN_DIR:-build/release/bin}
unset TOCSIN_BIN_DIR # tocsind takes variables that begin with TOCSIN_ for options
jars=/usr/share/java
mark=.tocsin-local-cluster # in folders that this script made: it removes no others
node_names=(a b c)
redis_ports=() supervisors=()
for i in 1 2 3 4 5 6; do redis_ports+=($((base + i))); done
zookeeper_port=$((base + 181))
endpoints=$(printf ',127.0.0.1:%s' "${redis_ports[@]}")
endpoints=${endpoints:1}

fail() {
  echo "deploy/local-cluster.sh: $*" >&2
  exit 1
}

check() {
  local port
  [ -x "$programs/tocsind" ] || fail "$programs/tocsind does not exist: run make cluster, which builds it"
  command -v redis-server redis-cli java >/dev/null && [ -e $jars/zookeeper.jar ] ||
    fail "redis-server, redis-cli, java or ZooKeeper is missing: run make cluster, or tools/install.sh cluster"
  [ ! -e "$folder" ] || [ -e "$folder/$mark" ] || [ -z "$(ls -A "$folder")" ] ||
    fail "$folder holds other things: name an empty folder, or one that does not exist, with --folder"
  for port in "${redis_ports[@]}" "$zookeeper_port" $((base + 420)) $((base + 430)) $((base + 440)); do
    ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null ||
      fail "port $port is in use, perhaps by a cluster in another terminal; choose others with --port-base"
  done
}

# Runs a part in the background and starts it again when it ends. It leads its own session, so that Ctrl-C reaches this
# script alone, which stops the parts in order.
keep() { # name, command
  local name=$1
  shift
  (
    child=
    trap '[ -z "$child" ] || kill "$child" 2>/dev/null; wait; exit 0' TERM
    trap '' INT HUP
    while :; do
      setsid "$@" >>"$folder/$name.log" 2>&1 &
      child=$!
      echo $child >"$folder/$name.pid"
      status=0
      wait $child 2>/dev/null || status=$? # without a word of the shell about how it ended
      echo "  $name has ended (status $status); it starts again in 10 s. Its log: $folder/$name.log"
      sleep 10 &
      child=$!
      wait $child || true
    done
  ) &
  supervisors+=($!)
}

stop() {
  trap '' INT TERM HUP
  [ ${#supervisors[@]} -gt 0 ] || return 0
  printf '\nStopping the nodes, ZooKeeper and Redis.\n'
  local i
  for ((i = ${#supervisors[@]} - 1; i >= 0; --i)); do # the nodes first, then what they stand on
    kill "${supervisors[i]}" 2>/dev/null || true
    wait "${supervisors[i]}" 2>/dev/null || true
  done
  echo "All is stopped. The logs are still in $folder."
}

await() { # what, seconds, command
  local what=$1 end=$((SECONDS + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "$what is not ready; see the logs in $folder"
    sleep 0.1
  done
}

start_redis() {
  local port
  for port in "${redis_ports[@]}"; do
    mkdir "$folder/redis-$port"
    keep "redis-$port" redis-server --bind 127.0.0.1 --port "$port" --dir "$path/redis-$port" --save '' \
      --appendonly yes --appendfsync everysec --maxmemory-policy noeviction \
      --cluster-enabled yes --cluster-node-timeout 2000 --repl-diskless-sync-delay 0
  done
  for port in "${redis_ports[@]}"; do await "Redis on port $port" 20 redis-cli -p "$port" ping; done
  # shellcheck disable=SC2086
  redis-cli --cluster create ${endpoints//,/ } --cluster-replicas 1 --cluster-yes >"$folder/create.log" 2>&1 ||
    fail "redis-cli --cluster create failed; see $folder/create.log"
  for port in "${redis_ports[@]}"; do await "The Redis Cluster" 30 cluster_is_ok "$port"; done
}

cluster_is_ok() { redis-cli -p "$1" cluster info | grep -q '^cluster_state:ok'; }

start_zookeeper() {
  mkdir "$folder/zookeeper"
  cat >"$folder/zookeeper/zoo.cfg" <<END
tickTime=500
dataDir=$path/zookeeper/data
clientPort=$zookeeper_port
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=ruok
END
  keep zookeeper java -Xmx128m -XX:+UseSerialGC -cp "$jars/zookeeper.jar:$jars/slf4j-simple.jar" \
    org.apache.zookeeper.server.ZooKeeperServerMain "$folder/zookeeper/zoo.cfg"
  await ZooKeeper 30 zookeeper_is_ok
}

zookeeper_is_ok() {
  local answer
  exec 3<>"/dev/tcp/127.0.0.1/$zookeeper_port" || return 1
  printf ruok >&3
  read -r -t 2 -n 4 answer <&3
  exec 3>&-
  [ "$answer" = imok ]
}

start_nodes() {
  local i http
  for i in "${!node_names[@]}"; do
    http=$((base + 420 + 10 * i))
    keep "node-${node_names[i]}" "$programs/tocsind" --store redis --redis-mode cluster --redis-endpoints "$endpoints" \
      --coordination zookeeper --zookeeper-hosts "127.0.0.1:$zookeeper_port" --node-name "${node_names[i]}" \
      --data-dir "$folder/node-${node_names[i]}" --http-listen "127.0.0.1:$http" --resp-listen "127.0.0.1:$((http + 1))"
  done
  for i in "${!node_names[@]}"; do
    await "Node ${node_names[i]}" 30 "$programs/tocsin" stats --server "http://127.0.0.1:$((base + 420 + 10 * i))"
  done
}

summary() {
  local i http first=$((base + 420)) last=$((base + 440))
  printf '\nThe cluster runs. Only this machine can reach it; nobody is asked for a password.\n\n'
  printf '  %-14s 127.0.0.1:%s to %s: 3 masters, 3 replicas\n' "Redis Cluster" "${redis_ports[0]}" "${redis_ports[5]}"
  printf '  %-14s 127.0.0.1:%s: where the nodes find each other\n' ZooKeeper "$zookeeper_port"
  for i in "${!node_names[@]}"; do
    http=$((base + 420 + 10 * i))
    printf '  %-14s http://127.0.0.1:%s, RESP on port %s\n' "node ${node_names[i]}" $http $((http + 1))
  done
  cat <<END

Look at it:              $programs/tocsin cluster --server http://127.0.0.1:$first
Submit to one node:      $programs/tocsin submit demo hello --in 5s --server http://127.0.0.1:$first
and take from another:   $programs/tocsin reserve demo --wait 10s --server http://127.0.0.1:$last
Kill one of them:        kill -9 \$(cat $folder/node-a.pid)     (or redis-${redis_ports[0]}.pid, zookeeper.pid)
Logs and data:           $folder

Ctrl-C stops everything.
END
}

check
rm -rf "$folder"
mkdir -p "$folder"
touch "$folder/$mark"
path=$(realpath "$folder")
trap 'exit 0' INT TERM HUP
trap stop EXIT
echo "Starting a Redis Cluster of six, ZooKeeper and three nodes on 127.0.0.1; about ten seconds."
start_redis
start_zookeeper
start_nodes
summary
wait
