// ShardStore: claims and settlements.
#include "base/result.h"
#include "storage/journal/shard_store.h"

namespace tocsin::journal {
namespace {

/// How many due jobs a claim makes ready first, if Advance has not: enough for any batch.
constexpr size_t kClaimBudget = 20'000;
/// A claim hands over at most this many bytes, but always one job: an answer has to fit into memory.
constexpr size_t kClaimBytes = 16 << 20;
/// A claim passes over at most this many jobs that are not due any more because the clock was set back.
constexpr size_t kEarlyMax = 10'000;

}  // namespace

void ShardStore::Claim(std::string_view name, ClaimMax max, Millis lease, Moment now, Done<JobBatch> done) {
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
      bytes += hot.body_size;
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
  for (size_t i = 0; i < claimed.size(); ++i) {
    const Index index = claimed[i];
    tier_.Detach(index);
    const uint32_t made = tier_.MakeLease(index, ++fence_, deadline);
    TOCSIN_CHECK(made != 0);
    HotJob& hot = tier_.at(index);
    hot.flags |= kFiredFlag;
    JobView& view = batch.jobs[i];
    view.state = State::kLeased;
    view.attempt = hot.attempts + 1U;
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
      tier_.Detach(index);
      return FailAttempt(index, settlement, now) ? SettleOutcome::kDead : SettleOutcome::kOk;
    case SettleKind::kExtend:
      tier_.ExtendLease(lease, now.steady + (settlement.lease > Millis(0) ? settlement.lease : state.settings.lease));
      return SettleOutcome::kOk;
    case SettleKind::kRelease:
      // The journal does not hold leases, so there is nothing to write.
      tier_.Detach(index);
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
  ++hot.attempts;
  // Nacks and expired leases go on when memory is short, so the reason is dropped: every job could be given one.
  const std::string_view reason = node_.MemoryLeft(how.reason.size()) ? how.reason : std::string_view();
  if (!reason.empty() || tier_.DetailsOf(index) != nullptr) {
    tier_.ChangeDetails(index, [&](Details& details) { details.reason = reason; });
  }
  const bool dead = how.kind == SettleKind::kBury || hot.attempts >= hot.max_attempts;
  if (dead) {
    ++topic.figures.died;
  } else {
    const Millis rest = how.delay.value_or(BackOff(topic.settings, hot.attempts, hot.uid));
    SetDue(hot, {Timeline::kSteady, now.steady + rest});
  }
  Move(index, dead ? State::kDead : State::kScheduled, now);
  return dead;
}

}  // namespace tocsin::journal
