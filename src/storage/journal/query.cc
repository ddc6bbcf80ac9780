// ShardStore: looking at jobs, and changing many at once.
#include <charconv>

#include "base/check.h"
#include "storage/journal/shard_store.h"

namespace tocsin::journal {
namespace {

/// Entries that one call looks at, at most: a listing of few jobs among many must not stall the shard.
constexpr size_t kScanMax = 100'000;
/// A page holds no more bytes than this, but always one job: an answer has to fit into memory.
constexpr size_t kPageBytes = 4 << 20;

/// Leaves `at` alone where there is no cursor.
Status ParseCursor(std::string_view cursor, Index& at) {
  if (cursor.empty()) return {};
  const auto [end, error] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), at);
  if (error == std::errc() && end == cursor.data() + cursor.size() && at != 0) return {};
  return FailField(Code::kInvalidArgument, "cursor", "'{}' is not a cursor that was given out", cursor);
}

bool Concerns(SweepKind kind, State state) {
  switch (kind) {
    case SweepKind::kRedrive:
    case SweepKind::kPurgeDead:
      return state == State::kDead;
    case SweepKind::kPurge:
      return state == State::kDead || state == State::kScheduled;
    case SweepKind::kEmpty:
      break;
  }
  return true;
}

/// Whether there can be any: most topics have no dead letters.
bool HasAny(SweepKind kind, const TopicState& topic) {
  switch (kind) {
    case SweepKind::kRedrive:
    case SweepKind::kPurgeDead:
      return topic.figures.dead > 0;
    case SweepKind::kPurge:
      return topic.figures.dead + topic.figures.scheduled > 0;
    case SweepKind::kEmpty:
      break;
  }
  return topic.entries > 0;
}

}  // namespace

Time ShardStore::ShownDue(Index index, Moment now) const {
  const Entry& entry = tier_.at(index);
  const Details* details = tier_.DetailsOf(index);
  // Of a retained job the entry's own due time is when it is forgotten.
  if (details != nullptr && details->finished) {
    return ShowAsUtc(details->finished_due, details->finished_timeline, now);
  }
  return ShowAsUtc(entry.due(), entry.timeline(), now);
}

void ShardStore::View(Index index, Moment now, char* bytes, JobView& view) const {
  const Entry& entry = tier_.at(index);
  const Details* details = tier_.DetailsOf(index);
  const std::string_view stored = tier_.BodyOf(entry);
  std::memcpy(bytes, stored.data(), stored.size());
  Body body;
  TOCSIN_CHECK(DecodeBody({bytes, stored.size()}, body));
  view.uid = entry.seq;
  view.own_id = body.own_id;
  view.key = body.key;
  view.payload = body.payload;
  if (!body.headers.empty()) TOCSIN_CHECK(DecodeHeaders(body.headers, view.headers));
  view.state = entry.state;
  view.trigger = entry.trigger();
  view.attempt = entry.attempts;
  view.max_attempts = entry.max_attempts;
  view.due = ShownDue(index, now);
  if (entry.state == State::kLeased) {
    view.lease_deadline = ShowAsUtc(FromMs(tier_.lease(entry.prev).due_ms), Timeline::kSteady, now);
  }
  if (details == nullptr) return;
  view.count_left = details->count_left;
  std::memcpy(bytes + stored.size(), details->reason.data(), details->reason.size());
  view.reason = {bytes + stored.size(), details->reason.size()};
}

JobBatch ShardStore::ViewAll(std::span<const Index> jobs, Moment now) const {
  JobBatch batch;
  batch.jobs.resize(jobs.size());
  const auto size_of = [this](Index index) {
    const Details* details = tier_.DetailsOf(index);
    return tier_.at(index).body_size + (details == nullptr ? 0 : details->reason.size());
  };
  size_t bytes = 0;
  for (const Index index : jobs) bytes += index == 0 ? 0 : size_of(index);
  batch.bytes.push_back(std::make_unique_for_overwrite<char[]>(bytes));
  char* at = batch.bytes.back().get();
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i] == 0) continue;
    View(jobs[i], now, at, batch.jobs[i]);
    at += size_of(jobs[i]);
  }
  return batch;
}

void ShardStore::Find(std::string_view name, std::span<const JobRef> jobs, Moment now, Done<JobBatch> done) {
  uint16_t topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  std::vector<Index> found;
  found.reserve(jobs.size());
  for (const JobRef& job : jobs) found.push_back(tier_.Find(topic, job));
  done(ViewAll(found, now));
}

void ShardStore::List(std::string_view name, State state, std::string_view cursor, size_t limit, Moment now,
                      Done<Page> done) {
  uint16_t topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  Index at = 1;
  if (Status status = ParseCursor(cursor, at); !status) return done(std::unexpected(std::move(status).error()));
  std::vector<Index> found;
  const uint64_t stop = std::min<uint64_t>(tier_.end(), uint64_t{at} + kScanMax);
  size_t bytes = 0;
  for (; at < stop && found.size() < limit && bytes < kPageBytes; ++at) {
    const Entry& entry = tier_.at(at);
    if (entry.IsFree() || entry.topic != topic || entry.state != state) continue;
    found.push_back(at);
    bytes += entry.body_size;
  }
  Page page;
  page.jobs = ViewAll(found, now);
  page.jobs.more = bytes >= kPageBytes;
  if (at < tier_.end()) page.cursor = std::to_string(at);
  done(std::move(page));
}

void ShardStore::Sweep(std::string_view name, SweepKind kind, std::string_view cursor, size_t limit, Moment now,
                       Done<Swept> done) {
  uint16_t topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  Index at = 1;
  if (Status status = ParseCursor(cursor, at); !status) return done(std::unexpected(std::move(status).error()));
  lane_->Begin(now);
  Swept swept;
  if (HasAny(kind, tier_.topic(topic))) {
    const uint64_t stop = std::min<uint64_t>(tier_.end(), uint64_t{at} + kScanMax);
    for (; at < stop && swept.changed < limit; ++at) {
      const Entry& entry = tier_.at(at);
      if (entry.IsFree() || entry.topic != topic || !Concerns(kind, entry.state)) continue;
      SweepOne(at, kind, now);
      ++swept.changed;
    }
    if (at < tier_.end() && HasAny(kind, tier_.topic(topic))) swept.cursor = std::to_string(at);
  }
  lane_->Append();
  lane_->Reply(std::move(done), std::move(swept));
}

void ShardStore::SweepOne(Index index, SweepKind kind, Moment now) {
  if (kind == SweepKind::kRedrive) return Redrive(index, now);
  // What is done or cancelled was counted as that.
  const State state = tier_.at(index).state;
  if (state != State::kDone && state != State::kCancelled) ++tier_.topic(tier_.at(index).topic).figures.purged;
  End(index, EntryType::kPurged, now);
}

void ShardStore::Redrive(Index index, Moment now) {
  Entry& entry = tier_.at(index);
  ++tier_.topic(entry.topic).figures.redriven;
  tier_.Detach(index);
  entry.attempts = 0;
  SetDue(entry, {Timeline::kSteady, now.steady});
  Move(index, State::kScheduled, now);
}

}  // namespace tocsin::journal
