#include <algorithm>

#include "real/cluster_nodes.h"
#include "real/redis_servers.h"
#include "real/replication.h"

namespace tocsin::real {

namespace {

constexpr size_t kMasters = 3;
constexpr size_t kNodes = 6;

std::vector<ClusterNode> NodesSeenBy(RedisServer& node) {
  if (!node.awake()) return {};
  const Result<Answer> answer = node.Ask({"CLUSTER", "NODES"});
  return answer && !answer->error() ? ParseClusterNodes(answer->text) : std::vector<ClusterNode>{};
}

/// The port of the node that serves the hash slot, as `node` sees it; 0 if it knows none.
uint16_t MasterSaidBy(RedisServer& node, int hash_slot) {
  for (const ClusterNode& one : NodesSeenBy(node)) {
    if (one.Serves(hash_slot)) return one.port;
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<RedisCluster>> RedisCluster::Make(ClusterOptions options) {
  std::unique_ptr<RedisCluster> cluster(new RedisCluster(std::move(options)));
  TOCSIN_TRY(cluster->StartNodes());
  TOCSIN_TRY(cluster->Introduce());
  TOCSIN_TRY(cluster->AddReplicas());
  TOCSIN_TRY(cluster->WaitUntilOk());
  TOCSIN_TRY(cluster->WaitUntilInStep());
  return cluster;
}

Status RedisCluster::StartNodes() {
  RedisOptions options{.append_only = options_.append_only,
                       .append_fsync = options_.append_fsync,
                       .password = options_.password,
                       .lines = options_.lines};
  options.lines.push_back(fmt::format("cluster-node-timeout {}", options_.node_timeout.count()));
  // A replica takes over however long it was without its master: a busy machine must not keep it from that.
  options.lines.emplace_back("cluster-replica-validity-factor 0");
  for (size_t i = 0; i < kNodes; ++i) {
    auto node = RedisServer::MakeKind(options, RedisServer::Kind::kClusterNode);
    if (!node) return std::unexpected(std::move(node).error());
    nodes_.push_back(std::move(*node));
  }
  return {};
}

// Slots and epochs first, while no node knows another; then every pair meets, which spares the time that gossip takes.
Status RedisCluster::Introduce() {
  const auto ask = [this](size_t i, const std::vector<std::string>& command) -> Status {
    Result<Answer> answer = MustAsk(nodes_[i]->port(), command, {.password = options_.password});
    if (!answer) return std::unexpected(std::move(answer).error());
    return {};
  };
  for (size_t i = 0; i < kNodes; ++i) {
    TOCSIN_TRY(ask(i, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)}));
    if (i >= kMasters) continue;
    const size_t first = kHashSlots * i / kMasters;
    const size_t last = kHashSlots * (i + 1) / kMasters - 1;
    TOCSIN_TRY(ask(i, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last)}));
  }
  for (size_t i = 0; i < kNodes; ++i) {
    for (size_t j = i + 1; j < kNodes; ++j) {
      TOCSIN_TRY(ask(i, {"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[j]->port()),
                         std::to_string(nodes_[j]->bus_port_)}));
    }
  }
  const auto met = [&] { return std::ranges::all_of(nodes_, [&](auto& node) { return KnowsAll(*node); }); };
  if (WaitFor(Millis(20'000), met)) return {};
  return Fail(Code::kTimedOut, "the nodes of the Cluster did not meet:\n{}", ViewOf(NodesSeenBy(*nodes_[0])));
}

bool RedisCluster::KnowsAll(RedisServer& node) {
  const std::vector<ClusterNode> seen = NodesSeenBy(node);
  return seen.size() == kNodes && std::ranges::all_of(seen, [](const auto& one) { return one.flags == "master"; });
}

Status RedisCluster::AddReplicas() {
  for (size_t i = kMasters; i < kNodes; ++i) {
    Result<std::string> master = IdOf(nodes_[i - kMasters]->port());
    if (!master) return std::unexpected(std::move(master).error());
    Result<Answer> set = MustAsk(nodes_[i]->port(), {"CLUSTER", "REPLICATE", *master}, {.password = options_.password});
    if (!set) return std::unexpected(std::move(set).error());
  }
  return {};
}

std::vector<uint16_t> RedisCluster::Ports() const {
  std::vector<uint16_t> ports;
  for (const auto& node : nodes_) ports.push_back(node->port());
  return ports;
}

RedisServer& RedisCluster::At(uint16_t port) { return ServerAt(nodes_, port); }

Result<uint16_t> RedisCluster::MasterOf(int hash_slot) {
  for (const auto& node : nodes_) {
    if (const uint16_t port = MasterSaidBy(*node, hash_slot); port != 0) return port;
  }
  return Fail(Code::kIo, "no node serves the hash slot {}", hash_slot);
}

std::vector<uint16_t> RedisCluster::Masters() {
  std::vector<uint16_t> ports;
  for (const auto& node : nodes_) {
    if (IsMaster(*node)) ports.push_back(node->port());
  }
  return ports;
}

Result<uint16_t> RedisCluster::KillMasterOf(int hash_slot) {
  Result<uint16_t> port = MasterOf(hash_slot);
  if (port) At(*port).Kill();
  return port;
}

Result<uint16_t> RedisCluster::PauseMasterOf(int hash_slot) {
  Result<uint16_t> port = MasterOf(hash_slot);
  if (port) At(*port).Pause();
  return port;
}

Result<uint16_t> RedisCluster::WaitForNewMaster(int hash_slot, uint16_t old, Millis within) {
  uint16_t found = 0;
  const auto taken = [&] {
    const Result<uint16_t> port = MasterOf(hash_slot);
    found = port ? *port : 0;
    return found != 0 && found != old && IsMaster(At(found));
  };
  if (WaitFor(within, taken)) return found;
  return Fail(Code::kTimedOut, "nobody took the hash slot {} over within {} ms", hash_slot, within.count());
}

bool RedisCluster::Agreed() {
  std::string view;
  for (const auto& node : nodes_) {
    if (!node->awake()) continue;
    const Result<Answer> info = node->Ask({"CLUSTER", "INFO"});
    if (!info || InfoField(info->text, "cluster_state") != "ok") return false;
    const std::string seen = ViewOf(NodesSeenBy(*node));
    if (!view.empty() && seen != view) return false;
    view = seen;
  }
  return !view.empty();
}

Status RedisCluster::WaitUntilOk(Millis within) {
  if (WaitFor(within, [this] { return Agreed(); })) return {};
  std::string views;
  for (const auto& node : nodes_) views += fmt::format("{} sees\n{}", node->port(), ViewOf(NodesSeenBy(*node)));
  return Fail(Code::kTimedOut, "the Cluster is not ok after {} ms:\n{}", within.count(), views);
}

Status RedisCluster::WaitUntilInStep(Millis within) {
  if (WaitFor(within, [this] { return InStep(nodes_); })) return {};
  return Fail(Code::kTimedOut, "the replicas are not in step after {} ms", within.count());
}

Result<std::string> RedisCluster::IdOf(uint16_t port) {
  Result<Answer> id = MustAsk(port, {"CLUSTER", "MYID"}, {.password = options_.password});
  if (!id) return std::unexpected(std::move(id).error());
  return std::move(id->text);
}

Result<Answer> RedisCluster::Ask(uint16_t port, const std::vector<std::string>& command) {
  return At(port).Ask(command);
}

}  // namespace tocsin::real
