// HotTier: the jobs of one shard in memory. The fixed-size part of each job (HotJob, 48 bytes) is in a slab, its body
// in an arena. There are tables from server id and own id to the job, a timing wheel for each timeline, the ready jobs
// and a dead list for each topic, and leases with a wheel of their own. Of the journal it only knows the segment that
// holds each job's put. The shard's thread owns it.
//
// Invariants
//  1. A placed job is where its state says. A scheduled job is among its topic's ready jobs (kReady), or in the wheel
//     of its timeline, or waits for a count alone. A leased job has a lease. A dead job is in its topic's dead list. A
//     done or cancelled job is retained: it is in the steady wheel until it is forgotten.
//  2. A job is ready only if the wheels have handed it over, or would no longer take it: never early. If the wall clock
//     was set back to before the due time of ready jobs, MakeDueReady puts them back into the wheel, a bounded number
//     in each call. Until it has, whoever delivers a ready job looks at the clock itself (IsEarly).
//  3. Every job is in by_uid_; a job with an own id is in by_own_ too.
#pragma once

#include <atomic>
#include <deque>
#include <unordered_map>

#include "base/hash.h"
#include "base/text.h"
#include "spi/store.h"
#include "storage/journal/blob_arena.h"
#include "storage/journal/body.h"
#include "storage/journal/entries.h"
#include "storage/journal/id_table.h"
#include "storage/journal/ready_jobs.h"
#include "storage/journal/slab.h"
#include "storage/journal/wall_wheel.h"
#include "storage/journal/wheel.h"

namespace tocsin::journal {

using Index = uint32_t;        // of a HotJob; 0 is none
using TopicNumber = uint32_t;  // of a topic, on one shard

// Flags of a HotJob.
constexpr uint8_t kOnSteady = 1;
constexpr uint8_t kReady = 2;
constexpr uint8_t kHasDetails = 4;
constexpr uint8_t kFiredFlag = 8;
constexpr uint8_t kTriggerShift = 4;  // two bits
constexpr uint8_t kPlaced = 64;       // the job is where invariant 1 says; otherwise nowhere
constexpr uint8_t kAdmitted = 128;    // the job counts against its topic's capacity

struct HotJob {
  Uid uid = 0;
  int64_t due_ms = 0;
  uint32_t prev = 0;  // in its list or bucket; for a leased job the index of its lease
  uint32_t next = 0;
  BlobArena::Handle body = 0;
  uint32_t body_size = 0;
  uint32_t segment = 0;  // holds its latest put; 0: not yet known
  TopicNumber topic = 0;
  uint16_t bucket = kNoBucket;
  uint16_t attempts = 0;  // used up
  uint16_t max_attempts = 0;
  State state = State::kScheduled;
  uint8_t flags = kOnSteady;

  uint64_t order() const { return uid; }
  Timeline timeline() const { return flags & kOnSteady ? Timeline::kSteady : Timeline::kUtc; }
  Trigger trigger() const { return static_cast<Trigger>(flags >> kTriggerShift & 3); }
  bool fired() const { return (flags & kFiredFlag) != 0; }
  Time due() const { return FromMs(due_ms); }

  void MarkFree(uint32_t next_free) {
    body = 0;
    flags = 0;
    next = next_free;
  }
  uint32_t NextFree() const { return next; }
  bool IsFree() const { return body == 0 && flags == 0; }
};
static_assert(sizeof(HotJob) == 48);

struct Lease {
  uint64_t fence = 0;
  int64_t due_ms = 0;  // its deadline, on the steady timeline
  uint32_t prev = 0;
  uint32_t next = 0;
  Index job = 0;
  uint16_t bucket = kNoBucket;
  bool used = true;

