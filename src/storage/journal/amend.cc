// ShardStore: changes of stored jobs, each with a definite answer.
#include "base/hash.h"
#include "storage/journal/shard_store.h"

namespace tocsin::journal {

void ShardStore::Amend(std::string_view name, std::span<const Amendment> amendments, Moment now,
                       Done<std::vector<Amended>> done) {
  uint16_t topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  lane_->Begin(now);
  std::vector<Amended> outcomes;
  outcomes.reserve(amendments.size());
  for (const Amendment& amendment : amendments) outcomes.push_back(AmendOne(topic, amendment, now));
  lane_->Append();
  lane_->Reply(std::move(done), std::move(outcomes));
}

Amended ShardStore::AmendOne(uint16_t topic, const Amendment& amendment, Moment now) {
  const Index index = tier_.Find(topic, amendment.job);
  if (index == 0) return {AmendOutcome::kUnknown, {}};
  Entry& entry = tier_.at(index);
  if (entry.state == State::kLeased) return {AmendOutcome::kInFlight, {}};
  if (entry.state == State::kCancelled && amendment.kind == AmendKind::kCancel) return {AmendOutcome::kDone, {}};
  if (entry.state != State::kScheduled) return {AmendOutcome::kFinished, {}};
  // On a full disk the room that is left is for what ends jobs.
  if (amendment.kind != AmendKind::kCancel && !lane_->journal().has_room()) return {AmendOutcome::kStorageFull, {}};
  switch (amendment.kind) {
    case AmendKind::kCancel:
      ++tier_.topic(topic).figures.cancelled;
      End(index, EntryType::kCancelled, now);
      return {AmendOutcome::kDone, {}};
    case AmendKind::kReschedule:
      if (amendment.payload) {
        const AmendOutcome outcome = ReplacePayload(index, *amendment.payload, now);
        if (outcome != AmendOutcome::kDone) return {outcome, {}};
      }
      tier_.Detach(index);
      if (entry.due() <= now.On(entry.timeline())) entry.flags |= kFiredFlag;
      SetDue(entry, DueOf(amendment.timeline, amendment.delay, amendment.due, now));
      if (entry.trigger() == Trigger::kCount) SetTrigger(entry, Trigger::kEither);
      tier_.Schedule(index);
      // A put holds the whole job, so that a crash keeps both changes or neither.
      if (amendment.payload) {
        WritePut(lane_->Out(), index, now);
      } else {
        WriteMove(lane_->Out(), index, now);
      }
      return {AmendOutcome::kDone, ShowAsUtc(entry.due(), entry.timeline(), now)};
    case AmendKind::kPayload: {
      const AmendOutcome outcome = ReplacePayload(index, amendment.payload.value_or(""), now);
      if (outcome == AmendOutcome::kDone) WritePut(lane_->Out(), index, now);
      return {outcome, {}};
    }
    case AmendKind::kFire:
      tier_.Detach(index);
      entry.flags |= kFiredFlag;
      SetDue(entry, {Timeline::kSteady, now.steady});
      Move(index, State::kScheduled, now);
      return {AmendOutcome::kDone, now.utc};
  }
  return {AmendOutcome::kUnknown, {}};
}

AmendOutcome ShardStore::ReplacePayload(Index index, std::string_view payload, Moment now) {
  const Entry& entry = tier_.at(index);
  const std::string body = WithPayload(tier_.BodyOf(entry), payload);
  if (body.size() > lane_->journal().segment_bytes() / 4) return AmendOutcome::kOverCapacity;
  const size_t grown = body.size() > entry.body_size ? body.size() - entry.body_size : 0;
  if (grown > 0) {
    const SubmitOutcome refusal = Refusal(grown);
    if (refusal == SubmitOutcome::kStorageFull) return AmendOutcome::kStorageFull;
    if (refusal == SubmitOutcome::kOverloaded) return AmendOutcome::kOverloaded;
    if (refusal != SubmitOutcome::kAccepted || !tier_.TakeRoom(entry.topic, 0, grown)) {
      return AmendOutcome::kOverCapacity;
    }
  }
  ForgetPut(index);
  if (tier_.ReplaceBody(index, body)) return AmendOutcome::kDone;
  tier_.GiveBack(entry.topic, 0, grown);
  WritePut(lane_->Out(), index, now);
  return AmendOutcome::kOverCapacity;
}

void ShardStore::Count(std::string_view name, std::span<const CountEvent> events, Moment now,
                       Done<std::vector<Counted>> done) {
  uint16_t topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  lane_->Begin(now);
  std::vector<Counted> outcomes;
  outcomes.reserve(events.size());
  for (const CountEvent& event : events) outcomes.push_back(CountOne(topic, event, now));
  lane_->Append();
  lane_->Reply(std::move(done), std::move(outcomes));
}

Counted ShardStore::CountOne(uint16_t topic, const CountEvent& event, Moment now) {
  const Index index = tier_.Find(topic, event.job);
  if (index == 0) return {CountOutcome::kUnknown, 0};
  Entry& entry = tier_.at(index);
  if (entry.state != State::kScheduled && entry.state != State::kLeased) return {CountOutcome::kFinished, 0};
  const bool fired = entry.trigger() == Trigger::kTime || entry.fired() || entry.due() <= now.On(entry.timeline());
  if (entry.state == State::kLeased || fired) return {CountOutcome::kNotCounted, 0};
  if (!lane_->journal().has_room()) return {CountOutcome::kOverloaded, 0};
  Details& details = tier_.MakeDetails(index);
  const uint64_t hash = Hash64(event.event);
  if (!details.events.insert(hash).second) return {CountOutcome::kRepeated, details.count_left};
  details.count_left -= std::min(details.count_left, event.by);
  // An event that fires is one change: the count and the move are in one record.
  std::string& out = lane_->Out();
  EncodeCount(out, {topic, entry.seq, hash, details.count_left});
  if (details.count_left > 0) return {CountOutcome::kCounted, details.count_left};
  tier_.Detach(index);
  entry.flags |= kFiredFlag;
  SetDue(entry, {Timeline::kSteady, now.steady});
  tier_.Schedule(index);
  WriteMove(out, index, now);
  return {CountOutcome::kFired, 0};
}

}  // namespace tocsin::journal
