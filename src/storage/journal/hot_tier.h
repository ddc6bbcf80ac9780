// HotTier: the jobs of one shard in memory. Entries of 48 bytes in a slab, bodies in an arena, tables from server id
// and own id to entry, a timing wheel for each timeline, a ready list and a dead list for each topic, and leases with a
// wheel of their own. It knows nothing of the journal but the segment that holds each job's put. The shard's thread
// owns it.
//
// Invariants
//  1. A placed entry is where its state says. A scheduled one is in its topic's ready list (kReady), or in the wheel of
//  its timeline, or waits for a count alone.
//     A leased one has a lease; a dead one is in its topic's dead list; a done or cancelled one is retained, in the
//     steady wheel until it is forgotten.
//  2. Only what the wheels have handed over, or would no longer take, is ready: never early.
//  3. Every entry is in by_uid_; one with an own id in by_own_ too.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "model/topic.h"
#include "spi/store.h"
#include "storage/journal/blob_arena.h"
#include "storage/journal/body.h"
#include "storage/journal/entries.h"
#include "storage/journal/id_table.h"
#include "storage/journal/list.h"
#include "storage/journal/slab.h"
#include "storage/journal/wheel.h"

namespace tocsin::journal {

using Index = uint32_t;  // of an entry; 0 is none

constexpr uint8_t kOnSteady = 1;  // flags of an entry
constexpr uint8_t kReady = 2;
constexpr uint8_t kHasDetails = 4;
constexpr uint8_t kFiredFlag = 8;
constexpr uint8_t kTriggerShift = 4;  // two bits
constexpr uint8_t kPlaced = 64;       // it is where invariant 1 says; otherwise nowhere
constexpr uint8_t kAdmitted = 128;    // it counts against its topic's capacity

struct Entry {
  Uid seq = 0;  // the job's uid: the wheel's tie-breaker
  int64_t due_ms = 0;
  uint32_t prev = 0;  // of the list or bucket it is in; of a leased one the index of its lease
  uint32_t next = 0;
  BlobArena::Handle body = 0;
  uint32_t body_size = 0;
  uint32_t segment = 0;  // holds its latest put; 0: not yet known
  uint16_t topic = 0;
  uint16_t bucket = kNoBucket;
  uint16_t attempts = 0;  // used up
  uint16_t max_attempts = 0;
  State state = State::kScheduled;
  uint8_t flags = kOnSteady;

  Timeline timeline() const { return flags & kOnSteady ? Timeline::kSteady : Timeline::kUtc; }
  Trigger trigger() const { return static_cast<Trigger>(flags >> kTriggerShift & 3); }
  bool fired() const { return (flags & kFiredFlag) != 0; }
  Time due() const { return FromMs(due_ms); }

  static constexpr auto kFree = static_cast<State>(0xFF);
  void MarkFree(uint32_t next_free) {
    state = kFree;
    next = next_free;
  }
  uint32_t NextFree() const { return next; }
  bool IsFree() const { return state == kFree; }
};
static_assert(sizeof(Entry) == 48);

struct Lease {
  uint64_t seq = 0;    // the fence; 0: free
  int64_t due_ms = 0;  // its deadline, on the steady timeline
  uint32_t prev = 0;
  uint32_t next = 0;
  Index entry = 0;
  uint16_t bucket = kNoBucket;
  bool used = true;

  void MarkFree(uint32_t next_free) {
    used = false;
    next = next_free;
  }
  uint32_t NextFree() const { return next; }
  bool IsFree() const { return !used; }
};

/// What all shards of a node hold together: capacities are the node's, not a shard's.
struct SharedUse {
  std::atomic<uint64_t> jobs = 0;
  std::atomic<uint64_t> bytes = 0;
};

struct TopicState {
  Topic settings;
  uint64_t hash = 0;
  List ready;
  List dead;
  TopicFigures figures;  // its topic stays empty
  uint64_t entries = 0;  // of jobs in whatever state
  std::shared_ptr<SharedUse> shared;
  bool announced = false;  // reported as ready, and not claimed empty since
  bool used = false;
};

constexpr uint16_t kNoTopic = 0xFFFF;

class HotTier {
 public:
  explicit HotTier(ChunkSource& source);
  HotTier(const HotTier&) = delete;
  HotTier& operator=(const HotTier&) = delete;

