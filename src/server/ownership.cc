#include "server/ownership.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/log_event.h"

namespace tocsin {
namespace {

constexpr Millis kLookEvery{1'000};
constexpr int kLooksAlone = 5;  // before it is logged

std::vector<bool> OwnedBy(const std::string& id, const Members& members, uint32_t groups) {
  std::vector<bool> owned(groups);
  std::vector<std::string> ids;
  for (const Member& member : members.members) ids.push_back(member.id);
  if (ids.empty()) return owned;
  const std::vector<size_t> owners = OwnersOf(groups, ids);
  for (uint32_t group = 0; group < groups; ++group) owned[group] = ids[owners[group]] == id;
  return owned;
}

/// Every shard's store has its own connection to the same server: the report shows the worst of them.
void Merge(std::vector<StoreServer>& servers, const StoreServer& server) {
  const auto at = std::ranges::find(servers, server.endpoint, &StoreServer::endpoint);
  if (at == servers.end()) return servers.push_back(server);
  at->round_trip = std::max(at->round_trip, server.round_trip);
  if (server.connected || !at->connected) return;
  at->connected = false;
  at->state = server.state;
}

}  // namespace

Ownership::Ownership(std::string store_kind, uint32_t groups, net::AsioLoop& main_loop, std::vector<OwnedShard> shards,
                     std::unique_ptr<Coordinator> coordinator, Member self, metrics::Registry& metrics)
    : store_kind_(std::move(store_kind)),
      groups_(groups),
      main_loop_(main_loop),
      shards_(std::move(shards)),
      coordinator_(std::move(coordinator)),
      self_(std::move(self)),
      metrics_(metrics),
      look_timer_(main_loop.io()),
      leave_timer_(main_loop.io()),
      owned_(groups) {
  metrics_.groups->Set(groups);
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    owned_slots_.push_back(metrics.GetGauge("tocsin_owned_slots", "Slots with jobs in the groups that are owned.",
                                            {{"shard", std::to_string(shard)}}));
  }
}

void Ownership::Start() {
  for (const OwnedShard& shard : shards_) {
    shard.store->OnGroupLost([this] {
      main_loop_.Post([this] {
        ++taken_;
        Refresh();
      });
    });
  }
  coordinator_->Join(self_, [this](const Members& members) { OnMembers(members); });
  Look();
}

void Ownership::Refresh() {
  if (refreshing_ || leaving_) return;
  refreshing_ = true;
  coordinator_->Refresh();
}

void Ownership::OnMembers(const Members& members) {
  if (leaving_) return;
  refreshing_ = false;
  const bool was_joined = std::exchange(joined_, members.joined);
  if (members.joined) looks_alone_ = 0;
  if (!members.joined) {
    // It keeps its groups: while the coordinator is away nobody takes them over, and leases have to end. If somebody
    // did take one over, the store refuses this node's epoch.
    metrics_.members->Set(0);
    if (was_joined) LogWarn("this node's registration is lost: it takes over nothing until it is registered again");
    return;
  }
  // Others may have owned its groups meanwhile: take all of them again.
  if (!was_joined) Own(std::vector<bool>(groups_));
  const std::vector<bool> owned = OwnedBy(self_.id, members, groups_);
  uint64_t gained = 0;
  for (uint32_t group = 0; group < groups_; ++group) gained += owned[group] && !owned_[group] ? 1 : 0;
  LogChanges(members);
  if (owned != owned_) LogRebalance(owned, members.members.size());
  metrics_.members->Set(static_cast<double>(members.members.size()));
  metrics_.takeovers->Add(gained);
  Own(owned);
}

void Ownership::LogChanges(const Members& members) {
  std::vector<std::string> nodes;
  for (const Member& member : members.members) nodes.push_back(member.id);
  for (const Member& member : members.members) {
    // Those that were there before this node are in the line about the groups.
    if (nodes_.empty() || std::ranges::binary_search(nodes_, member.id)) continue;
    const LogField fields[] = {{"node", member.id}, {"http", member.http}, {"resp", member.resp}};
    LogEvent(LogLevel::kInfo, "node_joined", fields);
  }
  for (const std::string& id : nodes_) {
    if (std::ranges::binary_search(nodes, id)) continue;
    const bool vanished = std::ranges::find(members.lost, id, &Member::id) != members.lost.end();
    const LogField fields[] = {{"node", id}, {"how", vanished ? "vanished" : "left"}};
    LogEvent(vanished ? LogLevel::kWarn : LogLevel::kInfo, "node_left", fields);
  }
  nodes_ = std::move(nodes);
}

void Ownership::LogRebalance(const std::vector<bool>& owned, size_t nodes) const {
  int64_t count = 0;
  int64_t gained = 0;
  int64_t lost = 0;
  for (uint32_t group = 0; group < groups_; ++group) {
    count += owned[group] ? 1 : 0;
    gained += owned[group] && !owned_[group] ? 1 : 0;
    lost += owned_[group] && !owned[group] ? 1 : 0;
  }
  const LogField fields[] = {{"nodes", static_cast<int64_t>(nodes)},
                             {"groups", int64_t{groups_}},
                             {"owned", count},
                             {"gained", gained},
                             {"lost", lost}};
  LogEvent(LogLevel::kInfo, "rebalance", fields);
}

void Ownership::LogTaken() {
  const auto taken = static_cast<int64_t>(std::exchange(taken_, 0));
  if (taken == 0) return;
  const LogField fields[] = {{"groups", taken}};
  LogEvent(LogLevel::kWarn, "groups_taken", fields);
}

void Ownership::Own(const std::vector<bool>& owned) {
  owned_ = owned;
  metrics_.owned_groups->Set(static_cast<double>(std::ranges::count(owned, true)));
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    std::vector<uint32_t> groups;
    for (uint32_t group = shard; group < groups_; group += static_cast<uint32_t>(shards_.size())) {
      if (owned[group]) groups.push_back(group);
    }
    // Even if they are the same: the store may have refused one.
    shards_[shard].loop->Post([store = shards_[shard].store, groups = std::move(groups)] { store->OwnGroups(groups); });
  }
}

