// ShardStore: the embedded store of one shard. It applies each call to the hot tier at once, writes what changed to the
// journal through its lane, and answers when that may be acknowledged. Leases live in memory alone; the journal's
// epoch, which is in every token, makes those of an earlier run stale. The shard's thread owns it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "spi/store.h"
#include "storage/journal/hot_tier.h"
#include "storage/journal/lane.h"
#include "storage/journal/segment_jobs.h"

namespace tocsin::journal {

/// What the shards of a node share.
class NodeUse {
 public:
  explicit NodeUse(uint64_t memory_limit_bytes) : memory_limit_bytes_(memory_limit_bytes) {}

  std::shared_ptr<SharedUse> OfTopic(const std::string& name);

  bool MemoryLeft(size_t bytes) const {
    return memory_limit_bytes_ == 0 || memory_bytes.load(std::memory_order_relaxed) + bytes <= memory_limit_bytes_;
  }

  std::atomic<uint64_t> memory_bytes = 0;  // of all hot tiers, as of their last calls
  std::atomic<uint64_t> put_bytes = 0;     // what the puts of all jobs take in the journal
  ChunkSource chunks;                      // of their memory

 private:
  const uint64_t memory_limit_bytes_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<SharedUse>> topics_;
};

struct DueTime {
  Timeline timeline = Timeline::kSteady;
  Time due{};
};
/// When a job is due that is asked for so; a moment that has passed counts as now.
inline DueTime DueOf(Timeline timeline, Millis delay, Time due, Moment now) {
  if (timeline == Timeline::kSteady) return {timeline, now.steady + delay};
  return {timeline, std::max(due, now.utc)};
}
inline void SetDue(Entry& entry, DueTime due) {
  entry.due_ms = ToMs(due.due);
  entry.flags =
      static_cast<uint8_t>(due.timeline == Timeline::kSteady ? entry.flags | kOnSteady : entry.flags & ~kOnSteady);
}

inline void SetTrigger(Entry& entry, Trigger trigger) {
  entry.flags =
      static_cast<uint8_t>((entry.flags & ~(3 << kTriggerShift)) | static_cast<int>(trigger) << kTriggerShift);
}

class ShardStore final : public Store {
 public:
  ShardStore(NodeUse& node, uint32_t shard) : node_(node), shard_(shard), tier_(node.chunks) {}

  // Recovery, before Attach: entries are put into the tables but placed nowhere.
  HotTier& tier() { return tier_; }
  uint16_t EnsureTopic(const Topic& settings);
  void DropTopicJobs(uint16_t topic);
  /// After a put that is now in `segment`.
  void PutIn(Index index, uint64_t segment);
  /// Before its put counts no longer.
  void ForgetPut(Index index);
  void RestoreUids(Uid used);
  void EraseJob(Index index);
  /// Places every entry, as of `now`, and begins to serve.
  void Attach(Journal& journal, Moment now);
  /// Writes every job anew, into a journal that holds none of them.
  void Rewrite(Moment now);

  void Bind(Loop& loop) { lane_->Bind(loop); }
  Lane& lane() { return *lane_; }

  void PutTopic(const Topic& topic, Done<void> done) override;
  void DropTopic(std::string_view topic, Done<void> done) override;
  std::vector<TopicFigures> Topics() const override;
  void Submit(std::string_view topic, std::span<const NewJob> jobs, Moment now,
              Done<std::vector<Submitted>> done) override;
  void Claim(std::string_view topic, size_t max, Millis lease, Moment now, Done<JobBatch> done) override;
  void Settle(std::string_view topic, std::span<const Settlement> settlements, Moment now,
              Done<std::vector<SettleOutcome>> done) override;
  void Amend(std::string_view topic, std::span<const Amendment> amendments, Moment now,
             Done<std::vector<Amended>> done) override;
  void Count(std::string_view topic, std::span<const CountEvent> events, Moment now,
             Done<std::vector<Counted>> done) override;
  void Find(std::string_view topic, std::span<const JobRef> jobs, Moment now, Done<JobBatch> done) override;
  void List(std::string_view topic, State state, std::string_view cursor, size_t limit, Moment now,
            Done<Page> done) override;
  void Sweep(std::string_view topic, SweepKind kind, std::string_view cursor, size_t limit, Moment now,
             Done<Swept> done) override;
  void Advance(Moment now, size_t budget, Done<Advanced> done) override;

 private:
  template <class T>
  bool Ready(std::string_view name, uint16_t& topic, Done<T>& done);

  Submitted SubmitOne(uint16_t topic, const NewJob& job, Moment now);
  std::optional<SubmitOutcome> SubmitAgain(const NewJob& job, Index stored) const;
  SubmitOutcome Refusal(size_t bytes) const;
  /// 0 where memory is short.
  Index MakeEntry(uint16_t topic, const NewJob& job, Moment now);
  SettleOutcome SettleOne(uint16_t topic, const Settlement& settlement, Moment now);
  Amended AmendOne(uint16_t topic, const Amendment& amendment, Moment now);
  /// After kDone the caller writes the put.
  AmendOutcome ReplacePayload(Index index, std::string_view payload, Moment now);
  Counted CountOne(uint16_t topic, const CountEvent& event, Moment now);

  /// A failed attempt, as a nack or a bury says: rest and try again, or dead. True when dead.
  bool FailAttempt(Index index, const Settlement& how, Moment now);
  /// Places the (detached) entry anew and writes it down.
  void Move(Index index, State state, Moment now);
  void WriteMove(std::string& out, Index index, Moment now);
  void End(Index index, EntryType how, Moment now);
  void Redrive(Index index, Moment now);
  void SweepOne(Index index, SweepKind kind, Moment now);
  void WritePut(std::string& out, Index index, Moment now);
  void ReportMemory();

  Time ShownDue(Index index, Moment now) const;
  void View(Index index, Moment now, char* bytes, JobView& view) const;
  JobBatch ViewAll(std::span<const Index> jobs, Moment now) const;

  bool Upkeep(Moment now, size_t budget);
  void CopyForward(Moment now, size_t budget);
  void WritePrologue(std::string& out) const;
  /// What the topics take in a prologue, at most.
  size_t TopicsBytes() const;

  NodeUse& node_;
  const uint32_t shard_;
  HotTier tier_;
  UidSource uids_;
  Uid last_uid_ = 0;    // no id above it was given out
  uint64_t fence_ = 0;  // of the last lease: epoch << 40 | count
  SegmentJobs puts_;
  std::vector<Index> unplaced_puts_;  // written by the current call, their segment not yet known
  std::unique_ptr<Lane> lane_;
  uint64_t memory_reported_ = 0;
};

template <class T>
bool ShardStore::Ready(std::string_view name, uint16_t& topic, Done<T>& done) {
  if (lane_->failed()) {
    done(std::unexpected(lane_->journal().error()));
    return false;
  }
  topic = tier_.FindTopic(name);
  if (topic != kNoTopic) return true;
  done(NoSuchTopic(name));
  return false;
}

}  // namespace tocsin::journal
