// ShardStore: new jobs.
#include "base/episode.h"
#include "base/result.h"
#include "storage/journal/shard_store.h"

namespace tocsin::journal {
namespace {

/// Bytes appended and not yet written. Beyond this submits answer kOverloaded, so that memory stays bounded.
constexpr size_t kPendingMax = 64 << 20;

}  // namespace

void ShardStore::Submit(std::string_view name, std::span<const NewJob> jobs, Moment now,
                        Done<std::vector<Submitted>> done) {
  ApplyAll<&ShardStore::SubmitOne>(name, jobs, now, std::move(done));
  ReportMemory();
}

SubmitOutcome ShardStore::Refusal(size_t bytes) const {
  // A batch, the job that makes it too large, and the prologue before it have to fit into a segment.
  if (bytes > lane_->journal().segment_bytes() / 4) return SubmitOutcome::kOverCapacity;
  if (!node_.MemoryLeft(bytes)) {
    node_.NoteMemoryFull(lane_->journal().clock().IoNow());
    return SubmitOutcome::kOverCapacity;
  }
  if (!lane_->journal().has_room()) return SubmitOutcome::kStorageFull;
  if (lane_->journal().pending_bytes() > kPendingMax) {
    NoteOverload("jobs come faster than the disk takes them");
    return SubmitOutcome::kOverloaded;
  }
  return SubmitOutcome::kAccepted;
}

/// The answer if the id is stored already and stays as it is; nothing if the job is to be replaced.
std::optional<SubmitOutcome> ShardStore::SubmitAgain(const NewJob& job, Index stored) const {
  const HotJob& hot = tier_.at(stored);
  if (job.on_conflict == OnConflict::kReplace) {
    if (hot.state == State::kLeased) return SubmitOutcome::kInFlight;
    return std::nullopt;
  }
  if (job.on_conflict == OnConflict::kKeep) return SubmitOutcome::kDuplicate;
  const BodyId id = DecodeId(tier_.BodyOf(hot));
  // A job with a server id has no fingerprint. Its submitter did not choose that id, so this is another job.
  const bool same = !id.own_id.empty() && id.fingerprint == Fingerprint(job);
  return same ? SubmitOutcome::kDuplicate : SubmitOutcome::kConflict;
}

Submitted ShardStore::SubmitOne(TopicNumber topic, const NewJob& job, Moment now) {
  const auto answer = [&](SubmitOutcome outcome, Index index) {
    return Submitted{outcome, tier_.at(index).uid, ShownDue(index, now)};
  };
  const Index stored = job.id.empty() ? 0 : tier_.Find(topic, {job.id, job.key});
  if (stored != 0) {
    if (const auto outcome = SubmitAgain(job, stored)) return answer(*outcome, stored);
  }
  const size_t bytes = CountedBytes(job);
  const size_t past = job.restored ? sizeof(Details) + job.restored->reason.size() : 0;
  if (const SubmitOutcome refusal = Refusal(bytes + past); refusal != SubmitOutcome::kAccepted) return {refusal, 0, {}};
  // The job that is replaced makes room for the new one.
  const bool swaps = stored != 0 && (tier_.at(stored).flags & kAdmitted) != 0;
  const size_t freed = swaps ? std::min(bytes, CountedBytes(tier_.BodyOf(tier_.at(stored)))) : 0;
  if (!tier_.TakeRoom(topic, swaps ? 0 : 1, bytes - freed)) return {SubmitOutcome::kOverCapacity, 0, {}};
  const Index index = MakeJob(topic, job, now);
  if (index == 0) {
    tier_.GiveBack(topic, swaps ? 0 : 1, bytes - freed);
    return {SubmitOutcome::kOverCapacity, 0, {}};
  }
  if (swaps) tier_.AddUse(topic, 1, freed);

  TopicFigures& figures = tier_.topic(topic).figures;
  // The end of the old job and the put of the new one are in one record: a crash keeps both or neither.
  std::string& out = lane_->Out();
  if (stored != 0) {
    if (swaps) ++figures.cancelled;
    figures.worst.Forget(tier_.at(stored).uid);
    EncodeEnd(out, {topic, tier_.at(stored).uid, EntryType::kPurged}, now);
    EraseJob(stored);
  }
  const bool dead = job.restored != nullptr && job.restored->dead;
  dead ? tier_.MakeDead(index) : tier_.Schedule(index);
  WritePut(out, index, now);
  ++figures.accepted;
  return answer(SubmitOutcome::kAccepted, index);
}

Index ShardStore::MakeJob(TopicNumber topic, const NewJob& job, Moment now) {
  const Topic& settings = tier_.topic(topic).settings;
  last_uid_ = uids_.Next(now.steady, job.slot);
  const size_t size = BodySize(job);
  const Index index = tier_.Create(topic, last_uid_, size);
  if (index == 0) return 0;
  EncodeBody(job, tier_.BodyAt(index));
  if (!tier_.Link(index)) {
    tier_.Discard(index);
    return 0;
  }
  HotJob& hot = tier_.at(index);
  hot.max_attempts = static_cast<uint16_t>(job.max_attempts != 0 ? job.max_attempts : settings.max_attempts);
  SetTrigger(hot, job.trigger);
  if (job.trigger != Trigger::kTime) {
    tier_.ChangeDetails(
        index, [&](Details& details) { details.count_left = job.count != 0 ? job.count : settings.count_limit; });
  }
  const DueTime due = DueOf(job.timeline, job.delay, job.due, now);
  SetDue(hot, job.trigger == Trigger::kCount ? DueTime{due.timeline, kNever} : due);
  if (job.restored) {
    if (due.timeline == Timeline::kUtc && job.trigger != Trigger::kCount) SetDue(hot, {due.timeline, job.due});
    Restore(index, *job.restored, now);
  }
  return index;
}

void ShardStore::Restore(Index index, const Restored& past, Moment now) {
  // Not before 1970: the journal would not read it again.
  const auto steady = [now](Time utc) { return std::max(Time{}, utc == Time{} ? utc : utc - (now.utc - now.steady)); };
  tier_.at(index).attempts = static_cast<uint16_t>(past.attempts);
  if (!past.dead && past.reason.empty() && past.last_attempt == Time{}) return;
  tier_.ChangeDetails(index, [&](Details& details) {
    details.reason = past.reason;
    details.last_attempt = steady(past.last_attempt);
    if (past.dead) details.ended = past.died == Time{} ? now.steady : steady(past.died);
  });
}

}  // namespace tocsin::journal
