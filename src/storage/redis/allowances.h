// Allowances: keeps a topic within its capacity, though its slots may live on different servers of a Cluster and no
// script sees them all. Each slot has an allowance, stored with it and checked by the scripts that add jobs. The
// topic's home (a hash in the group of its slot 0) knows the allowance of every slot, and grants more room only while
// the sum stays within the capacity. An allowance is raised at the home first and lowered at the slot first, so that a
// crash in between can only make the topic stricter, until the slot's unused room is taken back.
//
// A topic of one slot needs none of this: its scripts see all of it. Every change of the settings begins a new era, in
// which all slots are registered again with what they hold.
//
// Owned by a RedisStore, on its thread.
#pragma once

#include <map>
#include <set>

#include "base/clock.h"
#include "clients/redis/client.h"
#include "spi/store.h"
#include "storage/redis/groups.h"
#include "storage/redis/record.h"
#include "storage/redis/scripts.h"

namespace tocsin::redis {

class Allowances {
 public:
  /// How often a call asks: room that was granted may be taken back before it is used.
  static constexpr int kAsksMax = 4;
  using Call = std::function<void(Command, std::move_only_function<void(Result<Reply>)>)>;

  /// `tags` and `clock` outlive it.
  Allowances(const GroupTags& tags, const Clock& clock, Call call)
      : tags_(tags), clock_(clock), call_(std::move(call)) {}

  static bool Bounded(const Topic& topic) { return topic.capacity_jobs != 0 || topic.capacity_bytes != 0; }
  /// Whether its slots have allowances.
  static bool Shared(const Topic& topic) { return Bounded(topic) && topic.slots > 1; }

  /// Room for `jobs` and `bytes` more on a slot, or for a part of each: false when the topic is full.
  void Ask(const StoredTopic& topic, uint32_t slot, uint64_t jobs, uint64_t bytes, Done<bool> done);
  /// Jobs of the slot have ended: the next job that is refused elsewhere may use its room.
  void Freed(const Topic& topic, uint32_t slot) {
    if (Shared(topic)) returns_[topic.name].freed.insert(slot);
  }
  /// The topic is gone.
  void Forget(std::string_view topic) {
    const auto at = returns_.find(topic);
    if (at != returns_.end() && !at->second.under_way) returns_.erase(at);
  }

 private:
  struct Request;
  using Next = Done<void>;
  using Answered = std::function<void(Result<Reply>)>;
  /// How a topic's unused room goes back to its home: one round at a time. Requests meanwhile wait for the next one.
  struct Returns {
    std::set<uint32_t> freed;                              // slots to ask in the next round
    std::chrono::steady_clock::time_point all_asked_at{};  // when a round last asked all slots
    bool under_way = false;
    std::vector<Next> waiting;
  };

  SlotKeys KeysOf(const StoredTopic& topic, uint32_t slot) const;
  Command AtHome(const Script& script, const StoredTopic& topic) const;
  Command AtSlot(const StoredTopic& topic, uint32_t slot) const;
  void Grant(std::shared_ptr<Request> request);
  void Granted(const std::shared_ptr<Request>& request, const ReplyView& reply);
  void Allow(std::shared_ptr<Request> request, const ReplyView& reply);
  /// Every slot tells the home what it holds.
  void Register(const StoredTopic& topic, Next next);
  /// Slots give the room that they do not use back to the home.
  void TakeBack(const StoredTopic& topic, Next next);
  void TakeBackRound(const StoredTopic& topic);
  /// Sets the slot's allowance to what it holds, and tells the home. Without a serial it registers the slot.
  void Lower(const StoredTopic& topic, uint32_t slot, std::optional<int64_t> serial, Answered answered);
  void TakeBackFrom(const StoredTopic& topic, uint32_t slot, Answered answered);

  const GroupTags& tags_;
  const Clock& clock_;
  const Call call_;
  std::map<std::string, Returns, std::less<>> returns_;  // by topic
};

}  // namespace tocsin::redis
