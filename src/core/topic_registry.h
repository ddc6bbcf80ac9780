// TopicRegistry: the one place where topics are created, changed and dropped. Owned by the service; lives on shard 0,
// and all of it runs on that shard's thread. Changes of one topic happen one after another, each first in every shard's
// store, then in every shard's TopicTable.
//
// If several nodes share a store, each has its registry. The store refuses a change that meets a newer version
// (kConflict): the registry then makes the change again on that version. What others did arrives through Take and
// TakeDropped.
//
// Invariant: a topic that is in any table is durable in every store. So a call that was routed by a table never meets a
// store that does not know the topic, unless the topic is being dropped.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/loop.h"
#include "core/ranked_names.h"
#include "core/requests.h"
#include "model/topic.h"
#include "spi/shared_store.h"

namespace tocsin {

struct Node;
class Shard;

class TopicRegistry {
 public:
  explicit TopicRegistry(Node& node);

  /// A topic that a store has already, unless an earlier call named a newer version.
  void Restore(const Topic& topic);
  /// Null if it is unknown.
  const Topic* Find(std::string_view topic) const;

  // Limits::topics and topics_per_prefix bound how many topics there are. They count those that this node knows and
  // those that it is creating.
  /// The topic as it is; created with the defaults if it is unknown. `prefix` is that of the topics that the caller may
  /// use.
  void Ensure(std::string topic, std::string prefix, Done<Topic> done);
  /// kConflict if it has another number of slots. An unknown topic is created, or answers kTopicNotFound.
  void Change(ChangeTopicRequest request, Done<ChangedTopic> done);
  void Drop(std::string topic, Done<void> done);

  /// Another node has made or changed the topic. The stores are not asked, only told.
  void Take(const HeardTopic& topic, Done<void> done);
  /// Another node has dropped it.
  void TakeDropped(const std::string& topic, Done<void> done);
  bool Owes() const { return !owed_.empty(); }
  /// Tries again to have the stores take those that are owed. `done` runs for each of them.
  void TakeOwed(const std::function<Done<void>()>& done);

 private:
  struct Queue {
    std::deque<Task> waiting;
    bool busy = false;      // a change of the topic is under way
    bool draining = false;  // Drain is on the stack: changes that finish at once must not deepen it
  };
  struct Changing {
    std::string topic;
    TopicChange change;
    IfUnknown if_unknown = IfUnknown::kCreate;
    std::string prefix;
    bool confirm = false;  // ask the stores also if nothing changes: this node may know an old version
    Done<ChangedTopic> done;
    int tries = 0;
  };

  /// Runs `step(finish)` when the changes of the topic before it are finished. `finish` answers `done` and lets the
  /// next one run.
  template <class T, class Step>
  void Enqueue(const std::string& topic, Done<T> done, Step step);
  void Drain(const std::string& topic);
  void Begin(Changing changing);
  void RunChange(const std::shared_ptr<Changing>& changing);
  Status CheckSink(const Topic& topic) const;
  /// A caller of a prefix may use for the delivery only what is given to the topic.
  Status CheckGiven(std::string_view prefix, const Topic* before, const Topic& after) const;
  /// Whether the callers of this prefix may create one more.
  Status CheckRoom(std::string_view prefix) const;
  size_t CountOf(std::string_view prefix) const;
  void Keep(const Topic& topic);
  Result<Topic> Changed(const Changing& changing, const Topic* before) const;
  void Store(const std::shared_ptr<Changing>& changing, const Topic& after, bool created);
  /// A store has refused the topic, or a change of it: the others do not keep it either.
  void TakeBack(const Topic& refused, bool created, Done<void> done);
  void RemoveAgain(const std::string& topic, Done<void> done);
  void PutBack(const Topic& refused, Done<void> done);
  void RunDrop(const std::string& topic, int tries, Done<void> done);
  void DropFailed(const std::string& topic, Error error, int tries, Done<void> done);
  /// The stores have this version, or take it; then every table does.
  void Adopt(const Topic& topic, int tries, Done<void> done);
  /// Every table and the registry know the topic, which all stores have.
  void Adopted(const Topic& topic, Done<void> done);
  void TakeAgain(const Topic& topic, Done<void> done);
  void AdoptNewest(const std::string& topic, int tries, Done<void> done);

  // On all shards.
  /// Into every store; ok when all are durable. kConflict if another node was faster.
  void PutEverywhere(const Topic& topic, Done<void> done);
  /// Every store serves it as another node has stored it. kConflict if one knows a later version.
  void AdoptEverywhere(const HeardTopic& topic, Done<void> done);
  /// Into every table.
  void KnowEverywhere(const Topic& topic, Done<void> done);
  /// Out of every table and every store. kConflict if another node has made it again.
  void DropEverywhere(const std::string& topic, Done<void> done);
  /// Out of every table and the memory of every store. The stored topic stays.
  void ForgetEverywhere(const std::string& topic, Done<void> done);
  /// As the store of shard 0 knows it now, which is the first to hear of other nodes.
  std::optional<Topic> Held(const std::string& topic) const;

  Node& node_;
  TextMap<Topic> topics_;
  RankedNames<std::string> making_;     // are being created, and not in topics_ yet
  std::set<std::string> half_dropped_;  // a store failed to drop them: they can be dropped again
  std::set<std::string> half_changed_;  // a store could not take their settings back: they are owed
  std::vector<Topic> owed_;             // a store could not take them yet
  TextMap<Queue> queues_;               // of the topics that are changing
};

}  // namespace tocsin
