#!/bin/bash
# Installs the peers that are missing, builds, and runs the benchmark: tools/bench.sh short|full [options of bench/run.py]
# What cannot be installed is skipped by the benchmark, with its reason.
set -eu
cd "$(dirname "$0")/.."
servers=$(cat tools/packages-bench.txt)
policy=/usr/sbin/policy-rc.d

as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi; }

missing_servers() {
  local package
  for package in $servers; do
    dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || echo "$package"
  done
}

# Debian starts the service of a package when it is installed, and again at every boot. A benchmark must leave no servers
# running: a policy forbids the first while apt-get runs, and then we disable the new services.
install_servers() {
  local missing ours= status=0
  missing=$(missing_servers)
  [ -n "$missing" ] || return 0
  if [ ! -e $policy ]; then
    trap 'as_root rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null && as_root chmod 755 $policy && ours=yes
  fi
  tools/install.sh bench || status=$?
  [ -z "$ours" ] || as_root rm -f $policy
  trap - EXIT
  [ ! -d /run/systemd/system ] || for package in $missing; do
    as_root systemctl disable --quiet "$package.service" 2>/dev/null || true
  done
  return $status
}

install_servers || echo "The peers that are missing will be skipped."
# Other sources of Node bring npm with it, and Debian's package would be in their way.
command -v npm >/dev/null || tools/install.sh bench-node || echo "The peers with Node clients will be skipped."
tools/kafka_jars.sh || true # it says why; push to Kafka is skipped with that reason
tools/build.sh release tocsind load_bench nodes_bench push_bench
case ${1:-} in
short)
  /usr/bin/python3 bench/redis_costs.py --nodes 1,4,16 --slots 1,64 || echo "What a job costs Redis was not measured."
  build/release/bin/nodes_bench --idle-s 3 || echo "A hundred nodes were not simulated."
  ;;
full)
  /usr/bin/python3 bench/redis_costs.py || echo "What a job costs Redis was not measured."
  for groups in 64 1024 4096; do
    build/release/bin/nodes_bench --groups $groups || echo "A hundred nodes were not simulated."
  done
  /usr/bin/python3 bench/operate_bench.py || echo "The lateness beside operations was not measured."
  ;;
esac
exec /usr/bin/python3 bench/run.py "$@"
