// ShardStore: changes of stored jobs, each with a definite answer.
#include "base/hash.h"
#include "storage/journal/shard_store.h"

namespace tocsin::journal {

void ShardStore::Amend(std::string_view name, std::span<const Amendment> amendments, Moment now,
                       Done<std::vector<Amended>> done) {
  ApplyAll<&ShardStore::AmendOne>(name, amendments, now, std::move(done));
}

Amended ShardStore::AmendOne(TopicNumber topic, const Amendment& amendment, Moment now) {
  const Index index = tier_.Find(topic, amendment.job);
  if (index == 0) return {AmendOutcome::kUnknown, {}};
  HotJob& hot = tier_.at(index);
  if (const auto outcome = UnchangedOutcome(amendment.kind, hot.state)) return {*outcome, {}};
  if (amendment.seen && !IsAs(*amendment.seen, hot.state, ShownAttempt(hot), ShownDue(index, now), hot.timeline())) {
    return {AmendOutcome::kChanged, {}};
  }
  if (!HasRoom(amendment.kind)) return {AmendOutcome::kStorageFull, {}};
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
      if (hot.due() <= now.On(hot.timeline())) hot.flags |= kFiredFlag;
      SetDue(hot, DueOf(amendment.timeline, amendment.delay, amendment.due, now));
      if (hot.trigger() == Trigger::kCount) SetTrigger(hot, Trigger::kEither);
      tier_.Schedule(index);
      // A put holds the whole job, so that a crash keeps both changes or neither.
      amendment.payload ? WritePut(lane_->Out(), index, now) : WriteMove(lane_->Out(), index, now);
      return {AmendOutcome::kDone, ShowAsUtc(hot.due(), hot.timeline(), now)};
    case AmendKind::kPayload: {
      const AmendOutcome outcome = ReplacePayload(index, amendment.payload.value_or(""), now);
      if (outcome == AmendOutcome::kDone) WritePut(lane_->Out(), index, now);
      return {outcome, {}};
    }
    case AmendKind::kFire:
      tier_.Detach(index);
      hot.flags |= kFiredFlag;
      SetDue(hot, {Timeline::kSteady, now.steady});
      Reschedule(index, now);
      return {AmendOutcome::kDone, now.utc};
    case AmendKind::kRedrive:
      Redrive(index, now);
      return {AmendOutcome::kDone, now.utc};
    case AmendKind::kRemove:
      SweepOne(index, SweepKind::kEmpty, now);
      return {AmendOutcome::kDone, {}};
    case AmendKind::kAttempts:
      ForgetPut(index);
      hot.max_attempts = static_cast<uint16_t>(amendment.max_attempts);
      WritePut(lane_->Out(), index, now);
      return {AmendOutcome::kDone, {}};
    case AmendKind::kRevoke:
      ++tier_.topic(topic).figures.expired;
      FailAttempt(index, {.kind = SettleKind::kNack, .delay = Millis(0), .reason = kRevokedReason}, now);
      return {AmendOutcome::kDone, now.utc};
  }
  return {AmendOutcome::kUnknown, {}};
}

bool ShardStore::HasRoom(AmendKind kind) {
  // On a full disk the room that is left is kept for changes that end jobs.
  const Journal& journal = lane_->journal();
  switch (kind) {
    case AmendKind::kCancel:
    case AmendKind::kRemove:
      return journal.has_room_for_ends();
    case AmendKind::kRedrive:
    case AmendKind::kRevoke:
      return journal.has_room_for_changes();
    case AmendKind::kReschedule:
    case AmendKind::kPayload:
    case AmendKind::kFire:
    case AmendKind::kAttempts:
      break;
  }
  return journal.has_room();
}

AmendOutcome ShardStore::ReplacePayload(Index index, std::string_view payload, Moment now) {
  const HotJob& hot = tier_.at(index);
  const std::string body = WithPayload(tier_.BodyOf(hot), payload);
  if (body.size() > lane_->journal().segment_bytes() / 4) return AmendOutcome::kOverCapacity;
  const size_t grown = body.size() > hot.body_size ? body.size() - hot.body_size : 0;
  if (grown > 0) {
    const SubmitOutcome refusal = Refusal(grown);
    if (refusal == SubmitOutcome::kStorageFull) return AmendOutcome::kStorageFull;
    if (refusal == SubmitOutcome::kOverloaded) return AmendOutcome::kOverloaded;
    if (refusal != SubmitOutcome::kAccepted || !tier_.TakeRoom(hot.topic, 0, grown)) {
      return AmendOutcome::kOverCapacity;
    }
  }
  ForgetPut(index);
  if (tier_.ReplaceBody(index, body)) return AmendOutcome::kDone;
  tier_.GiveBack(hot.topic, 0, grown);
  WritePut(lane_->Out(), index, now);
  return AmendOutcome::kOverCapacity;
}

void ShardStore::Count(std::string_view name, std::span<const CountEvent> events, Moment now,
                       Done<std::vector<Counted>> done) {
  ApplyAll<&ShardStore::CountOne>(name, events, now, std::move(done));
}

Counted ShardStore::CountOne(TopicNumber topic, const CountEvent& event, Moment now) {
  const Index index = tier_.Find(topic, event.job);
  if (index == 0) return {CountOutcome::kUnknown, 0};
  HotJob& hot = tier_.at(index);
  if (hot.state != State::kScheduled && hot.state != State::kLeased) return {CountOutcome::kFinished, 0};
  const bool fired = hot.trigger() == Trigger::kTime || hot.fired() || hot.due() <= now.On(hot.timeline());
  if (hot.state == State::kLeased || fired) return {CountOutcome::kNotCounted, 0};
  if (!lane_->journal().has_room()) return {CountOutcome::kOverloaded, 0};
  if (!node_.MemoryLeft(0)) {
    node_.NoteMemoryFull(lane_->journal().clock().IoNow());
    return {CountOutcome::kOverloaded, 0};
  }
  const uint64_t hash = Hash64(event.event);
  bool repeated = false;
  const Details& details = tier_.ChangeDetails(index, [&](Details& change) {
    repeated = !change.events.Insert(hash);
    if (!repeated) change.count_left -= std::min(change.count_left, event.by);
  });
  if (repeated) return {CountOutcome::kRepeated, details.count_left};
  // An event that fires is one change: the count and the move are in one record.
  std::string& out = lane_->Out();
  EncodeCount(out, {topic, hot.uid, hash, details.count_left});
  if (details.count_left > 0) return {CountOutcome::kCounted, details.count_left};
  tier_.Detach(index);
  hot.flags |= kFiredFlag;
  SetDue(hot, {Timeline::kSteady, now.steady});
  tier_.Schedule(index);
  WriteMove(out, index, now);
  return {CountOutcome::kFired, 0};
}

}  // namespace tocsin::journal
