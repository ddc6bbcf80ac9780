// ShardStore: lookups and sweeps.
#include <algorithm>

#include "base/result.h"
#include "storage/journal/cursor.h"
#include "storage/journal/shard_store.h"

namespace tocsin::journal {
namespace {

/// The most jobs that one call looks at: it may not stall the shard.
constexpr size_t kScanMax = 8192;

TopicFigures FiguresOf(const HotTier& tier, const TopicState& topic) {
  TopicFigures figures = topic.figures;
  figures.topic = topic.settings;
  figures.oldest_due = tier.OldestReady(topic);
  return figures;
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

/// False if no job of the topic is concerned: most topics have no dead letters, so this saves the scan.
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
  return number == kNoTopic ? std::nullopt : std::optional(FiguresOf(tier_, tier_.topic(number)));
}

TopicsPage ShardStore::TopicsFrom(std::string_view cursor, size_t limit) const {
  const auto& topics = tier_.topics();
  Index at = 0;  // the number of a topic
  TOCSIN_CHECK(ParseCursor(cursor, at));
  TopicsPage page;
  // Numbers that are not in use count too, so that a page never takes long.
  const size_t stop = std::min(topics.size(), at + limit);
  for (; at < stop; ++at) {
    if (topics[at]->used) page.topics.push_back(FiguresOf(tier_, *topics[at]));
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

Time ShardStore::ShownCreated(const HotJob& hot, Moment now) const {
  if (hot.tells_created) return CreatedIn(tier_.BodyOf(hot));
  return ShowAsUtc(CreatedAt(hot.uid), Timeline::kSteady, now);
}

size_t ShardStore::ViewBytes(Index index) const {
  const Details* details = tier_.DetailsOf(index);
  const Lease* lease = tier_.LeaseOf(index);
  return tier_.at(index).body_size + (details == nullptr ? 0 : details->reason.size()) +
         (lease == nullptr ? 0 : tier_.HolderOf(*lease).size());
}

void ShardStore::View(Index index, Moment now, char* bytes, JobView& view) const {
  const auto copy = [&bytes](std::string_view text) {
    const std::string_view copied(bytes, text.size());
    bytes = std::ranges::copy(text, bytes).out;
    return copied;
  };
  const HotJob& hot = tier_.at(index);
  TOCSIN_CHECK(DecodeBody(copy(tier_.BodyOf(hot)), view));
  view.uid = hot.uid;
  view.state = hot.state;
  view.trigger = hot.trigger();
  view.attempt = ShownAttempt(hot);
  view.max_attempts = hot.max_attempts;
  view.due = ShownDue(index, now);
  view.created = ShownCreated(hot, now);
  if (const Lease* lease = tier_.LeaseOf(index)) {
    view.lease_deadline = ShowAsUtc(FromMs(lease->due_ms), Timeline::kSteady, now);
    view.leased = ShowAsUtc(lease->begun(), Timeline::kSteady, now);
    view.last_attempt = view.leased;
    view.extensions = static_cast<uint32_t>(lease->extensions);
    view.holder = copy(tier_.HolderOf(*lease));
  }
  const Details* details = tier_.DetailsOf(index);
  if (details == nullptr) return;
  view.count_left = details->count_left;
  view.reason = copy(details->reason);
  if (hot.state != State::kLeased) view.last_attempt = ShownTime(details->last_attempt, now);
  Time& ended = hot.state == State::kDead ? view.died : view.finished;
  ended = ShownTime(details->ended, now);
}

JobBatch ShardStore::ViewAll(std::span<const Index> jobs, Moment now) const {
  JobBatch batch;
  batch.jobs.resize(jobs.size());
  size_t bytes = 0;
  for (const Index index : jobs) bytes += index == 0 ? 0 : ViewBytes(index);
  batch.bytes.push_back(std::make_unique_for_overwrite<char[]>(bytes));
  char* at = batch.bytes.back().get();
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i] == 0) continue;
    View(jobs[i], now, at, batch.jobs[i]);
    at += ViewBytes(jobs[i]);
  }
  return batch;
}

void ShardStore::Find(std::string_view name, std::span<const JobRef> jobs, JobRoom* room, Moment now,
                      Done<JobBatch> done) {
  TopicNumber topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  std::vector<Index> found;
  found.reserve(jobs.size());
  size_t bytes = 0;
  for (const JobRef& job : jobs) {
    found.push_back(tier_.Find(topic, job));
    bytes += found.back() == 0 ? 0 : ViewBytes(found.back());
  }
  const bool no_room = room != nullptr && !room->Reach(found.size(), bytes);
  if (no_room) found.clear();
  JobBatch batch = ViewAll(found, now);
  batch.no_room = no_room;
  done(std::move(batch));
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

void ShardStore::Load(std::string_view name, const LoadSpan& span, Moment /*now*/, Done<LoadCounts> done) {
  if (lane_->failed()) return done(std::unexpected(lane_->journal().error()));
  TopicNumber topic = kNoTopic;
  if (!name.empty() && !Ready(name, topic, done)) return;
  done(tier_.Load(topic, span));
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
  TopicFigures& figures = tier_.topic(hot.topic).figures;
  ++figures.redriven;
  figures.worst.Forget(hot.uid);
  tier_.Detach(index);
  hot.attempts = 0;
  if (tier_.DetailsOf(index) != nullptr) tier_.ChangeDetails(index, [](Details& details) { details.ended = Time{}; });
  SetDue(hot, {Timeline::kSteady, now.steady});
  Reschedule(index, now);
}

}  // namespace tocsin::journal
