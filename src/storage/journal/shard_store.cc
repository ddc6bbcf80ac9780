// ShardStore: topics, upkeep, and helpers of the other parts (submit.cc, deliver.cc, amend.cc, query.cc).
#include "storage/journal/shard_store.h"

#include "storage/journal/topic_room.h"

namespace tocsin::journal {
namespace {

constexpr int kFenceCountBits = 40;
// Old segments are emptied when the journal spans more than this percentage of its live puts, and more than this number
// of segments. Together with the free files that are kept, this stays within three times the live bytes.
constexpr uint64_t kSpanPercent = 250;
constexpr uint64_t kSpanSegmentsMin = 4;
// The same on a full disk.
constexpr uint64_t kFullSpanPercent = 125;
constexpr uint64_t kFullSpanSegments = 1;
// What one call copies forward at most: large jobs must not stall the shard.
constexpr size_t kCopyBytes = 1 << 20;
// Jobs that one call looks at to find those of dropped topics: as in a sweep.
constexpr size_t kDroppedLookMax = 8192;
constexpr size_t kPutOverhead = 24;     // of a put without the body, about
constexpr size_t kDetailsOverhead = 8;  // of the details in a put: mostly times
constexpr size_t kFinishedBytes = 16;   // of those that a retained job has in addition

/// Of the details in a put that is written now.
uint32_t BytesOf(const Details& details) {
  return static_cast<uint32_t>(kDetailsOverhead + (details.finished ? kFinishedBytes : 0) + details.reason.size() +
                               details.events.size() * sizeof(uint64_t));
}

/// Of a put as it was written.
size_t PutBytes(const HotJob& hot, const Details* details) {
  return hot.body_size + kPutOverhead + (details == nullptr ? 0 : details->put_bytes);
}

}  // namespace

std::shared_ptr<SharedUse> NodeUse::OfTopic(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<SharedUse> use = topics_[name].lock();
  if (!use) topics_[name] = use = std::make_shared<SharedUse>();
  return use;
}

void NodeUse::Dropped(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  const auto at = topics_.find(name);
  if (at != topics_.end() && at->second.expired()) topics_.erase(at);
}

void NodeUse::NoteMemoryFull(IoTime now) {
  const LogField fields[] = {{"used_bytes", static_cast<int64_t>(MemoryUsed())},
                             {"limit_bytes", static_cast<int64_t>(memory_limit_bytes_)},
                             {"new_jobs", "refused"}};
  memory_full_.Begin(now, fields);
}

size_t NodeUse::topics() const {
  const std::scoped_lock lock(mutex_);
  return topics_.size();
}

TopicNumber ShardStore::EnsureTopic(const Topic& settings) {
  TopicNumber number = tier_.FindTopic(settings.name);
  if (number == kNoTopic) {
    number = tier_.AddTopic(settings, node_.OfTopic(settings.name));
  } else {
    tier_.topic(number).settings = settings;
  }
  if (lane_) topic_texts_.Update(tier_, number);
  return number;
}

void ShardStore::RemoveTopic(TopicNumber topic) {
  const std::string name = tier_.topic(topic).settings.name;
  tier_.DropTopic(topic);
  if (lane_) topic_texts_.Update(tier_, topic);
  node_.Dropped(name);
}

void ShardStore::PutIn(Index index, uint64_t segment) {
  HotJob& hot = tier_.at(index);
  hot.segment = static_cast<uint32_t>(segment);
  puts_.Add(segment, index);
  if (hot.flags & kHasDetails) {
    tier_.ChangeDetails(index, [](Details& details) { details.put_bytes = BytesOf(details); });
  }
  node_.put_bytes.fetch_add(PutBytes(hot, tier_.DetailsOf(index)), std::memory_order_relaxed);
}

void ShardStore::ForgetPut(Index index) {
  const HotJob& hot = tier_.at(index);
  if (hot.segment == 0) return;  // written by the current call, and not yet placed
  puts_.Remove(hot.segment);
  node_.put_bytes.fetch_sub(PutBytes(hot, tier_.DetailsOf(index)), std::memory_order_relaxed);
}

void ShardStore::RestoreUids(Uid used) {
  uids_.Restore(used);
  last_uid_ = std::max(last_uid_, used);
}

void ShardStore::Attach(Journal& journal, Moment now) {
  Time oldest_steady = now.steady;
  Time oldest_utc = now.utc;
  for (Index index = 1; index < tier_.end(); ++index) {
    const HotJob& hot = tier_.at(index);
    if (hot.IsFree()) continue;
    Time& oldest = hot.flags & kOnSteady ? oldest_steady : oldest_utc;
    oldest = std::min(oldest, hot.due());
  }
  tier_.ResetWheels(std::max(Time{}, oldest_steady - Millis(1)), std::max(Time{}, oldest_utc - Millis(1)),
                    now.utc - now.steady);
  for (Index index = 1; index < tier_.end(); ++index) {
    const HotJob& hot = tier_.at(index);
    if (hot.IsFree()) continue;
    if (hot.state == State::kScheduled) {
      tier_.Schedule(index);
    } else if (hot.state == State::kDead) {
      tier_.MakeDead(index);
    } else {
      tier_.Retain(index, hot.state, Time{}, hot.due());
      continue;
    }
    ++tier_.topic(hot.topic).figures.recovered;
  }
  fence_ = uint64_t{journal.generation()} << kFenceCountBits;
  lane_ = std::make_unique<Lane>(
      journal, shard_, [this](std::string& out) { WritePrologue(out); },
      [this](uint64_t segment) {
        // A job may have ended since, or be in the list twice.
        for (const Index index : unplaced_puts_) {
          if (!tier_.at(index).IsFree() && tier_.at(index).segment == 0) PutIn(index, segment);
        }
        unplaced_puts_.clear();
      });
  for (TopicNumber number = 0; number < tier_.topics().size(); ++number) topic_texts_.Update(tier_, number);
  journal.NotePrologue(shard_, topic_texts_.bytes());
  // The lane's first record in this generation: its prologue gives the topics their numbers.
  lane_->Begin(now);
  EncodeUids(lane_->Out(), last_uid_);
  lane_->Append();
}

void ShardStore::WritePrologue(std::string& out) const {
  EncodeUids(out, last_uid_);
  topic_texts_.AppendTo(out);
}

bool ShardStore::HasRoomFor(const Topic& topic, TopicNumber known) const {
  if (known != kNoTopic) {
    std::string before;
    std::string after;
    EncodeTopic(before, known, tier_.topic(known).settings);
    EncodeTopic(after, known, topic);
    if (after.size() <= before.size()) return true;
  }
  const Journal& journal = lane_->journal();
  return topic_texts_.bytes() <= TopicTextBytesMax(journal.segment_bytes(), journal.lanes());
}

void ShardStore::PutTopic(const Topic& topic, Done<void> done) {
  if (lane_->failed()) return done(std::unexpected(lane_->journal().error()));
  if (!lane_->journal().has_room_for_changes()) {
    return done(Fail(Code::kStorageFull, "the disk is full; the topic was not changed"));
  }
  const TopicNumber known = tier_.FindTopic(topic.name);
  if (!HasRoomFor(topic, known)) {
    return done(
        FailField(Code::kOverCapacity, "topic", "there are more topics than journal.segment_size has room for"));
  }
  if (known == kNoTopic && !node_.MemoryLeft(kTopicBytes)) {
    return done(FailField(Code::kOverCapacity, "topic", "memory_limit leaves no room for another topic"));
  }
  WriteTopic(topic, std::move(done));
}

void ShardStore::PutBackTopic(const Topic& topic, Done<void> done) {
  if (lane_->failed()) return done(std::unexpected(lane_->journal().error()));
  if (!lane_->journal().has_room_for_ends()) return done(Fail(Code::kStorageFull, "the disk is full"));
  WriteTopic(topic, std::move(done));
}

void ShardStore::WriteTopic(const Topic& topic, Done<void> done) {
  const TopicNumber known = tier_.FindTopic(topic.name);
  const bool resumed = known != kNoTopic && tier_.topic(known).settings.paused && !topic.paused;
  const TopicNumber number = EnsureTopic(topic);
  if (resumed && !tier_.topic(number).ready.empty()) tier_.Announce(number);
  lane_->journal().NotePrologue(shard_, topic_texts_.bytes());
  EncodeTopic(lane_->Out(), number, topic);
  lane_->Append();
  ReportMemory();
  lane_->Reply(std::move(done), {});
}

void ShardStore::DropTopic(std::string_view topic, Done<void> done) {
  if (lane_->failed()) return done(std::unexpected(lane_->journal().error()));
  const TopicNumber number = tier_.FindTopic(topic);
  if (number != kNoTopic) {
    // Also on a full disk: a lane that refused what others have written would lose the topic's jobs at the next start.
    EncodeDropTopic(lane_->Out(), number);
    lane_->Append();
    RemoveTopic(number);  // Advance erases its jobs, and writes nothing for them
    lane_->journal().NotePrologue(shard_, topic_texts_.bytes());
    ReportMemory();
  }
  lane_->Reply(std::move(done), {});
}

bool ShardStore::EraseDropped(size_t budget, size_t look_max) {
  if (tier_.dropped_jobs() == 0) return false;
  size_t erased = 0;
  drop_next_ = tier_.WalkDropped(drop_next_, look_max, [&](Index index) {
    EraseJob(index);
    return ++erased < budget && tier_.dropped_jobs() > 0;
  });
  // What was dropped since this walk began may have jobs before it.
  if (drop_next_ >= tier_.end() || tier_.dropped_jobs() == 0) drop_next_ = 1;
  return tier_.dropped_jobs() > 0;
}

void ShardStore::WritePut(std::string& out, Index index, Moment now) {
  const HotJob& hot = tier_.at(index);
  PutEntry put;
  put.topic = hot.topic;
  put.uid = hot.uid;
  // A lease is not stored: after a restart a leased job is scheduled.
  put.state = hot.state == State::kLeased ? State::kScheduled : hot.state;
  put.timeline = hot.timeline();
  put.due = hot.due();
  put.attempts = hot.attempts;
  put.max_attempts = hot.max_attempts;
  put.trigger = hot.trigger();
  put.fired = hot.fired();
  put.details = tier_.DetailsOf(index);
  put.body = tier_.BodyOf(hot);
  EncodePut(out, put, now);
  tier_.at(index).segment = 0;
  unplaced_puts_.push_back(index);
  lane_->AppendIfLarge();
}

void ShardStore::Reschedule(Index index, Moment now) {
  tier_.Schedule(index);
  WriteMove(lane_->Out(), index, now);
}

void ShardStore::WriteMove(std::string& out, Index index, Moment now, Time last_attempt) {
  const HotJob& hot = tier_.at(index);
  const Details* details = tier_.DetailsOf(index);
  MoveEntry move;
  move.topic = hot.topic;
  move.uid = hot.uid;
  move.state = hot.state;
  move.timeline = hot.timeline();
  move.due = hot.due();
  move.attempts = hot.attempts;
  move.fired = hot.fired();
  move.either = hot.trigger() == Trigger::kEither;
  if (details != nullptr) move.reason = details->reason;
  move.last_attempt = last_attempt;
  EncodeMove(out, move, now);
  lane_->AppendIfLarge();
}

void ShardStore::End(Index index, EntryType how, Moment now) {
  const HotJob& hot = tier_.at(index);
  TopicState& topic = tier_.topic(hot.topic);
  topic.figures.worst.Forget(hot.uid);
  const Millis retention = topic.settings.retention;
  // If memory is short the job is forgotten at once: retained it would take more than before.
  const bool room = tier_.DetailsOf(index) != nullptr || node_.MemoryLeft(0);
  const bool retained = retention > Millis(0) && how != EntryType::kPurged && room;
  const Lease* const lease = tier_.LeaseOf(index);
  const Time attempt = retained && lease != nullptr ? lease->begun() : Time{};
  EncodeEnd(lane_->Out(), {hot.topic, hot.uid, how, retained ? retention : Millis(0), attempt}, now);
  lane_->AppendIfLarge();
  if (!retained) return EraseJob(index);
  if (attempt != Time{}) tier_.ChangeDetails(index, [&](Details& details) { details.last_attempt = attempt; });
  tier_.Detach(index);
  tier_.Retain(index, how == EntryType::kDone ? State::kDone : State::kCancelled, now.steady, now.steady + retention);
}

void ShardStore::EraseJob(Index index) {
  ForgetPut(index);
  tier_.Erase(index);
}

void ShardStore::Advance(Moment now, size_t budget, Done<Advanced> done) {
  if (lane_->failed()) return done(std::unexpected(lane_->journal().error()));
  lane_->Begin(now);
  Advanced advanced;
  advanced.more = tier_.MakeDueReady(now, budget, [this](Index index) { EraseJob(index); });
  advanced.more |= tier_.ExpireLeases(now, budget, [&](Index index) {
    TopicState& topic = tier_.topic(tier_.at(index).topic);
    if (!topic.used) return EraseJob(index);  // dropped
    ++topic.figures.expired;
    if (lane_->journal().has_room()) {
      FailAttempt(index, {.kind = SettleKind::kNack, .reason = "lease expired"}, now);
    } else {
      tier_.Detach(index);
      tier_.Schedule(index);  // writes nothing: the room is kept for settling. Uses up no attempt, like a restart
    }
  });
  advanced.more |= EraseDropped(budget, kDroppedLookMax);
  advanced.more |= Upkeep(now, budget);
  advanced.more |= tier_.TidyMemory(now, budget, node_.MemoryPressed());
  lane_->Append();
  lane_->journal().KeepTime(now);
  for (const TopicNumber number : tier_.TakeAnnounced()) {
    TopicState& topic = tier_.topic(number);
    if (!topic.used) continue;
    // A paused topic is announced when it is resumed.
    topic.announced = !topic.settings.paused;
    if (topic.announced) advanced.ready.push_back(topic.settings.name);
  }
  advanced.next_steady = tier_.NextSteady(now);
  advanced.next_utc = tier_.NextUtc(now);
  ReportMemory();
  done(std::move(advanced));
}

void ShardStore::ReportMemory() {
  const uint64_t memory = tier_.held_bytes();
  node_.memory_bytes.fetch_add(memory - memory_reported_, std::memory_order_relaxed);
  memory_reported_ = memory;
  node_.NoteMemory(lane_->journal().clock());
}

bool ShardStore::Upkeep(Moment now, size_t budget) {
  Journal& journal = lane_->journal();
  const uint64_t live_bytes = node_.put_bytes.load(std::memory_order_relaxed);
  // Room for the live puts, the segment being written and one being emptied. With less, jobs would be copied for ever.
  const uint64_t segments_min = std::max(kSpanSegmentsMin, live_bytes / (journal.segment_bytes() - kBlock) + 3);
  uint64_t span_max = std::max(segments_min * journal.segment_bytes(), live_bytes * kSpanPercent / 100);
  if (!journal.has_room()) {
    // Free as much as possible, but one segment at a time: copying needs room too.
    span_max = live_bytes * kFullSpanPercent / 100 + kFullSpanSegments * journal.segment_bytes();
    if (journal.freeing()) return false;
  }
  const bool crowded = journal.span_bytes() > span_max && journal.has_room_for_changes();
  uint64_t oldest = puts_.Oldest(journal.last_segment());
  const bool holds_back = crowded && journal.first_needed() >= journal.NeededBy(shard_);
  if (holds_back) {
    if (oldest > journal.NeededBy(shard_)) {
      // The oldest segment holds only this lane's prologue: any record writes a new one into the last segment.
      EncodeUids(lane_->Out(), last_uid_);
    } else {
      CopyForward(now, budget);
    }
    lane_->Append();
    oldest = puts_.Oldest(journal.last_segment());
  }
  if (oldest > journal.NeededBy(shard_)) journal.Release(shard_, oldest);
  return holds_back;
}

void ShardStore::CopyForward(Moment now, size_t budget) {
  const uint64_t oldest = puts_.Oldest(0);
  size_t bytes = 0;
  for (size_t work = 0; work < budget && bytes < kCopyBytes; ++work) {
    const Index index = puts_.NextOfOldest();
    if (index == 0) return;
    const HotJob& hot = tier_.at(index);
    if (hot.IsFree() || hot.segment != oldest) continue;
    if (!tier_.topic(hot.topic).used) {  // dropped
      EraseJob(index);
      continue;
    }
    const Details* const details = tier_.DetailsOf(index);
    bytes += hot.body_size + kPutOverhead + (details == nullptr ? 0 : BytesOf(*details));
    ForgetPut(index);
    WritePut(lane_->Out(), index, now);
  }
}

void ShardStore::Rewrite(Moment now) {
  puts_ = {};
  lane_->Begin(now);
  for (Index index = 1; index < tier_.end(); ++index) {
    if (!tier_.at(index).IsFree()) WritePut(lane_->Out(), index, now);
    if (index % 100'000 == 0) lane_->journal().Commit();  // no committer runs
  }
  lane_->Append();
}

}  // namespace tocsin::journal