  uint16_t FindTopic(std::string_view name) const;
  /// kNoTopic where there are 65,535 already.
  uint16_t AddTopic(const Topic& settings, std::shared_ptr<SharedUse> shared);
  /// Its jobs have to be gone.
  void RemoveTopic(uint16_t number);
  TopicState& topic(uint16_t number) { return topics_[number]; }
  const TopicState& topic(uint16_t number) const { return topics_[number]; }
  size_t topic_numbers() const { return topics_.size(); }

  /// A new scheduled entry with an uninitialised body; 0 where memory is short. The caller fills it and calls Link.
  Index Create(uint16_t topic, Uid uid, size_t body_size);
  /// Enters it into the tables, once its body is written. Room was taken for it. False, and nothing happens, without
  /// memory.
  bool Link(Index index);
  /// Takes room in the topic, over all shards; false, and takes none, where its capacity does not allow it. Room goes
  /// back when the entry is erased or retained.
  bool TakeRoom(uint16_t topic, uint64_t jobs, uint64_t bytes);
  void GiveBack(uint16_t topic, uint64_t jobs, uint64_t bytes);
  /// The same for what is stored already, or was freed before.
  void AddUse(uint16_t topic, uint64_t jobs, uint64_t bytes);
  /// Undoes Create, where Link failed.
  void Discard(Index index);
  /// Takes it out of wherever it is (Detach) and out of existence.
  void Erase(Index index);
  /// Takes it out of the list, wheel or lease that its state puts it in, and out of the gauge of that state. The ones
  /// below place a detached entry again, in the state that they name.
  void Detach(Index index);

  /// Ready, in a wheel, or waiting for a count.
  void Schedule(Index index);
  void MakeDead(Index index);
  /// Keeps an ended entry until `until`.
  void Retain(Index index, State state, Time until);
  /// 0, and the entry stays detached, where memory is short.
  uint32_t MakeLease(Index index, uint64_t fence, Time deadline);
  void ExtendLease(uint32_t lease, Time deadline);
  /// Room was taken for what the new body is longer; room goes back for what it is shorter. False without memory.
  bool ReplaceBody(Index index, std::string_view body);

  Entry& at(Index index) { return entries_[index]; }
  const Entry& at(Index index) const { return entries_[index]; }
  const Lease& lease(uint32_t index) const { return leases_[index]; }
  /// The lease that a token names, if it is that token's; 0 otherwise.
  uint32_t LeaseOf(const Token& token, uint16_t topic) const;
  Index end() const { return entries_.end(); }
  size_t size() const { return entries_.live(); }

  std::string_view BodyOf(const Entry& entry) const { return {bodies_.At(entry.body), entry.body_size}; }
  const char* BodyAt(const Entry& entry) const { return bodies_.At(entry.body); }
  char* BodyAt(Index index) { return bodies_.At(entries_[index].body); }
  const Details* DetailsOf(Index index) const;
  Details& MakeDetails(Index index);

  Index FindUid(uint16_t topic, Uid uid) const;
  /// By own id and key, or by the text of a server id.
  Index Find(uint16_t topic, JobRef job) const;

  /// Before the first Schedule: no due time lies before these.
  void ResetWheels(Time oldest_steady, Time oldest_utc);
  /// Makes ready what is due, and hands retained entries whose time is over to `forget(index)`. True when the budget
  /// ran out.
  template <class OnForget>
  bool MakeDueReady(Moment now, size_t budget, OnForget&& forget);
  /// Hands entries whose leases have expired, detached, to `expired(index)`. True when the budget ran out.
  template <class OnExpired>
  bool ExpireLeases(Moment now, size_t budget, OnExpired&& expired) {
    return expiry_.Advance(now.steady, budget, [&](uint32_t lease) {
      const Index index = leases_[lease].entry;
      Detach(index);
      expired(index);
    });
  }
  Time NextSteady(Moment now) const { return std::min(steady_.NextWork(now.steady), expiry_.NextWork(now.steady)); }
  Time NextUtc(Moment now) const { return utc_.NextWork(now.utc); }

