#include "storage/journal/replay.h"

#include <limits>

#include "base/result.h"
#include "model/placement.h"

namespace tocsin::journal {
namespace {

template <class F>
struct OnlyTopics final : EntryVisitor {
  explicit OnlyTopics(F visit) : on_topic(std::move(visit)) {}
  void OnTopic(uint32_t number, const Topic& topic) override { on_topic(number, topic); }
  void OnDropTopic(uint32_t number) override { on_topic(number, std::nullopt); }
  F on_topic;
};

/// In most generations the lanes have the numbers that the shards have here: a table of many names takes longer.
TopicNumber FindTopic(const HotTier& tier, const std::string& name, TopicNumber guess) {
  const bool right = guess < tier.topics().size() && tier.topic(guess).used && tier.topic(guess).settings.name == name;
  return right ? guess : tier.FindTopic(name);
}

struct OnlyPuts final : EntryVisitor {
  explicit OnlyPuts(std::unordered_set<Uid>& found) : uids(found) {}
  void OnPut(const PutEntry& put) override { uids.insert(put.uid); }
  std::unordered_set<Uid>& uids;
};

}  // namespace

void Replay::NoteDamaged(std::string_view bytes) {
  OnlyPuts puts(damaged_);
  while (bytes.size() > sizeof(RecordHeader)) {
    size_t size = RecordSize(bytes.data());
    if (size <= sizeof(RecordHeader) || size > bytes.size()) size = bytes.size();
    DecodeEntries(bytes.substr(sizeof(RecordHeader), size - sizeof(RecordHeader)), {}, puts);
    bytes.remove_prefix(size);
  }
}

void Replay::NoteTopics(const RecordHeader& header, std::string_view body) {
  OnlyTopics topics([&](uint32_t number, std::optional<Topic> topic) {
    noted_[{header.generation, header.lane, number}].push_back({header.lsn, std::move(topic)});
  });
  DecodeEntries(body, header.moment(), topics);
}

bool Replay::Record(const RecordHeader& header, std::string_view body, uint64_t segment) {
  if (header.generation != generation_) {
    generation_ = header.generation;
    lanes_.clear();
  }
  lane_number_ = header.lane;
  const auto [lane, is_new] = lanes_.try_emplace(header.lane);
  lane_ = &lane->second;
  if (is_new) lane_->reserve(shards_.front()->tier().topics().size());
  lsn_ = header.lsn;
  moment_ = header.moment();
  segment_ = segment;
  return DecodeEntries(body, moment_, *this);
}

void Replay::Finish() {
  for (const auto& shard : shards_) EraseDropped(*shard);
}

void Replay::EraseDropped(ShardStore& shard) {
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  while (shard.EraseDropped(kAll, kAll)) {
  }
}

const Replay::LaneTopic* Replay::CurrentOf(uint32_t number) const {
  const auto known = lane_->find(number);
  return known != lane_->end() && IsCurrent(known->second) ? &known->second : nullptr;
}

const Replay::LaneTopic* Replay::TopicOf(uint32_t number) {
  const LaneTopic* current = CurrentOf(number);
  if (current != nullptr || noted_.empty()) return current;
  const auto found = noted_.find({generation_, lane_number_, number});
  if (found == noted_.end()) return nullptr;
  const auto next = std::ranges::upper_bound(found->second, lsn_, {}, &Noted::lsn);
  // If the number is dropped first, its topic is one that another lane has dropped already. What is defined later is
  // another one.
  if (next == found->second.end() || !next->topic) return nullptr;
  OnTopic(number, *next->topic);
  return CurrentOf(number);
}

Replay::Job Replay::Find(uint32_t number, Uid uid) {
  const LaneTopic* topic = TopicOf(number);
  if (topic == nullptr) return {};
  const Placement placement{static_cast<uint32_t>(shards_.size())};
  const uint32_t at = placement.ShardOf(topic->home, SlotOf(uid));
  ShardStore& shard = *shards_[at];
  return {&shard, topic->numbers[at], shard.tier().FindUid(topic->numbers[at], uid)};
}

void Replay::OnPut(const PutEntry& put) {
  if (!damaged_.empty()) damaged_.erase(put.uid);
  const Job job = Find(put.topic, put.uid);
  if (job.shard == nullptr) return;
  if (job.index != 0) job.shard->EraseJob(job.index);
  HotTier& tier = job.shard->tier();
  const Index index = tier.Create(job.topic, put.uid, put.body.size());
  TOCSIN_CHECK(index != 0);
  std::memcpy(tier.BodyAt(index), put.body.data(), put.body.size());
  TOCSIN_CHECK(tier.Link(index));
  tier.AddUse(job.topic, 1, CountedBytes(put.body));
  HotJob& hot = tier.at(index);
  hot.state = put.state;
  SetDue(hot, {put.timeline, put.due});
  hot.attempts = static_cast<uint16_t>(put.attempts);
  hot.max_attempts = static_cast<uint16_t>(put.max_attempts);
  SetTrigger(hot, put.trigger);
  if (put.fired) hot.flags |= kFiredFlag;
  if (put.details != nullptr) tier.ChangeDetails(index, [&](Details& details) { details = *put.details; });
  job.shard->PutIn(index, segment_);
  job.shard->RestoreUids(put.uid);
}

void Replay::OnMove(const MoveEntry& move) {
  const Job job = Find(move.topic, move.uid);
  if (job.index == 0) return;
  HotTier& tier = job.shard->tier();
  HotJob& hot = tier.at(job.index);
  hot.state = move.state;
  SetDue(hot, {move.timeline, move.due});
  hot.attempts = static_cast<uint16_t>(move.attempts);
  if (move.fired) hot.flags |= kFiredFlag;
  if (move.either) SetTrigger(hot, Trigger::kEither);
  const bool failed = move.last_attempt != Time{};
  if (failed || !move.reason.empty() || tier.DetailsOf(job.index) != nullptr) {
    tier.ChangeDetails(job.index, [&](Details& details) {
      details.reason = move.reason;
      if (failed) details.last_attempt = move.last_attempt;
      details.ended = move.state == State::kDead ? moment_.steady : Time{};
    });
  }
}

void Replay::OnCount(const CountEntry& count) {
  const Job job = Find(count.topic, count.uid);
  if (job.index == 0) return;
  job.shard->tier().ChangeDetails(job.index, [&](Details& details) {
    details.events.Insert(count.event);
    details.count_left = count.left;
  });
}

void Replay::OnEnd(const EndEntry& end) {
  if (!damaged_.empty()) damaged_.erase(end.uid);
  const Job job = Find(end.topic, end.uid);
  if (job.index == 0) return;
  HotTier& tier = job.shard->tier();
  if (end.retention == Millis(0)) return job.shard->EraseJob(job.index);
  HotJob& hot = tier.at(job.index);
  tier.ChangeDetails(job.index, [&](Details& details) {
    details.Finish(hot.due(), hot.timeline(), moment_.steady);
    if (end.last_attempt != Time{}) details.last_attempt = end.last_attempt;
  });
  hot.state = end.how == EntryType::kDone ? State::kDone : State::kCancelled;
  SetDue(hot, {Timeline::kSteady, moment_.steady + end.retention});
}

void Replay::OnTopic(uint32_t number, const Topic& topic) {
  // Every prologue names every topic, nearly always as the one before.
  const LaneTopic* const current = CurrentOf(number);
  if (current != nullptr && shards_.front()->tier().topic(current->numbers.front()).settings == topic) return;
  LaneTopic& known = (*lane_)[number];
  known.name = topic.name;
  known.home = Placement{static_cast<uint32_t>(shards_.size())}.HomeOf(topic.name);
  known.numbers.clear();
  for (const auto& shard : shards_) {
    // Lanes write a change one after the other: the newest settings hold, whichever lane wrote last.
    const TopicNumber there = FindTopic(shard->tier(), topic.name, number);
    // Nearly always the lane before, or the same one in the last generation, has named them.
    const auto changes = [&](const Topic& stored) { return stored.version <= topic.version && stored != topic; };
    const bool newer = there == kNoTopic || changes(shard->tier().topic(there).settings);
    known.numbers.push_back(newer ? shard->EnsureTopic(topic) : there);
  }
  const TopicNumber first = known.numbers.front();
  if (lives_.size() <= first) lives_.resize(first + 1);
  known.life = lives_[first];
}

void Replay::OnDropTopic(uint32_t number) {
  const LaneTopic* topic = CurrentOf(number);
  if (topic == nullptr) return;  // another lane's drop came first
  // Other lanes may have numbers for it until their own drop comes: they are not current any more.
  ++lives_[topic->numbers.front()];
  for (const auto& shard : shards_) {
    const HotTier& tier = shard->tier();
    const TopicNumber there = tier.FindTopic(topic->name);
    if (there == kNoTopic) continue;
    shard->RemoveTopic(there);
    // A walk passes all jobs: one for each dropped topic would make the start slow.
    if (tier.dropped_jobs() > tier.end() / 2) EraseDropped(*shard);
  }
}

void Replay::OnUids(Uid used) {
  for (const auto& shard : shards_) shard->RestoreUids(used);
}

}  // namespace tocsin::journal
