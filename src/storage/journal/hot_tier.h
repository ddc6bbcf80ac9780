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
//  4. A scheduled job that is in a wheel is counted in the minute of its due time, once for its topic and once in all.
//     The minute is one of UTC. If the wall clock is set, jobs of the steady timeline are due in other minutes:
//     MakeDueReady counts them again, a bounded number in each call.
#pragma once

#include <atomic>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "base/text.h"
#include "spi/store.h"
#include "storage/journal/blob_arena.h"
#include "storage/journal/body.h"
#include "storage/journal/entries.h"
#include "storage/journal/holders.h"
#include "storage/journal/id_table.h"
#include "storage/journal/minute_counts.h"
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
  State state : 7 = State::kScheduled;
  bool tells_created : 1 = false;  // its body has CreatedIn; otherwise the uid tells
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
  uint16_t holder = Holders::kNone;
  uint64_t begun_ms : 47 = 0;    // on the steady timeline
  uint64_t extensions : 16 = 0;  // or more, if it is the highest number
  uint64_t used : 1 = 1;

  uint64_t order() const { return fence; }
  Time begun() const { return FromMs(static_cast<int64_t>(begun_ms)); }
  void MarkFree(uint32_t next_free) {
    used = 0;
    next = next_free;
  }
  uint32_t NextFree() const { return next; }
  bool IsFree() const { return used == 0; }
};
static_assert(sizeof(Lease) == 40);

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
  // Blocks in which it has jobs, and perhaps had some, in order; empty if they are too many. A small topic among many
  // others is listed without a look at theirs.
  static constexpr size_t kBlocksMax = 32;
  std::vector<uint32_t> blocks;
  bool in_many_blocks = false;
  MinuteCounts minutes;  // of the jobs in the wheels
  std::shared_ptr<SharedUse> shared;
  bool announced = false;  // reported as ready, and not claimed empty since
  bool used = false;       // false and jobs > 0: dropped, see DropTopic
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
  /// Frees the name at once, and the number when the last of its jobs is erased.
  void DropTopic(TopicNumber number);
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
  /// Keeps a job that ended at `ended` until `until`.
  void Retain(Index index, State state, Time ended, Time until);
  /// The number of a holder that is about to get so many leases; Holders::kNone if it has no name, or if the name is
  /// new and `may_add` is false.
  uint16_t Hold(std::string_view holder, size_t leases, bool may_add) {
    return holders_.Hold(holder.substr(0, kHolderBytesMax), static_cast<uint32_t>(leases), may_add);
  }
  /// 0, and the job stays detached, if memory is short.
  uint32_t MakeLease(Index index, uint64_t fence, uint16_t holder, Time now, Time deadline);
  void ExtendLease(uint32_t lease, Time deadline);
  /// Null if the job is not leased.
  const Lease* LeaseOf(Index index) const {
    const HotJob& hot = jobs_[index];
    return hot.state == State::kLeased ? &leases_[hot.prev] : nullptr;
  }
  std::string_view HolderOf(const Lease& lease) const { return holders_.NameOf(lease.holder); }
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
  Index Walk(TopicNumber topic, Index from, size_t work, Take&& take) {
    if (!topics_[topic]->in_many_blocks) return WalkFewBlocks(topic, from, work, take);
    return WalkBlocks(MarkOf(topic), [topic](const HotJob& hot) { return hot.topic == topic; }, from, work, take);
  }
  /// The same for the jobs of all dropped topics.
  template <class Take>
  Index WalkDropped(Index from, size_t work, Take&& take) {
    return WalkBlocks(
        dropped_marks_, [this](const HotJob& hot) { return !topics_[hot.topic]->used; }, from, work, take);
  }
  /// Jobs of dropped topics.
  uint64_t dropped_jobs() const { return dropped_jobs_; }
  size_t size() const { return jobs_.live(); }

  std::string_view BodyOf(const HotJob& hot) const { return {bodies_.At(hot.body), hot.body_size}; }
  const char* BodyAt(const HotJob& hot) const { return bodies_.At(hot.body); }
  /// Brings the job's body near if there is such a job: a walk is about to read it.
  void PrefetchBody(Index index) const {
    if (index < jobs_.end() && !jobs_[index].IsFree()) __builtin_prefetch(bodies_.At(jobs_[index].body));
  }
  char* BodyAt(Index index) { return bodies_.At(jobs_[index].body); }
  const Details* DetailsOf(Index index) const;
  /// Calls `change(details)`, with new details if the job has none, and counts the memory that they take.
  template <class F>
  const Details& ChangeDetails(Index index, F&& change);

  Index FindUid(TopicNumber topic, Uid uid) const;
  /// By own id and key, or by the text of a server id.
  Index Find(TopicNumber topic, JobRef job) const;

  /// Called before the first Schedule. No due time is earlier than these. `apart`: utc - steady.
  void ResetWheels(Time oldest_steady, Time oldest_utc, Millis apart);
  /// Makes due jobs ready, and hands retained jobs whose time is over to `forget(index)`. True when the budget ran out,
  /// or more jobs are to be put back because the wall clock was set back.
  template <class OnForget>
  bool MakeDueReady(Moment now, size_t budget, OnForget&& forget);
  /// Of a ready job: the wall clock was set back to before its due time.
  static bool IsEarly(const HotJob& hot, Moment now) { return (hot.flags & kOnSteady) == 0 && hot.due() > now.utc; }
  /// How many ready jobs one MakeDueReady puts back at most. Each takes about a microsecond.
  static constexpr size_t kHeldBackMax = 1'000;
  /// Hands jobs whose leases have expired to `expired(index)`, which detaches them. True when the budget ran out.
  template <class OnExpired>
  bool ExpireLeases(Moment now, size_t budget, OnExpired&& expired) {
    return expiry_.Advance(now.steady, budget, [&](uint32_t lease) { expired(leases_[lease].job); });
  }
  Time NextSteady(Moment now) const { return std::min(steady_.NextWork(now.steady), expiry_.NextWork(now.steady)); }
  Time NextUtc(Moment now) const { return utc_.NextWork(now.utc); }

  /// Calls visit(index) for the topic's ready jobs, in order, until that returns false.
  template <class Visit>
  void ForEachReady(const TopicState& topic, Visit&& visit) {
    topic.ready.ForEach(Items<HotJob>{&jobs_}, [this](Index index) { return OrderOf(index); }, visit);
  }

  /// When the first of the topic's ready jobs was due, by the wall clock; kNever if there is none.
  Time OldestReady(const TopicState& topic) const {
    const Index first = topic.ready.First([this](Index index) { return OrderOf(index); });
    return first == 0 ? kNever : OrderOf(first).first;
  }

  /// Of the first steps: of one topic, or of all with kNoTopic.
  LoadCounts Load(TopicNumber topic, const LoadSpan& span) const;

  /// Reports that the topic has ready jobs, unless it was reported and has not been claimed empty since.
  void Announce(TopicNumber topic);
  /// Topics that were announced since the last call.
  std::vector<TopicNumber> TakeAnnounced() { return std::exchange(announced_, {}); }

  /// All memory that topics and jobs take, or will once they are leased: what the system has given, not what was asked
  /// for.
  size_t held_bytes() const;
  /// Moves bodies out of chunks that are nearly empty, frees the events of jobs that have gone, and gives back memory
  /// that was spare for ten seconds; at once if `pressed`. Looks at about `budget` jobs. True if there is more to do.
  bool TidyMemory(Moment now, size_t budget, bool pressed);

 private:
  template <class T>
  struct Items {
    Slab<T>* slab;
    T& operator()(uint32_t index) const { return (*slab)[index]; }
  };

  template <class Wanted, class Take>
  Index WalkBlocks(uint64_t marks, const Wanted& wanted, Index from, size_t work, Take& take);
  template <class Take>
  Index WalkFewBlocks(TopicNumber topic, Index from, size_t work, Take& take);
  Index BlockEnd(uint32_t block) const {
    return static_cast<Index>(std::min<uint64_t>(jobs_.end(), uint64_t{block + 1} << kBlockShift));
  }
  void FreeNumber(TopicNumber number);
  void MoveBodies(size_t budget);
  /// Takes the events of a job that goes, if there are so many that FreeEvents has to free them in steps.
  void LeaveEvents(EventSet& events);
  void FreeEvents();
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
  /// The minute that the job is counted in.
  uint32_t MinuteOf(Index index) const;
  void CountIn(Index index) { ChangeCount(index, &MinuteCounts::Add); }
  void CountOut(Index index) { ChangeCount(index, &MinuteCounts::Remove); }
  void ChangeCount(Index index, void (MinuteCounts::*change)(uint32_t minute));
  /// Goes on counting jobs again, if the wall clock was set.
  void Recount(size_t budget);
  void Discharge(HotJob& hot);
  static void NoteBlock(TopicState& topic, uint32_t block);

  Slab<HotJob> jobs_;
  Slab<Lease> leases_;
  Holders holders_;
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
  std::deque<EventSet> left_events_;  // of jobs that have gone
  size_t left_bytes_ = 0;
  Wheel<Items<HotJob>> steady_;
  WallWheel<Items<HotJob>> utc_;
  Time ready_utc_{};     // no ready job of the utc timeline is due later, except those that HoldBack has to look at
  Index hold_next_ = 0;  // the first of them; 0: none
  Wheel<Items<Lease>> expiry_;
  std::vector<std::unique_ptr<TopicState>> topics_;  // pointers, so that growth moves little
  std::vector<TopicNumber> free_numbers_;
  uint64_t dropped_jobs_ = 0;
  uint64_t dropped_marks_ = 0;  // of dropped topics that have jobs, and perhaps of others
  TextMap<TopicNumber> topic_numbers_;
  std::vector<TopicNumber> announced_;
  size_t out_of_turn_ = 0;  // ready jobs in trees, whose memory is counted apart
  Millis apart_{0};         // utc - steady, at the last MakeDueReady

  MinuteCounts minutes_;  // of all topics, also of dropped ones that have jobs
  uint64_t ready_ = 0;    // the same for ready jobs
  std::unordered_set<TopicNumber> dropped_;
  size_t minutes_bytes_ = 0;   // of all MinuteCounts
  Millis counted_apart_{0};    // utc - steady, for the minutes of jobs of the steady timeline:
  Millis recounted_apart_{0};  // the same for jobs before recount_next_
  Index recount_next_ = 0;     // 0: all are counted with counted_apart_

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

