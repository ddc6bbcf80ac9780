// ShardStore: the embedded store of one shard. It applies each call to the hot tier at once, writes the changes to the
// journal through its lane, and answers when they may be acknowledged. Leases are only in memory. Every token holds the
// journal's generation, so tokens that were given before a restart are stale. The shard's thread owns it.
#pragma once

#include <deque>
#include <mutex>

#include "base/clock.h"
#include "base/episode.h"
#include "base/result.h"
#include "spi/push_memory.h"
#include "spi/store.h"
#include "storage/journal/hot_tier.h"
#include "storage/journal/lane.h"
#include "storage/journal/topic_texts.h"

namespace tocsin::journal {

/// What the shards of a node share.
class NodeUse {
 public:
  /// `topics`: the tables have room for so many from the start.
  explicit NodeUse(uint64_t memory_limit_bytes, size_t topics = 0, const PushMemory* push_memory = nullptr)
      : topics_max(topics), memory_limit_bytes_(memory_limit_bytes), push_memory_(push_memory) {
    topics_.reserve(topics);
  }

  std::shared_ptr<SharedUse> OfTopic(const std::string& name);
  /// A shard has dropped the topic: forgets its name if it was the last.
  void Dropped(const std::string& name);
  /// Names that it keeps.
  size_t topics() const;

  bool MemoryLeft(size_t bytes) const {
    return memory_limit_bytes_ == 0 || MemoryUsed() + bytes <= memory_limit_bytes_;
  }
  /// A job was refused because MemoryLeft said no.
  void NoteMemoryFull(IoTime now);
  /// Whether that is over: some of the memory is left again, so that not every job begins and ends it.
  void NoteMemory(const Clock& clock) {
    if (memory_full_.on() && MemoryLeft(memory_limit_bytes_ / 20)) memory_full_.End(clock.IoNow());
  }

  /// Little is left: spare memory is better given back than kept.
  bool MemoryPressed() const { return !MemoryLeft(memory_limit_bytes_ / 8); }

  const size_t topics_max;
  std::atomic<uint64_t> memory_bytes = 0;  // of all hot tiers, as last reported
  std::atomic<uint64_t> put_bytes = 0;     // of the latest puts of all jobs in the journal
  ChunkSource chunks;                      // memory of the hot tiers

 private:
  uint64_t MemoryUsed() const {
    const size_t pushed = push_memory_ == nullptr ? 0 : push_memory_->bytes();
    return memory_bytes.load(std::memory_order_relaxed) + pushed;
  }

  const uint64_t memory_limit_bytes_;
  const PushMemory* const push_memory_;  // counts too; may be null
  Episode memory_full_{"memory_limit"};
  mutable std::mutex mutex_;
  TextMap<std::weak_ptr<SharedUse>> topics_;
};

/// Which jobs of one shard have their latest put in which segment, so that an old segment can be emptied by copying
/// forward the few jobs that it still holds. A job that ended or was put again stays in the list; whoever walks the
/// list compares the job's own segment number.
class SegmentJobs {
 public:
  /// Segments come in rising order.
  void Add(uint64_t segment, uint32_t job) {
    if (segments_.empty() || segments_.back().number < segment) segments_.push_back({segment, 0, 0, {}});
    Segment& last = segments_.back();
    TOCSIN_CHECK(last.number == segment);
    last.jobs.push_back(job);
    ++last.live;
  }

  /// A job whose put was in `segment` ended, or was put again.
  void Remove(uint64_t segment) {
    // Nearly always the numbers are dense; an idle shard leaves out some.
    auto at = segments_.begin() + std::min(segment - segments_.front().number, segments_.size() - 1);
    if (at->number != segment) at = std::ranges::lower_bound(segments_, segment, {}, &Segment::number);
    --at->live;
  }

  /// Forgets the oldest segments as long as no job lives in them. Returns the oldest one still needed, or `none`.
  uint64_t Oldest(uint64_t none) {
    while (!segments_.empty() && segments_.front().live == 0) segments_.pop_front();
    return segments_.empty() ? none : segments_.front().number;
  }

  /// The next job of the oldest segment's list, whether its put is still there or not; 0 at the end.
  uint32_t NextOfOldest() {
    if (segments_.empty()) return 0;
    Segment& oldest = segments_.front();
    return oldest.walked == oldest.jobs.size() ? 0 : oldest.jobs[oldest.walked++];
  }

