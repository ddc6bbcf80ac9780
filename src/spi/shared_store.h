// SharedStore: what a store that many nodes share offers beside Store. An object that implements both serves one shard
// of one node. A store of one node alone has none of this, and the core then gets no SharedStore.
//
// Every node may serve every slot; looking for due jobs and upkeep (rolling back leases, forgetting retained jobs) are
// divided. Slots form groups (model/placement.h), and one node owns each group. An owner has an epoch for its group,
// which rises with every owner; the store refuses upkeep that carries an older one. Owners tell each other which jobs
// their consumers wait for: Advance reports only what this node should claim.
//
// Threads: every method is called on the shard's thread, and callbacks run there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/topic.h"

namespace tocsin {

/// A topic that another node has made or changed.
struct HeardTopic : Topic {
  uint64_t life = 0;  // tells it from topics of the same name that were dropped; later lives are larger
  bool born = false;  // it was made while this node listened, so all that its slots have counted is new
};

/// What other nodes did to topics. One that was dropped and created again is in both lists: it was dropped first.
struct TopicChanges {
  std::vector<HeardTopic> changed;   // created or changed, in their new versions
  std::vector<std::string> dropped;  // Topics() no longer has them
};

/// One group, as this node last read it.
struct GroupState {
  uint32_t group = 0;
  bool mine = false;              // this node owns it, and has its epoch
  std::string owner;              // a member's id; empty: nobody yet
  std::optional<uint64_t> epoch;  // rises whenever the owner changes
  std::optional<uint64_t> slots;  // with jobs
  std::optional<Time> next_due;   // of those jobs, in UTC
};

/// A server behind the store.
struct StoreServer {
  std::string endpoint;
  std::string role;
  bool connected = false;
  std::string state;  // for people: "connected", or why not
  Millis round_trip{0};
};

class SharedStore {
 public:
  virtual ~SharedStore() = default;

  /// What other nodes did to topics since the last call. Only the store of shard 0 knows; the core asks it after every
  /// Advance.
  virtual TopicChanges TakeTopicChanges() = 0;
  /// Another node has made or changed the topic: this object serves it from now on. Nothing is stored, because that
  /// node has done so. False, without effect, if a later version is known here.
  virtual bool AdoptTopic(const HeardTopic& topic) = 0;
  /// Another node has dropped the topic: removes what this object keeps of it in memory. What is stored stays, because
  /// the topic may exist again.
  virtual void ForgetTopic(std::string_view topic) = 0;

  /// An Advance that waits for slow servers answers now, with what it has found so far. One server that does not answer
  /// must not hold back the others; when it does answer, `changed` runs.
  virtual void FinishAdvance() = 0;
  /// `changed` runs when the store learns that Advance has work before the time it named. Replaces the one before.
  virtual void OnChanged(std::function<void()> changed) = 0;

  /// Whether reserves of this node wait for jobs of the topic, which need not exist yet. While they do, Claim takes
  /// only what the store knows of: it is told of jobs, and Advance reports them. Otherwise it looks for itself first.
  virtual void SetHungry(std::string_view topic, bool hungry) = 0;

  /// This node owns exactly these groups of its shard from now on.
  virtual void OwnGroups(const std::vector<uint32_t>& groups) = 0;
  /// `lost` runs when another node has taken a group that this one owned: the members have to be read again. Replaces
  /// the one before.
  virtual void OnGroupLost(std::function<void()> lost) = 0;

  // For people and metrics.
  virtual std::vector<GroupState> Groups() const = 0;
  virtual std::vector<StoreServer> Servers() const = 0;
};

}  // namespace tocsin