  uint64_t order() const { return fence; }
  void MarkFree(uint32_t next_free) {
    used = false;
    next = next_free;
  }
  uint32_t NextFree() const { return next; }
  bool IsFree() const { return !used; }
};

/// What all shards of a node hold of one topic: capacities are per node, not per shard.
struct SharedUse {
  std::atomic<uint64_t> jobs = 0;
  std::atomic<uint64_t> bytes = 0;
};

struct TopicState {
  Topic settings;
  uint64_t hash = 0;  // TableHash of its name
  ReadyJobs ready;
  List dead;
  TopicFigures figures;  // figures.topic stays empty
  uint64_t jobs = 0;     // in any state
  std::shared_ptr<SharedUse> shared;
  bool announced = false;  // reported as ready, and not claimed empty since
  bool used = false;       // false and jobs > 0: dropped, see RetireTopic
};

constexpr TopicNumber kNoTopic = ~TopicNumber{0};

/// What a shard keeps of one topic, here and in the tables above the store.
constexpr size_t kTopicBytes = 1536;

/// Memory that sparse chunks may waste, with a quarter of what is used, before bodies are moved.
constexpr size_t kWasteMax = size_t{8} << 20;

class HotTier {
 public:
  /// A table that has room for so many topics from the start: its growth would hold up the shard.
  explicit HotTier(ChunkSource& source, size_t topics = 0);

  TopicNumber FindTopic(std::string_view name) const;
  TopicNumber AddTopic(const Topic& settings, std::shared_ptr<SharedUse> shared);
  /// Frees the name at once. The number and the jobs stay until the jobs are erased and RemoveTopic is called.
  void RetireTopic(TopicNumber number);
  /// Its jobs have to be gone.
  void RemoveTopic(TopicNumber number);
  TopicState& topic(TopicNumber number) { return *topics_[number]; }
  const TopicState& topic(TopicNumber number) const { return *topics_[number]; }
  /// By number; some may not be used.
  const std::vector<std::unique_ptr<TopicState>>& topics() const { return topics_; }

  /// A new scheduled job with an uninitialised body; 0 if memory is short. The caller fills it and calls Link.
  Index Create(TopicNumber topic, Uid uid, size_t body_size);
  /// Enters it into the tables once its body is written. The caller has taken room for it. False, and nothing happens,
  /// if memory is short.
  bool Link(Index index);
  /// Takes room in the topic, over all shards; false, and takes none, if its capacity does not allow it. The room goes
  /// back when the job is erased or retained.
  bool TakeRoom(TopicNumber topic, uint64_t jobs, uint64_t bytes);
  void GiveBack(TopicNumber topic, uint64_t jobs, uint64_t bytes);
  /// Takes room without a check: for jobs that are stored already, and for room that was freed just before.
  void AddUse(TopicNumber topic, uint64_t jobs, uint64_t bytes);
  /// Undoes Create if Link failed.
  void Discard(Index index);
  /// Detaches and removes the job.
  void Erase(Index index);
  /// Takes the job out of the list, wheel or lease that its state puts it in, and out of the gauge of that state. The
  /// methods below place a detached job again, in the state that they name.
  void Detach(Index index);

  /// Ready, in a wheel, or waiting for a count.
  void Schedule(Index index);
  void MakeDead(Index index);
  /// Keeps an ended job until `until`.
  void Retain(Index index, State state, Time until);
  /// 0, and the job stays detached, if memory is short.
  uint32_t MakeLease(Index index, uint64_t fence, Time deadline);
  void ExtendLease(uint32_t lease, Time deadline);
  /// If the new body is longer the caller has taken the room; if it is shorter the room goes back. False if memory is
  /// short.
  bool ReplaceBody(Index index, std::string_view body);

  HotJob& at(Index index) { return jobs_[index]; }
  const HotJob& at(Index index) const { return jobs_[index]; }
  const Lease& lease(uint32_t index) const { return leases_[index]; }
  /// The lease that a token names, if the token is current; 0 otherwise.
  uint32_t LeaseOf(const Token& token, TopicNumber topic) const;
  Index end() const { return jobs_.end(); }
  /// Hands the topic's jobs from `from` on to `take(index)`, which may erase the job, until that returns false or about
  /// `work` places were looked at. Returns where to go on, end() at the end. Every job that is there during the whole
  /// walk is met once.
  template <class Take>
  Index Walk(TopicNumber topic, Index from, size_t work, Take&& take);
  size_t size() const { return jobs_.live(); }

  std::string_view BodyOf(const HotJob& hot) const { return {bodies_.At(hot.body), hot.body_size}; }
  const char* BodyAt(const HotJob& hot) const { return bodies_.At(hot.body); }
  char* BodyAt(Index index) { return bodies_.At(jobs_[index].body); }
  const Details* DetailsOf(Index index) const;
  /// Calls `change(details)`, with new details if the job has none, and counts the memory that they take.
  template <class F>
  const Details& ChangeDetails(Index index, F&& change);