  /// Says that the topic has ready jobs, unless that was said and not claimed empty since.
  void Announce(uint16_t topic);
  /// Topics that were announced since the last call.
  std::vector<uint16_t> TakeAnnounced() { return std::exchange(announced_, {}); }

  /// Memory that jobs take, all told.
  size_t used_bytes() const;

 private:
  struct EntryNodes {
    Slab<Entry>* slab;
    Entry& operator()(uint32_t index) const { return (*slab)[index]; }
  };
  struct LeaseNodes {
    Slab<Lease>* slab;
    Lease& operator()(uint32_t index) const { return (*slab)[index]; }
  };
  using EntryWheel = Wheel<EntryNodes>;
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return Hash64(name); }
  };

  void MakeReady(Index index);
  static uint64_t OwnHash(uint64_t topic_hash, std::string_view key, std::string_view id);
  uint64_t UidHash(uint16_t topic, Uid uid) const { return Mix64(uid, topics_[topic].hash); }
  /// Comparable over both timelines.
  std::pair<Time, Uid> OrderOf(const Entry& entry) const {
    return {entry.flags & kOnSteady ? entry.due() + apart_ : entry.due(), entry.seq};
  }
  EntryWheel& wheel(const Entry& entry) { return entry.flags & kOnSteady ? steady_ : utc_; }
  uint64_t& GaugeOf(const Entry& entry);
  void Discharge(Entry& entry);

  Slab<Entry> entries_;
  Slab<Lease> leases_;
  BlobArena bodies_;
  IdTable by_uid_;
  IdTable by_own_;
  std::unordered_map<Index, Details> details_;
  EntryWheel steady_;
  EntryWheel utc_;
  Wheel<LeaseNodes> expiry_;
  std::vector<TopicState> topics_;
  std::unordered_map<std::string, uint16_t, NameHash, std::equal_to<>> topic_numbers_;
  std::vector<uint16_t> announced_;
  Millis apart_{0};  // utc - steady, as of the last look at the clock
};

template <class OnForget>
bool HotTier::MakeDueReady(Moment now, size_t budget, OnForget&& forget) {
  apart_ = now.utc - now.steady;
  size_t work = 0;
  const auto hand_over = [&](Index index) {
    ++work;
    if (entries_[index].state == State::kScheduled) {
      MakeReady(index);
    } else {
      forget(index);
    }
  };
  if (utc_.size() == 0) return steady_.Advance(now.steady, budget, hand_over);
  // Two timelines, one order: each wheel goes no further than the other's next work. What both have in the same
  // millisecond is gathered and put in the order of uids. First, though, what has only to be moved down inside a wheel.
  if (steady_.Advance(Time{}, budget, hand_over) || utc_.Advance(Time{}, budget, hand_over)) return true;
  while (work < budget) {
    const Time steady_next = steady_.NextWork(Time{});
    const Time utc_next = utc_.size() == 0 ? kNever : utc_.NextWork(Time{}) - apart_;
    const Time next = std::min(steady_next, utc_next);
    if (next > now.steady) return false;
    bool more = false;
    if (steady_next == utc_next) {
      std::vector<Index> both;
      const auto gather = [&](Index index) { both.push_back(index); };
      more = steady_.Advance(next, budget - work, gather);
      more |= utc_.Advance(next + apart_, budget - work, gather);
      std::ranges::sort(both, {}, [this](Index index) { return entries_[index].seq; });
      for (const Index index : both) hand_over(index);
    } else if (steady_next < utc_next) {
      more = steady_.Advance(std::min(now.steady, utc_next - Millis(1)), budget - work, hand_over);
    } else {
      const Time bound = steady_next == kNever ? kNever : steady_next + apart_ - Millis(1);
      more = utc_.Advance(std::min(now.utc, bound), budget - work, hand_over);
    }
    if (more) return true;
  }
  return true;
}

}  // namespace tocsin::journal
