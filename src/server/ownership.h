// Ownership: which groups of slots this node owns in a store that many nodes share. It registers the node with the
// coordinator, computes the assignment again on every change of the members, and tells each shard's store which groups
// it owns. Every node computes the same assignment; while two differ, the epochs in the store decide.
//
// Threads: everything on the main loop, except Describe, which any shard may call. A store is used on its shard's
// thread alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "core/cluster.h"
#include "metrics/registry.h"
#include "model/placement.h"
#include "net/asio_loop.h"
#include "spi/coordinator.h"
#include "spi/shared_store.h"

namespace tocsin {

/// The metrics of a node among others; every kind of backing fills it in. The figures are thread-safe.
struct ClusterMetrics {
  explicit ClusterMetrics(metrics::Registry& registry)
      : members(registry.GetGauge("tocsin_cluster_members",
                                  "Nodes that share the store, as this one knows. 0: it is not registered itself.")),
        groups(
            registry.GetGauge("tocsin_groups", "Groups of slots that the store has; every one should have an owner.")),
        owned_groups(registry.GetGauge("tocsin_owned_groups", "Groups of slots that this node looks after.")),
        takeovers(registry.GetCounter("tocsin_takeovers_total", "Groups that this node began to look after.")) {}

  const std::shared_ptr<metrics::Gauge> members;
  const std::shared_ptr<metrics::Gauge> groups;
  const std::shared_ptr<metrics::Gauge> owned_groups;
  const std::shared_ptr<metrics::Counter> takeovers;
};

/// One shard's part. Group g belongs to shard g mod the number of shards.
struct OwnedShard {
  net::AsioLoop* loop = nullptr;
  SharedStore* store = nullptr;
};

class Ownership final : public Cluster {
 public:
  /// `store_kind` names the store in reports; it has so many groups.
  Ownership(std::string store_kind, uint32_t groups, net::AsioLoop& main_loop, std::vector<OwnedShard> shards,
            std::unique_ptr<Coordinator> coordinator, Member self, metrics::Registry& metrics);

  /// Before the loops run.
  void Start();
  /// Gives up all groups and leaves the members. `done` runs after at most kLeaveTime.
  void Leave(Task done);
  void Describe(Loop& caller, Done<ClusterReport> done) override;

  static constexpr Millis kLeaveTime{2'000};

 private:
  struct Gathering;

  void OnMembers(const Members& members);
  /// Logs which nodes have joined and left since the last call.
  void LogChanges(const Members& members);
  /// One line for all groups that changed hands.
  void LogRebalance(const std::vector<bool>& owned, size_t nodes) const;
  /// One line for all groups that other nodes took within a second.
  void LogTaken();
  void Refresh();
  /// `owned`: for each group whether it is this node's.
  void Own(const std::vector<bool>& owned);
  /// The figures of what is owned, once a second.
  void Look();
  void DescribeHere(const std::shared_ptr<Gathering>& gathering);
  static void Finish(Gathering& gathering);

  const std::string store_kind_;
  const uint32_t groups_;
  net::AsioLoop& main_loop_;
  const std::vector<OwnedShard> shards_;
  const std::unique_ptr<Coordinator> coordinator_;
  const Member self_;
  const ClusterMetrics metrics_;
  std::vector<std::shared_ptr<metrics::Gauge>> owned_slots_;  // by shard
  boost::asio::steady_timer look_timer_;
  boost::asio::steady_timer leave_timer_;
  std::vector<bool> owned_;         // by group
  std::vector<std::string> nodes_;  // ids of the members, as last logged
  uint64_t taken_ = 0;              // groups that other nodes took since the last look
  bool joined_ = false;
  int looks_alone_ = 0;  // since it was last registered
  bool refreshing_ = false;
  bool leaving_ = false;
  Task left_;  // until others can see it
};

}  // namespace tocsin