  Index FindUid(TopicNumber topic, Uid uid) const;
  /// By own id and key, or by the text of a server id.
  Index Find(TopicNumber topic, JobRef job) const;

  /// Called before the first Schedule. No due time is earlier than these.
  void ResetWheels(Time oldest_steady, Time oldest_utc);
  /// Makes due jobs ready, and hands retained jobs whose time is over to `forget(index)`. True when the budget ran out,
  /// or more jobs are to be put back because the wall clock was set back.
  template <class OnForget>
  bool MakeDueReady(Moment now, size_t budget, OnForget&& forget);
  /// Of a ready job: the wall clock was set back to before its due time.
  static bool IsEarly(const HotJob& hot, Moment now) { return (hot.flags & kOnSteady) == 0 && hot.due() > now.utc; }
  /// How many ready jobs one MakeDueReady puts back at most. Each takes about a microsecond.
  static constexpr size_t kHeldBackMax = 1'000;
  /// Hands jobs whose leases have expired, detached, to `expired(index)`. True when the budget ran out.
  template <class OnExpired>
  bool ExpireLeases(Moment now, size_t budget, OnExpired&& expired) {
    return expiry_.Advance(now.steady, budget, [&](uint32_t lease) {
      const Index index = leases_[lease].job;
      Detach(index);
      expired(index);
    });
  }
  Time NextSteady(Moment now) const { return std::min(steady_.NextWork(now.steady), expiry_.NextWork(now.steady)); }
  Time NextUtc(Moment now) const { return utc_.NextWork(now.utc); }

  /// Calls visit(index) for the topic's ready jobs, in order, until that returns false.
  template <class Visit>
  void ForEachReady(const TopicState& topic, Visit&& visit) {
    topic.ready.ForEach(Items<HotJob>{&jobs_}, [this](Index index) { return OrderOf(index); }, visit);
  }

  /// Reports that the topic has ready jobs, unless it was reported and has not been claimed empty since.
  void Announce(TopicNumber topic);
  /// Topics that were announced since the last call.
  std::vector<TopicNumber> TakeAnnounced() { return std::exchange(announced_, {}); }

  /// All memory that topics and jobs take, or will once they are leased: what the system has given, not what was asked
  /// for.
  size_t held_bytes() const;
  /// Moves bodies out of chunks that are nearly empty, and gives back memory that was spare for ten seconds; at once if
  /// `pressed`. Looks at about `budget` jobs. True if there is more to do.
  bool TidyMemory(Moment now, size_t budget, bool pressed);

 private:
  template <class T>
  struct Items {
    Slab<T>* slab;
    T& operator()(uint32_t index) const { return (*slab)[index]; }
  };

  void MoveBodies(size_t budget);
  void MakeReady(Index index);
  /// Puts ready jobs that are due later than the clock back into the wheel: some, from hold_next_ on.
  void HoldBack(Moment now);
  template <class OnForget>
  bool TurnWheels(Moment now, size_t budget, OnForget&& forget);
  static uint64_t OwnHash(uint64_t topic_hash, std::string_view key, std::string_view id);
  /// Of a stored job, if it has an own id.
  std::optional<uint64_t> OwnHash(const HotJob& hot) const;
  uint64_t UidHash(TopicNumber topic, Uid uid) const { return Mix64(uid, topics_[topic]->hash); }
  /// Comparable over both timelines.
  std::pair<Time, Uid> OrderOf(Index index) const {
    const HotJob& hot = jobs_[index];
    return {hot.flags & kOnSteady ? hot.due() + apart_ : hot.due(), hot.uid};
  }
  uint64_t& GaugeOf(const HotJob& hot);
  void Discharge(HotJob& hot);

