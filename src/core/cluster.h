// Cluster: what a node knows about itself and the other nodes on the same store, for people and tools. The server
// (src/server) implements it for shared stores; a node with a store of its own is a SingleNode.
//
// Threads: Describe is called on the thread of `caller`, a shard's loop or the main one, and `done` runs there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "base/result.h"
#include "core/alerts.h"
#include "spi/coordinator.h"
#include "spi/shared_store.h"

namespace tocsin {

struct ClusterMember {
  Member member;
  bool self = false;
  uint32_t groups = 0;            // that it owns
  std::optional<uint64_t> slots;  // with jobs, in those groups
};

struct ClusterReport {
  std::string store;  // journal, redis
  std::string node;   // the id of the one that reports
  std::vector<ClusterMember> members;
  std::vector<Member> lost;  // Members::lost
  std::vector<GroupState> groups;
  CoordinatorHealth coordinator;
  std::vector<StoreServer> servers;
};

class Cluster {
 public:
  virtual ~Cluster() = default;
  virtual void Describe(Loop& caller, Done<ClusterReport> done) = 0;
};

class SingleNode final : public Cluster {
 public:
  /// `clock` outlives this; without one the node was last heard of when it joined.
  explicit SingleNode(std::string store = "memory", Member self = {}, const Clock* clock = nullptr)
      : store_(std::move(store)), self_(std::move(self)), clock_(clock) {}

  void Describe(Loop& caller, Done<ClusterReport> done) override;

 private:
  const std::string store_;
  const Member self_;
  const Clock* const clock_;
};

/// What a node reports about itself, through every front end.
struct NodeInfo {
  std::string version;
  size_t shards = 1;
  std::chrono::steady_clock::time_point started;
  std::shared_ptr<const std::atomic<size_t>> connections =  // open, over all front ends
      std::make_shared<const std::atomic<size_t>>(0);
  std::shared_ptr<Cluster> cluster = std::make_shared<SingleNode>();
  std::shared_ptr<const AlertBook> alerts = std::make_shared<AlertBook>();
};

}  // namespace tocsin
