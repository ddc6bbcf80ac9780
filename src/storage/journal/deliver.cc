// ShardStore: deliveries and their ends.
#include "base/check.h"
#include "storage/journal/shard_store.h"

namespace tocsin::journal {
namespace {

/// What a claim makes ready first, where Advance has not yet: enough for any batch.
constexpr size_t kClaimBudget = 20'000;
/// A claim hands over no more bytes than this, but always one job: an answer has to fit into memory.
constexpr size_t kClaimBytes = 16 << 20;

}  // namespace

void ShardStore::Claim(std::string_view name, size_t max, Millis lease, Moment now, Done<JobBatch> done) {
  uint16_t number = kNoTopic;
  if (!Ready(name, number, done)) return;
  tier_.MakeDueReady(now, kClaimBudget, [this](Index index) { EraseJob(index); });
  TopicState& topic = tier_.topic(number);
  std::vector<Index> claimed;
  if (!topic.settings.paused) {
    claimed.reserve(std::min<size_t>(max, topic.figures.ready));
    Index at = topic.ready.front();
    size_t bytes = 0;
    while (at != 0 && claimed.size() < max && bytes < kClaimBytes) {
      claimed.push_back(at);
      bytes += tier_.at(at).body_size;
      at = tier_.at(at).next;
      if (at != 0) __builtin_prefetch(tier_.BodyAt(tier_.at(at)));
    }
  }
  const Time deadline = now.steady + (lease > Millis(0) ? lease : topic.settings.lease);
  JobBatch batch = ViewAll(claimed, now);
  batch.more = !claimed.empty() && claimed.size() < max && claimed.size() < topic.figures.ready;
  for (size_t i = 0; i < claimed.size(); ++i) {
    const Index index = claimed[i];
    tier_.Detach(index);
    const uint32_t made = tier_.MakeLease(index, ++fence_, deadline);
    TOCSIN_CHECK(made != 0);
    Entry& entry = tier_.at(index);
    entry.flags |= kFiredFlag;
    JobView& view = batch.jobs[i];
    view.state = State::kLeased;
    view.attempt = entry.attempts + 1U;
    view.token = {SlotOf(entry.seq), made, fence_};
    view.lease_deadline = ShowAsUtc(deadline, Timeline::kSteady, now);
  }
  topic.figures.delivered += claimed.size();
  // Whoever came away empty-handed, from a paused topic too, waits for the next announcement.
  if (topic.ready.empty() || topic.settings.paused) topic.announced = false;
  done(std::move(batch));
}

void ShardStore::Settle(std::string_view name, std::span<const Settlement> settlements, Moment now,
                        Done<std::vector<SettleOutcome>> done) {
  uint16_t topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  lane_->Begin(now);
  std::vector<SettleOutcome> outcomes;
  outcomes.reserve(settlements.size());
  for (const Settlement& settlement : settlements) outcomes.push_back(SettleOne(topic, settlement, now));
  lane_->Append();
  lane_->Reply(std::move(done), std::move(outcomes));
}

SettleOutcome ShardStore::SettleOne(uint16_t topic, const Settlement& settlement, Moment now) {
  const uint32_t lease = tier_.LeaseOf(settlement.token, topic);
  if (lease == 0) return SettleOutcome::kStale;
  const Index index = tier_.lease(lease).entry;
  TopicState& state = tier_.topic(topic);
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
      // Nothing of the delivery was stored, so there is nothing to write.
      tier_.Detach(index);
      tier_.Schedule(index);
      return SettleOutcome::kOk;
  }
  return SettleOutcome::kStale;
}

bool ShardStore::FailAttempt(Index index, const Settlement& how, Moment now) {
  Entry& entry = tier_.at(index);
  TopicState& topic = tier_.topic(entry.topic);
  ++entry.attempts;
  if (!how.reason.empty() || tier_.DetailsOf(index) != nullptr) tier_.MakeDetails(index).reason = how.reason;
  const bool dead = how.kind == SettleKind::kBury || entry.attempts >= entry.max_attempts;
  if (dead) {
    ++topic.figures.died;
  } else {
    const Millis rest = how.delay.value_or(BackOff(topic.settings, entry.attempts, entry.seq));
    SetDue(entry, {Timeline::kSteady, now.steady + rest});
  }
  Move(index, dead ? State::kDead : State::kScheduled, now);
  return dead;
}

}  // namespace tocsin::journal
