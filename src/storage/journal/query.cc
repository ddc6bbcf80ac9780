// ShardStore: lookups, listings and sweeps.
#include <charconv>

#include "base/result.h"
#include "storage/journal/shard_store.h"

namespace tocsin::journal {
namespace {

/// The most jobs that one call looks at, and that a page lists: neither may stall the shard.
constexpr size_t kScanMax = 8192;
constexpr size_t kListMax = 512;
/// The same in bytes; a page always holds one job.
constexpr size_t kListBytes = 256 << 10;

TopicFigures FiguresOf(const TopicState& topic) {
  TopicFigures figures = topic.figures;
  figures.topic = topic.settings;
  return figures;
}

/// Leaves `at` alone if there is no cursor.
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

uint64_t CountOf(State state, const TopicState& topic) {
  const TopicFigures& figures = topic.figures;
  switch (state) {
    case State::kScheduled:
      return figures.scheduled;
    case State::kLeased:
      return figures.leased;
    case State::kDead:
      return figures.dead;
    case State::kDone:
    case State::kCancelled:
      break;
  }
  return topic.jobs - figures.scheduled - figures.leased - figures.dead;  // both together
}

/// False if no job of the topic can match: most topics have no dead letters, so this saves the scan.
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
  return topic.jobs > 0;
}

}  // namespace

std::optional<TopicFigures> ShardStore::FindFigures(std::string_view topic) const {
  const TopicNumber number = tier_.FindTopic(topic);
  return number == kNoTopic ? std::nullopt : std::optional(FiguresOf(tier_.topic(number)));
}

TopicsPage ShardStore::TopicsFrom(std::string_view cursor, size_t limit) const {
  const auto& topics = tier_.topics();
  Index at = 0;  // the number of a topic
  TOCSIN_CHECK(ParseCursor(cursor, at));
  TopicsPage page;
  // Numbers that are not in use count too, so that a page never takes long.
  const size_t stop = std::min(topics.size(), at + limit);
  for (; at < stop; ++at) {
    if (topics[at]->used) page.topics.push_back(FiguresOf(*topics[at]));
  }
  if (at < topics.size()) page.cursor = std::to_string(at);
  return page;
}

Time ShardStore::ShownDue(Index index, Moment now) const {
  const HotJob& hot = tier_.at(index);
  const Details* details = tier_.DetailsOf(index);
  // In a retained job due() is when it is forgotten; its own due time is in the details.
  if (details != nullptr && details->finished) {
    return ShowAsUtc(details->finished_due, details->finished_timeline, now);
  }
  return ShowAsUtc(hot.due(), hot.timeline(), now);
}

void ShardStore::View(Index index, Moment now, char* bytes, JobView& view) const {
  const HotJob& hot = tier_.at(index);
  const Details* details = tier_.DetailsOf(index);
  const std::string_view stored = tier_.BodyOf(hot);
  std::memcpy(bytes, stored.data(), stored.size());
  TOCSIN_CHECK(DecodeBody({bytes, stored.size()}, view));
  view.uid = hot.uid;
  view.state = hot.state;
  view.trigger = hot.trigger();
  view.attempt = hot.attempts;
  view.max_attempts = hot.max_attempts;
  view.due = ShownDue(index, now);
  if (hot.state == State::kLeased) {
    view.lease_deadline = ShowAsUtc(FromMs(tier_.lease(hot.prev).due_ms), Timeline::kSteady, now);
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
  TopicNumber topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  std::vector<Index> found;
  found.reserve(jobs.size());
  for (const JobRef& job : jobs) found.push_back(tier_.Find(topic, job));
  done(ViewAll(found, now));
}

void ShardStore::List(std::string_view name, State state, std::string_view cursor, size_t limit, Moment now,
                      Done<Page> done) {
  TopicNumber topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  Index at = 1;
  if (Status status = ParseCursor(cursor, at); !status) return done(std::unexpected(std::move(status).error()));
  std::vector<Index> found;
  size_t bytes = 0;
  if (CountOf(state, tier_.topic(topic)) == 0) at = tier_.end();
  at = tier_.Walk(topic, at, kScanMax, [&](Index index) {
    const HotJob& hot = tier_.at(index);
    if (hot.state != state) return true;
    found.push_back(index);
    bytes += hot.body_size;
    return found.size() < std::min(limit, kListMax) && bytes < kListBytes;
  });
  Page page;
  page.jobs = ViewAll(found, now);
  if (at < tier_.end()) page.cursor = std::to_string(at);
  done(std::move(page));
}

void ShardStore::Sweep(std::string_view name, SweepKind kind, std::string_view cursor, size_t limit, Moment now,
                       Done<Swept> done) {
  TopicNumber topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  Index at = 1;
  if (Status status = ParseCursor(cursor, at); !status) return done(std::unexpected(std::move(status).error()));
  const bool ends = kind != SweepKind::kRedrive;
  if (!(ends ? lane_->journal().has_room_for_ends() : lane_->journal().has_room_for_changes())) {
    return done(Fail(Code::kStorageFull, "the disk is full; only a part of the jobs was changed, or none"));
  }
  lane_->Begin(now);
  Swept swept;
  if (HasAny(kind, tier_.topic(topic))) {
    at = tier_.Walk(topic, at, kScanMax, [&](Index index) {
      if (!Concerns(kind, tier_.at(index).state)) return true;
      SweepOne(index, kind, now);
      return ++swept.changed < limit;
    });
    if (at < tier_.end() && HasAny(kind, tier_.topic(topic))) swept.cursor = std::to_string(at);
  }
  lane_->Append();
  lane_->Reply(std::move(done), std::move(swept));
}

void ShardStore::SweepOne(Index index, SweepKind kind, Moment now) {
  if (kind == SweepKind::kRedrive) return Redrive(index, now);
  // Done and cancelled jobs have been counted already.
  const State state = tier_.at(index).state;
  if (state != State::kDone && state != State::kCancelled) ++tier_.topic(tier_.at(index).topic).figures.purged;
  End(index, EntryType::kPurged, now);
}

void ShardStore::Redrive(Index index, Moment now) {
  HotJob& hot = tier_.at(index);
  ++tier_.topic(hot.topic).figures.redriven;
  tier_.Detach(index);
  hot.attempts = 0;
  SetDue(hot, {Timeline::kSteady, now.steady});
  Move(index, State::kScheduled, now);
}

}  // namespace tocsin::journal
