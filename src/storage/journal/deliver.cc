// ShardStore: claims and settlements.
#include "base/result.h"
#include "storage/journal/shard_store.h"

namespace tocsin::journal {
namespace {

/// How many due jobs a claim makes ready first, if Advance has not: enough for any batch.
constexpr size_t kClaimBudget = 20'000;
/// A claim passes over at most this many jobs that are not due any more because the clock was set back.
constexpr size_t kEarlyMax = 10'000;

}  // namespace

void ShardStore::Claim(std::string_view name, JobMax max, Millis lease, Moment now, Done<JobBatch> done) {
  TopicNumber number = kNoTopic;
  if (!Ready(name, number, done)) return;
  tier_.MakeDueReady(now, kClaimBudget, [this](Index index) { EraseJob(index); });
  TopicState& topic = tier_.topic(number);
  std::vector<Index> claimed;
  bool cramped = false;
  size_t early = 0;
  if (!topic.settings.paused && max.jobs > 0) {
    claimed.reserve(std::min<size_t>(max.jobs, topic.figures.ready));
    size_t bytes = 0;
    tier_.ForEachReady(topic, [&](Index at) {
      const HotJob& hot = tier_.at(at);
      if (HotTier::IsEarly(hot, now)) return ++early < kEarlyMax;
      bytes += ViewBytes(at);
      cramped = max.room != nullptr && !max.room->Reach(claimed.size() + 1, bytes);
      if (cramped) return false;
      claimed.push_back(at);
      if (hot.next != 0) __builtin_prefetch(tier_.BodyAt(tier_.at(hot.next)));
      return claimed.size() < max.jobs && bytes < kClaimBytes;
    });
  }
  const Time deadline = now.steady + (lease > Millis(0) ? lease : topic.settings.lease);
  JobBatch batch = ViewAll(claimed, now);
  batch.more = !claimed.empty() && claimed.size() < max.jobs && claimed.size() < topic.figures.ready;
  batch.no_room = claimed.empty() && cramped;
  // The jobs are delivered also if there is no memory for the name.
  const uint16_t holder = tier_.Hold(max.holder, claimed.size(), node_.MemoryLeft(kHolderBytesMax));
  for (size_t i = 0; i < claimed.size(); ++i) {
    const Index index = claimed[i];
    tier_.Detach(index);
    const uint32_t made = tier_.MakeLease(index, ++fence_, holder, now.steady, deadline);
    TOCSIN_CHECK(made != 0);
    HotJob& hot = tier_.at(index);
    hot.flags |= kFiredFlag;
    JobView& view = batch.jobs[i];
    view.state = State::kLeased;
    view.attempt = hot.attempts + 1U;
    view.last_attempt = now.utc;
    view.token = {SlotOf(hot.uid), made, fence_};
    view.lease_deadline = ShowAsUtc(deadline, Timeline::kSteady, now);
  }
  topic.figures.delivered += claimed.size();
  // A claimer that got nothing, also from a paused topic, waits for the next announcement.
  if (topic.ready.empty() || topic.settings.paused) topic.announced = false;
  if (claimed.empty() && early > 0) {  // some may be due again before they are put back: ask again after an Advance
    topic.announced = false;
    tier_.Announce(number);
  }
  done(std::move(batch));
}

void ShardStore::Settle(std::string_view name, std::span<const Settlement> settlements, Moment now,
                        Done<std::vector<SettleOutcome>> done) {
  ApplyAll<&ShardStore::SettleOne>(name, settlements, now, std::move(done));
}

SettleOutcome ShardStore::SettleOne(TopicNumber topic, const Settlement& settlement, Moment now) {
  const uint32_t lease = tier_.LeaseOf(settlement.token, topic);
  if (lease == 0) return SettleOutcome::kStale;
  const Index index = tier_.lease(lease).job;
  TopicState& state = tier_.topic(topic);
  if (!HasRoom(settlement.kind)) return SettleOutcome::kOverloaded;
  switch (settlement.kind) {
    case SettleKind::kAck:
      ++state.figures.acked;
      End(index, EntryType::kDone, now);
      return SettleOutcome::kOk;
    case SettleKind::kNack:
    case SettleKind::kBury:
      ++state.figures.nacked;
      return FailAttempt(index, settlement, now) ? SettleOutcome::kDead : SettleOutcome::kOk;
    case SettleKind::kExtend:
      tier_.ExtendLease(lease, now.steady + (settlement.lease > Millis(0) ? settlement.lease : state.settings.lease));
      return SettleOutcome::kOk;
    case SettleKind::kRelease:
      // The journal does not hold leases, so there is nothing to write. It need not know the delay: the job is due.
      tier_.Detach(index);
      if (settlement.delay) SetDue(tier_.at(index), {Timeline::kSteady, now.steady + *settlement.delay});
      tier_.Schedule(index);
      return SettleOutcome::kOk;
  }
  return SettleOutcome::kStale;
}

bool ShardStore::HasRoom(SettleKind kind) {
  switch (kind) {
    case SettleKind::kAck:
      return lane_->journal().has_room_for_ends();
    case SettleKind::kNack:
    case SettleKind::kBury:
      return lane_->journal().has_room_for_changes();
    case SettleKind::kExtend:
    case SettleKind::kRelease:
      break;
  }
  return true;  // leases are not written
}

bool ShardStore::FailAttempt(Index index, const Settlement& how, Moment now) {
  HotJob& hot = tier_.at(index);
  TopicState& topic = tier_.topic(hot.topic);
  const Time begun = tier_.LeaseOf(index)->begun();
  tier_.Detach(index);
  ++hot.attempts;
  const bool dead = how.kind == SettleKind::kBury || hot.attempts >= hot.max_attempts;
  // Nacks and expired leases go on when memory is short, so the reason and the times are dropped: every job could be
  // given some.
  const bool room = node_.MemoryLeft(how.reason.size());
  if (room || tier_.DetailsOf(index) != nullptr) {
    tier_.ChangeDetails(index, [&](Details& details) {
      details.reason = room ? how.reason : std::string_view();
      details.last_attempt = begun;
      details.ended = dead ? now.steady : Time{};
    });
  }
  const Millis rest = dead ? Millis(0) : how.delay.value_or(BackOff(topic.settings, hot.attempts, hot.uid));
  topic.figures.worst.Take(
      {.attempts = hot.attempts, .uid = hot.uid, .at = now.steady, .until = now.steady + rest + topic.settings.lease},
      dead);
  if (dead) {
    ++topic.figures.died;
    tier_.MakeDead(index);
  } else {
    SetDue(hot, {Timeline::kSteady, now.steady + rest});
    tier_.Schedule(index);
  }
  WriteMove(lane_->Out(), index, now, tier_.DetailsOf(index) == nullptr ? Time{} : begun);
  return dead;
}

}  // namespace tocsin::journal