void Ownership::Look() {
  LogTaken();
  if (!joined_ && !leaving_ && ++looks_alone_ == kLooksAlone) {
    LogWarn("this node is not registered with the others yet ({}): it serves, but rolls back no lease before it is",
            coordinator_->Health().state);
  }
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    shards_[shard].loop->Post([store = shards_[shard].store, gauge = owned_slots_[shard]] {
      size_t slots = 0;
      for (const GroupState& group : store->Groups()) slots += group.mine ? group.slots.value_or(0) : 0;
      gauge->Set(static_cast<double>(slots));
    });
  }
  look_timer_.expires_after(kLookEvery);
  look_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) Look();
  });
}

void Ownership::Leave(Task done) {
  leaving_ = true;
  left_ = std::move(done);
  Own(std::vector<bool>(groups_));
  const auto leave = [this](const Status& status) {
    if (!left_) return;
    if (!status) LogWarn("cannot leave the cluster, others notice it later: {}", status.error().message);
    leave_timer_.cancel();
    std::exchange(left_, nullptr)();
  };
  leave_timer_.expires_after(kLeaveTime);
  leave_timer_.async_wait([leave](const boost::system::error_code& error) {
    if (!error) leave(Fail(Code::kTimedOut, "no answer within {} s", kLeaveTime.count() / 1000));
  });
  coordinator_->Leave([leave](Result<void> result) { leave(result); });
}

struct Ownership::Gathering {
  Loop& caller;
  Done<ClusterReport> done;
  ClusterReport report;
  size_t left = 0;  // shards that have not answered
};

void Ownership::Describe(Loop& caller, Done<ClusterReport> done) {
  auto gathering = std::make_shared<Gathering>(caller, std::move(done), ClusterReport{}, shards_.size());
  main_loop_.Post([this, gathering = std::move(gathering)] { DescribeHere(gathering); });
}

void Ownership::DescribeHere(const std::shared_ptr<Gathering>& gathering) {
  ClusterReport& report = gathering->report;
  report.store = store_kind_;
  report.node = self_.id;
  report.coordinator = coordinator_->Health();
  Members current = coordinator_->Current();
  report.lost = std::move(current.lost);
  for (Member& member : current.members) {
    const bool self = member.id == self_.id;
    report.members.push_back({.member = std::move(member), .self = self, .groups = 0, .slots = 0});
  }
  for (const OwnedShard& shard : shards_) {
    shard.loop->Post([this, &store = *shard.store, gathering] {
      main_loop_.Post([gathering, groups = store.Groups(), servers = store.Servers()] {
        for (const GroupState& group : groups) gathering->report.groups.push_back(group);
        for (const StoreServer& server : servers) Merge(gathering->report.servers, server);
        if (--gathering->left == 0) Finish(*gathering);
      });
    });
  }
}

void Ownership::Finish(Gathering& gathering) {
  ClusterReport& report = gathering.report;
  std::ranges::sort(report.groups, {}, &GroupState::group);
  std::ranges::sort(report.servers, {}, &StoreServer::endpoint);
  std::map<std::string_view, ClusterMember*> members;
  for (ClusterMember& member : report.members) members.emplace(member.member.id, &member);
  for (const GroupState& group : report.groups) {
    const auto owner = members.find(group.owner);
    if (owner == members.end()) continue;
    ++owner->second->groups;
    *owner->second->slots += group.slots.value_or(0);
  }
  gathering.caller.Post(
      [done = std::move(gathering.done), result = std::move(report)]() mutable { done(std::move(result)); });
}

}  // namespace tocsin