template <class Wanted, class Take>
Index HotTier::WalkBlocks(uint64_t marks, const Wanted& wanted, Index from, size_t work, Take& take) {
  constexpr size_t kSkipsMax = 64;  // as many skipped blocks cost as much as one job
  size_t skipped = 0;
  while (from < jobs_.end() && work > 0) {
    const uint32_t block = from >> kBlockShift;
    const bool whole = from <= std::max(block << kBlockShift, 1U);
    const Index stop = BlockEnd(block);
    if ((marks_[block] & marks) == 0) {
      from = stop;
      work -= ++skipped % kSkipsMax == 0 ? 1 : 0;
      continue;
    }
    work -= std::min<size_t>(work, stop - from);
    uint64_t there = 0;
    while (from < stop) {
      const Index index = from++;
      const HotJob& hot = jobs_[index];
      if (hot.IsFree()) continue;
      there |= MarkOf(hot.topic);
      if (wanted(hot) && !take(index)) return from;
    }
    if (whole) marks_[block] = there;  // without the topics whose jobs have gone
  }
  return from;
}

template <class Take>
Index HotTier::WalkFewBlocks(TopicNumber topic, Index from, size_t work, Take& take) {
  const std::vector<uint32_t> blocks = topics_[topic]->blocks;  // `take` may erase the last job
  for (const uint32_t block : blocks) {
    const Index stop = BlockEnd(block);
    if (stop <= from) continue;
    if (work == 0) return from;
    const Index begin = block << kBlockShift;
    const bool whole = from <= std::max(begin, 1U);
    from = std::max({from, begin, 1U});
    work -= std::min<size_t>(work, stop - from);
    bool there = false;
    while (from < stop) {
      const Index index = from++;
      const HotJob& hot = jobs_[index];
      if (hot.IsFree() || hot.topic != topic) continue;
      there = true;
      if (!take(index)) return from;
    }
    if (whole && !there) std::erase(topics_[topic]->blocks, block);
  }
  return jobs_.end();
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
  Recount(budget);
  const bool more = TurnWheels(now, budget, forget);
  return more || hold_next_ != 0 || recount_next_ != 0;
}

template <class OnForget>
bool HotTier::TurnWheels(Moment now, size_t budget, OnForget&& forget) {
  size_t work = 0;
  const auto hand_over = [&](Index index) {
    ++work;
    if (jobs_[index].state == State::kScheduled) {
      CountOut(index);
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
