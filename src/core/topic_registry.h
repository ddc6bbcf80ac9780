// The topics that are known. TopicTable is one shard's own copy, so that no lock is taken to route a call; only that
// shard's thread touches it. TopicRegistry lives on shard 0 and is the one place where topics are created, changed and
// dropped: changes of one topic happen one after another, each first in every shard's store, then in every shard's
// table.
//
// Where several nodes share a store, each has its registry. The store refuses a change that meets a newer version
// (kConflict): it is made anew on that one. What others did arrives through Take and TakeDropped.
//
// Invariant: a topic that is in any table is durable in every store, so a call that was routed by a table never meets a
// store that does not know the topic, unless it is being dropped.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/loop.h"
#include "core/service.h"
#include "metrics/registry.h"
#include "model/placement.h"
#include "model/topic.h"
#include "spi/sink.h"
#include "spi/store.h"

namespace tocsin {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return Hash64(text); }
};
template <class T>
using TextMap = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

struct TopicEntry {
  Topic topic;
  uint32_t home = 0;
  uint32_t next_slot = 0;  // where the next batch without keys and ids goes
  std::shared_ptr<metrics::Histogram> lateness;
};

/// The slot for a batch without keys and ids: all of it goes to one slot, on the caller's own shard where that serves
/// the topic, and the next batch to the next such slot.
uint32_t NextBatchSlot(Placement placement, TopicEntry& entry, uint32_t caller);

class TopicTable {
 public:
  TopicTable(Placement placement, metrics::Registry& metrics) : placement_(placement), metrics_(metrics) {}

  /// Nothing where the topic is unknown. Valid until the next Put or Erase.
  TopicEntry* Find(std::string_view topic);
  void Put(const Topic& topic);
  void Erase(std::string_view topic);

 private:
  const Placement placement_;
  metrics::Registry& metrics_;
  TextMap<TopicEntry> entries_;
};

class TopicRegistry {
 public:
  /// What the registry has done on all the shards.
  class Everywhere {
   public:
    virtual ~Everywhere() = default;
    /// Into every store; ok when all are durable. kConflict where another node was faster.
    virtual void Store(const Topic& topic, Done<void> done) = 0;
    /// Into every table.
    virtual void Know(const Topic& topic, Task done) = 0;
    /// Out of every table and every store. kConflict where another node has made it again.
    virtual void Drop(const std::string& topic, Done<void> done) = 0;
    /// Out of every table, and out of the memory of every store; what is stored stays.
    virtual void Forget(const std::string& topic, Task done) = 0;
    /// As the stores know it, in the highest version.
    virtual void Newest(const std::string& topic, Done<std::optional<Topic>> done) = 0;
    /// As the store of shard 0 knows it now, which is the first to hear of other nodes.
    virtual std::optional<Topic> Held(const std::string& topic) = 0;
  };

  /// `sinks` may be null: topics with a sink are refused then.
  TopicRegistry(Everywhere& everywhere, size_t topics_max, const Sinks* sinks)
      : everywhere_(everywhere), topics_max_(topics_max), sinks_(sinks) {}

  /// A topic that every store and every table has already.
  void Restore(const Topic& topic) { topics_.insert_or_assign(topic.name, topic); }

  /// The topic as it is; created with the defaults where it is unknown.
  void Ensure(std::string topic, Done<Topic> done);
  /// kConflict where it has another number of slots; where it is unknown it is created, or kTopicNotFound.
  void Change(std::string topic, TopicChange change, IfUnknown if_unknown, Done<ChangedTopic> done);
  void Drop(std::string topic, Done<Topic> done);

  /// Another node has made or changed the topic. Where a store cannot take it now, it is one of those owed.
  void Take(Topic topic, Task done);
  /// Another node has dropped it.
  void TakeDropped(std::string topic, Task done);
  bool Owes() const { return !owed_.empty(); }
  /// Hands over those that are owed, to be taken again.
  std::vector<Topic> TakeOwed() { return std::exchange(owed_, {}); }

 private:
  /// What is to be done with one topic; whoever runs it calls Finish.
  using Step = std::move_only_function<void()>;
  struct Queue {
    std::deque<Step> waiting;
    bool busy = false;      // a change of the topic is under way
    bool draining = false;  // Drain is on the stack: changes that finish at once must not deepen it
  };
  void Enqueue(const std::string& topic, Step step);
  void Drain(const std::string& topic);
  struct Changing {
    std::string topic;
    TopicChange change;
    IfUnknown if_unknown = IfUnknown::kCreate;
    bool confirm = false;  // with the stores, where it alters nothing: what is known here may be old
    Done<ChangedTopic> done;
    int tries = 0;
  };
  void Begin(std::shared_ptr<Changing> changing);
  void RunChange(const std::shared_ptr<Changing>& changing);
  Status CheckSink(const Topic& topic) const;
  Result<Topic> Changed(const Changing& changing, const Topic* before) const;
  void Store(const std::shared_ptr<Changing>& changing, const Topic& after, bool created);
  void RunDrop(const std::string& topic, int tries, Done<Topic> done);
  void DropFailed(const std::string& topic, Error error, int tries, Done<Topic> done);
  void RunTakeDropped(const std::string& topic, Task done);
  /// The stores have this version, or take it; then every table does.
  void Adopt(const Topic& topic, int tries, Done<void> done);
  void AdoptNewest(const std::string& topic, int tries, Done<void> done);
  template <class T>
  void Finish(const std::string& topic, Result<T> result, Done<T> done);
  void Finish(const std::string& topic, Task done);

  Everywhere& everywhere_;
  const size_t topics_max_;
  const Sinks* const sinks_;
  TextMap<Topic> topics_;
  std::set<std::string> half_dropped_;  // a store failed to drop them: they can be dropped again
  std::vector<Topic> owed_;             // of other nodes: a store could not take them yet
  TextMap<Queue> queues_;               // of the topics that are changing
};

}  // namespace tocsin