 private:
  struct Segment {
    uint64_t number = 0;
    uint32_t live = 0;
    size_t walked = 0;
    std::vector<uint32_t> jobs;
  };
  std::deque<Segment> segments_;
};

struct DueTime {
  Timeline timeline = Timeline::kSteady;
  Time due{};
};
/// The due time for a request. A time that has passed counts as now.
inline DueTime DueOf(Timeline timeline, Millis delay, Time due, Moment now) {
  if (timeline == Timeline::kSteady) return {timeline, now.steady + delay};
  return {timeline, std::max(due, now.utc)};
}
inline void SetDue(HotJob& hot, DueTime due) {
  hot.due_ms = ToMs(due.due);
  hot.flags = static_cast<uint8_t>(due.timeline == Timeline::kSteady ? hot.flags | kOnSteady : hot.flags & ~kOnSteady);
}

/// The number that a consumer saw: an attempt is used up when it fails.
inline uint32_t ShownAttempt(const HotJob& hot) {
  return hot.attempts + (hot.state == State::kLeased || hot.state == State::kDone ? 1U : 0U);
}
/// A time that a job remembers, in UTC; Time{} if it does not.
inline Time ShownTime(Time steady, Moment now) {
  return steady == Time{} ? steady : ShowAsUtc(steady, Timeline::kSteady, now);
}

inline void SetTrigger(HotJob& hot, Trigger trigger) {
  hot.flags = static_cast<uint8_t>((hot.flags & ~(3 << kTriggerShift)) | static_cast<int>(trigger) << kTriggerShift);
}

class ShardStore final : public Store {
 public:
  ShardStore(NodeUse& node, uint32_t shard) : node_(node), shard_(shard), tier_(node.chunks, node.topics_max) {}

  // For recovery, before Attach: jobs are put into the tables but not placed.
  HotTier& tier() { return tier_; }
  TopicNumber EnsureTopic(const Topic& settings);
  /// Drops the topic. Its jobs go in a walk that many drops share: EraseDropped ends it.
  void RemoveTopic(TopicNumber topic);
  /// Erases some jobs of dropped topics. True if there are more.
  bool EraseDropped(size_t budget, size_t look_max);
  /// The job's latest put is in `segment`.
  void PutIn(Index index, uint64_t segment);
  /// The job's latest put is no longer needed. Called before the job changes or goes.
  void ForgetPut(Index index);
  void RestoreUids(Uid used);
  void EraseJob(Index index);
  /// Places every job, as of `now`, and begins to serve.
  void Attach(Journal& journal, Moment now);
  /// Writes every job to a journal that holds none of them.
  void Rewrite(Moment now);

  void Bind(Loop& loop) { lane_->Bind(loop); }
  Lane& lane() { return *lane_; }

  void PutTopic(const Topic& topic, Done<void> done) override;
  void PutBackTopic(const Topic& topic, Done<void> done) override;
  void DropTopic(std::string_view topic, Done<void> done) override;
  std::optional<TopicFigures> FindFigures(std::string_view topic) const override;
  TopicsPage TopicsFrom(std::string_view cursor, size_t limit) const override;
  void Submit(std::string_view topic, std::span<const NewJob> jobs, Moment now,
              Done<std::vector<Submitted>> done) override;
  void Claim(std::string_view topic, JobMax max, Millis lease, Moment now, Done<JobBatch> done) override;
  void Settle(std::string_view topic, std::span<const Settlement> settlements, Moment now,
              Done<std::vector<SettleOutcome>> done) override;
  void Amend(std::string_view topic, std::span<const Amendment> amendments, Moment now,
             Done<std::vector<Amended>> done) override;
  void Count(std::string_view topic, std::span<const CountEvent> events, Moment now,
             Done<std::vector<Counted>> done) override;
  void Find(std::string_view topic, std::span<const JobRef> jobs, JobRoom* room, Moment now,
            Done<JobBatch> done) override;
  void List(std::string_view topic, const Selector& what, std::string_view cursor, JobMax max, Moment now,
            Done<Page> done) override;
  void Sweep(std::string_view topic, SweepKind kind, std::string_view cursor, size_t limit, Moment now,
             Done<Swept> done) override;
  void Load(std::string_view topic, const LoadSpan& span, Moment now, Done<LoadCounts> done) override;
  void Advance(Moment now, size_t budget, Done<Advanced> done) override;

