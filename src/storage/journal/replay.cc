#include "storage/journal/replay.h"

#include "base/result.h"
#include "model/placement.h"

namespace tocsin::journal {
namespace {

constexpr uint32_t kLaneTopicsMax = 200'000;  // no program writes a higher number

template <class F>
struct OnlyTopics final : EntryVisitor {
  explicit OnlyTopics(F visit) : on_topic(std::move(visit)) {}
  void OnTopic(uint32_t number, const Topic& topic) override { on_topic(number, topic); }
  F on_topic;
};

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
  OnlyTopics topics([&](uint32_t number, const Topic& topic) {
    noted_[{header.generation, header.lane, number}].push_back({header.lsn, topic});
  });
  DecodeEntries(body, header.moment(), topics);
}

bool Replay::Record(const RecordHeader& header, std::string_view body, uint64_t segment) {
  if (header.generation != generation_) {
    generation_ = header.generation;
    lanes_.clear();
  }
  lane_number_ = header.lane;
  lane_ = &lanes_[header.lane];
  lsn_ = header.lsn;
  moment_ = header.moment();
  segment_ = segment;
  return DecodeEntries(body, moment_, *this);
}

const Replay::LaneTopic* Replay::TopicOf(uint32_t number) {
  if (number < lane_->size() && IsCurrent((*lane_)[number])) return &(*lane_)[number];
  const auto found = noted_.find({generation_, lane_number_, number});
  if (found == noted_.end()) return nullptr;
  const auto next = std::ranges::upper_bound(found->second, lsn_, {}, &Noted::lsn);
  if (next == found->second.end()) return nullptr;
  OnTopic(number, next->topic);
  return &(*lane_)[number];
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
  if (!move.reason.empty() || tier.DetailsOf(job.index) != nullptr) {
    tier.ChangeDetails(job.index, [&](Details& details) { details.reason = move.reason; });
  }
}

void Replay::OnCount(const CountEntry& count) {
  const Job job = Find(count.topic, count.uid);
  if (job.index == 0) return;
  job.shard->tier().ChangeDetails(job.index, [&](Details& details) {
    details.events.insert(count.event);
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
  tier.ChangeDetails(job.index, [&](Details& details) { details.Finish(hot.due(), hot.timeline()); });
  hot.state = end.how == EntryType::kDone ? State::kDone : State::kCancelled;
  SetDue(hot, {Timeline::kSteady, moment_.steady + end.retention});
}

void Replay::OnTopic(uint32_t number, const Topic& topic) {
  if (number >= kLaneTopicsMax) return;
  if (lane_->size() <= number) lane_->resize(number + 1);
  LaneTopic& known = (*lane_)[number];
  // Every prologue names every topic, nearly always as the one before.
  if (IsCurrent(known) && shards_.front()->tier().topic(known.numbers.front()).settings == topic) return;
  known.name = topic.name;
  known.home = Placement{static_cast<uint32_t>(shards_.size())}.HomeOf(topic.name);
  known.numbers.clear();
  for (const auto& shard : shards_) {
    // Lanes write a change one after the other: the newest settings hold, whichever lane wrote last.
    const TopicNumber there = shard->tier().FindTopic(topic.name);
    const bool newer = there == kNoTopic || shard->tier().topic(there).settings.version <= topic.version;
    known.numbers.push_back(newer ? shard->EnsureTopic(topic) : there);
  }
  const TopicNumber first = known.numbers.front();
  if (lives_.size() <= first) lives_.resize(first + 1);
  known.life = lives_[first];
}

void Replay::OnDropTopic(uint32_t number) {
  const LaneTopic* topic = TopicOf(number);
  if (topic == nullptr) return;  // another lane's drop came first
  // Other lanes may have numbers for it until their own drop comes: they are not current any more.
  ++lives_[topic->numbers.front()];
  for (const auto& shard : shards_) {
    const TopicNumber there = shard->tier().FindTopic(topic->name);
    if (there != kNoTopic) shard->RemoveTopic(there);
  }
}

void Replay::OnUids(Uid used) {
  for (const auto& shard : shards_) shard->RestoreUids(used);
}

}  // namespace tocsin::journal