  Slab<HotJob> jobs_;
  Slab<Lease> leases_;
  // For each block of jobs a bit for each topic, modulo 64, that has a job there, and perhaps for others: a walk skips
  // blocks without the topic's bit.
  static constexpr uint32_t kBlockShift = 8;
  static uint64_t MarkOf(TopicNumber topic) { return uint64_t{1} << topic % 64; }
  std::vector<uint64_t> marks_;
  BlobArena bodies_;
  IdTable by_uid_;
  IdTable by_own_;
  // One table for every 4096 jobs: when a hash table grows, all its entries move in one turn.
  static constexpr uint32_t kDetailsShift = 12;
  std::deque<std::unordered_map<Index, Details>> details_;
  size_t details_bytes_ = 0;
  Wheel<Items<HotJob>> steady_;
  WallWheel<Items<HotJob>> utc_;
  Time ready_utc_{};     // no ready job of the utc timeline is due later, except those that HoldBack has to look at
  Index hold_next_ = 0;  // the first of them; 0: none
  Wheel<Items<Lease>> expiry_;
  std::vector<std::unique_ptr<TopicState>> topics_;  // pointers, so that growth moves little
  std::vector<TopicNumber> free_numbers_;
  TextMap<TopicNumber> topic_numbers_;
  std::vector<TopicNumber> announced_;
  size_t out_of_turn_ = 0;  // ready jobs in trees, whose memory is counted apart
  Millis apart_{0};         // utc - steady, at the last MakeDueReady

  // Of TidyMemory.
  Time tidy_at_{};
  size_t spare_chunks_ = 0;  // the fewest that the pool had since the last look
  size_t release_ = 0;       // chunks of the pool to give back
  Index move_next_ = 0;      // the next job whose body may have to move; 0: none does
};

template <class F>
const Details& HotTier::ChangeDetails(Index index, F&& change) {
  jobs_[index].flags |= kHasDetails;
  const size_t part = index >> kDetailsShift;
  if (part >= details_.size()) details_.resize(part + 1);
  Details& details = details_[part][index];
  details_bytes_ -= details.bytes;
  change(details);
  details.bytes = details.MemoryBytes();
  details_bytes_ += details.bytes;
  return details;
}

template <class Take>
Index HotTier::Walk(TopicNumber topic, Index from, size_t work, Take&& take) {
  constexpr size_t kSkipsMax = 64;  // as many skipped blocks cost as much as one job
  size_t skipped = 0;
  while (from < jobs_.end() && work > 0) {
    const uint32_t block = from >> kBlockShift;
    const bool whole = from <= std::max(block << kBlockShift, 1U);
    const auto stop = static_cast<Index>(std::min<uint64_t>(jobs_.end(), uint64_t{block + 1} << kBlockShift));
    if ((marks_[block] & MarkOf(topic)) == 0) {
      from = stop;
      work -= ++skipped % kSkipsMax == 0 ? 1 : 0;
      continue;
    }
    work -= std::min<size_t>(work, stop - from);
    uint64_t marks = 0;
    while (from < stop) {
      const Index index = from++;
      const HotJob& hot = jobs_[index];
      if (hot.IsFree()) continue;
      marks |= MarkOf(hot.topic);
      if (hot.topic == topic && !take(index)) return from;
    }
    if (whole) marks_[block] = marks;  // without the topics whose jobs have gone
  }
  return from;
}

template <class OnForget>
bool HotTier::MakeDueReady(Moment now, size_t budget, OnForget&& forget) {
  apart_ = now.utc - now.steady;
  utc_.SetNow(now.utc);
  if (now.utc < ready_utc_) {
    hold_next_ = 1;
    ready_utc_ = {};
  }
  if (hold_next_ != 0) HoldBack(now);
  const bool more = TurnWheels(now, budget, forget);
  return more || hold_next_ != 0;
}

template <class OnForget>
bool HotTier::TurnWheels(Moment now, size_t budget, OnForget&& forget) {
  size_t work = 0;
  const auto hand_over = [&](Index index) {
    ++work;
    if (jobs_[index].state == State::kScheduled) {
      MakeReady(index);
    } else {
      forget(index);
    }
  };
  if (utc_.size() == 0) return steady_.Advance(now.steady, budget, hand_over);
  // Jobs of both timelines become ready in one order: each wheel advances no further than the other's next work. Jobs
  // that both have in the same millisecond are sorted by uid. Before that, do the moves inside each wheel.
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
      std::ranges::sort(both, {}, [this](Index index) { return jobs_[index].uid; });
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