 private:
  /// Finds the topic; otherwise answers `done` and returns false.
  template <class T>
  bool Ready(std::string_view name, TopicNumber& topic, Done<T>& done);
  /// Applies kOne to each item, and answers the outcomes when what was written may be acknowledged.
  template <auto kOne, class Item, class Outcome>
  void ApplyAll(std::string_view name, std::span<const Item> items, Moment now, Done<std::vector<Outcome>> done);

  Submitted SubmitOne(TopicNumber topic, const NewJob& job, Moment now);
  std::optional<SubmitOutcome> SubmitAgain(const NewJob& job, Index stored) const;
  SubmitOutcome Refusal(size_t bytes) const;
  /// 0 if memory is short.
  Index MakeJob(TopicNumber topic, const NewJob& job, Moment now);
  /// Gives a job that is not yet placed its past.
  void Restore(Index index, const Restored& past, Moment now);
  /// For what such a settlement writes.
  bool HasRoom(SettleKind kind);
  bool HasRoom(AmendKind kind);
  SettleOutcome SettleOne(TopicNumber topic, const Settlement& settlement, Moment now);
  Amended AmendOne(TopicNumber topic, const Amendment& amendment, Moment now);
  /// After kDone the caller writes the put.
  AmendOutcome ReplacePayload(Index index, std::string_view payload, Moment now);
  Counted CountOne(TopicNumber topic, const CountEvent& event, Moment now);

  /// Ends the failed attempt of a leased job: it is scheduled again after its back-off, or dead. True if dead.
  bool FailAttempt(Index index, const Settlement& how, Moment now);
  /// Schedules the detached job again and writes the change.
  void Reschedule(Index index, Moment now);
  /// `last_attempt`: when it began, if the move ends one.
  void WriteMove(std::string& out, Index index, Moment now, Time last_attempt = {});
  void End(Index index, EntryType how, Moment now);
  void Redrive(Index index, Moment now);
  void SweepOne(Index index, SweepKind kind, Moment now);
  void WritePut(std::string& out, Index index, Moment now);
  void ReportMemory();

  /// Of the job's texts in an answer.
  size_t ViewBytes(Index index) const;
  Time ShownDue(Index index, Moment now) const;
  Time ShownCreated(const HotJob& hot, Moment now) const;
  void View(Index index, Moment now, char* bytes, JobView& view) const;
  JobBatch ViewAll(std::span<const Index> jobs, Moment now) const;
  class Look;  // at the jobs of one listing

  bool Upkeep(Moment now, size_t budget);
  void CopyForward(Moment now, size_t budget);
  void WritePrologue(std::string& out) const;
  /// Whether a prologue may grow by the topic. `known`: its number, or kNoTopic.
  bool HasRoomFor(const Topic& topic, TopicNumber known) const;
  void WriteTopic(const Topic& topic, Done<void> done);

  NodeUse& node_;
  const uint32_t shard_;
  HotTier tier_;
  TopicTexts topic_texts_;
  UidSource uids_;
  Uid last_uid_ = 0;    // the highest one that was given out
  uint64_t fence_ = 0;  // of the last lease: generation << 40 | count
  SegmentJobs puts_;
  std::vector<Index> unplaced_puts_;  // written by the current call; their segment is not yet known
  std::unique_ptr<Lane> lane_;
  Index drop_next_ = 1;  // where to look for the next job of a dropped topic; the journal has dropped them already
  uint64_t memory_reported_ = 0;
};

template <class T>
bool ShardStore::Ready(std::string_view name, TopicNumber& topic, Done<T>& done) {
  if (lane_->failed()) {
    done(std::unexpected(lane_->journal().error()));
    return false;
  }
  topic = tier_.FindTopic(name);
  if (topic != kNoTopic) return true;
  done(NoSuchTopic(name));
  return false;
}

template <auto kOne, class Item, class Outcome>
void ShardStore::ApplyAll(std::string_view name, std::span<const Item> items, Moment now,
                          Done<std::vector<Outcome>> done) {
  TopicNumber topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  lane_->Begin(now);
  std::vector<Outcome> outcomes;
  outcomes.reserve(items.size());
  for (const Item& item : items) outcomes.push_back((this->*kOne)(topic, item, now));
  lane_->Append();
  ReportMemory();
  lane_->Reply(std::move(done), std::move(outcomes));
}

}  // namespace tocsin::journal
