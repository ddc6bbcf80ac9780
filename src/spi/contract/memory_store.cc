#include "spi/contract/memory_store.h"

#include <algorithm>
#include <tuple>

namespace tocsin {
namespace {

std::pair<Timeline, Time> DueOf(Timeline timeline, Millis delay, Time due, Moment now) {
  if (timeline == Timeline::kSteady) return {timeline, now.steady + delay};
  return {timeline, std::max(due, now.utc)};
}

std::shared_ptr<const JobBatch> Owned(JobView view) {
  const auto batch = std::make_shared<JobBatch>();
  Append(*batch, std::move(view));
  return batch;
}

}  // namespace

MemoryStore::Job* MemoryStore::TopicJobs::Find(const JobRef& ref) {
  if (ref.uid != 0) {
    const auto found = jobs.find(ref.uid);
    return found == jobs.end() ? nullptr : &found->second;
  }
  if (const auto uid = ParseUid(ref.id)) {
    if (const auto found = jobs.find(*uid); found != jobs.end()) return &found->second;
  }
  const auto found = by_id.find({std::string(ref.key), std::string(ref.id)});
  return found == by_id.end() ? nullptr : &jobs.at(found->second);
}

uint64_t MemoryStore::TopicJobs::LiveJobs() const {
  return static_cast<uint64_t>(std::ranges::count_if(jobs, [](const auto& each) { return each.second.Live(); }));
}

uint64_t MemoryStore::TopicJobs::LiveBytes() const {
  uint64_t bytes = 0;
  for (const auto& [uid, job] : jobs) bytes += job.Live() ? job.Bytes() : 0;
  return bytes;
}

bool MemoryStore::TopicJobs::HasReady(Moment now) const {
  return !topic.paused && std::ranges::any_of(jobs, [&](const auto& each) { return each.second.Ready(now); });
}

void MemoryStore::TopicJobs::Erase(const Job& job) {
  counts.worst.Forget(job.uid);
  const JobView& texts = job.Texts();
  if (!texts.own_id.empty()) by_id.erase({std::string(texts.key), std::string(texts.own_id)});
  jobs.erase(Uid{job.uid});
}

void MemoryStore::TopicJobs::Finish(Job& job, State state, Moment now) {
  counts.worst.Forget(job.uid);
  if (topic.retention <= Millis(0)) return Erase(job);
  if (state == State::kDone) job.last_attempt = job.leased;
  job.state = state;
  job.ended = now.steady;
  job.forget_at = now.steady + topic.retention;
}

/// An attempt has failed.
void MemoryStore::TopicJobs::Retry(Job& job, std::optional<Millis> delay, std::string reason, Moment now) {
  if (job.attempts + 1 >= job.max_attempts) return Bury(job, std::move(reason), now);
  ++job.attempts;
  job.last_attempt = job.leased;
  job.reason = std::move(reason);
  job.state = State::kScheduled;
  job.timeline = Timeline::kSteady;
  job.due = now.steady + delay.value_or(BackOff(topic, job.attempts, job.uid));
  counts.worst.Take({job.attempts, job.uid, now.steady, job.due + topic.lease}, false);
}

/// An attempt has failed, and it was the last.
void MemoryStore::TopicJobs::Bury(Job& job, std::string reason, Moment now) {
  ++job.attempts;
  job.last_attempt = job.leased;
  job.ended = now.steady;
  job.reason = std::move(reason);
  job.state = State::kDead;
  ++counts.died;
  counts.worst.Take({job.attempts, job.uid, now.steady, now.steady + topic.lease}, true);
}

template <class T>
void MemoryStore::Answer(Done<T> done, Result<T> result) {
  if (loop_ == nullptr) return done(std::move(result));
  loop_->Post([done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
}

MemoryStore::TopicJobs* MemoryStore::FindTopic(std::string_view topic) {
  const auto found = topics_.find(topic);
  return found == topics_.end() ? nullptr : &found->second;
}

void MemoryStore::PutTopic(const Topic& topic, Done<void> done) {
  topics_[topic.name].topic = topic;
  Answer<void>(std::move(done), {});
}

void MemoryStore::DropTopic(std::string_view topic, Done<void> done) {
  if (const auto found = topics_.find(topic); found != topics_.end()) topics_.erase(found);
  Answer<void>(std::move(done), {});
}

std::optional<TopicFigures> MemoryStore::FindFigures(std::string_view topic) const {
  const auto found = topics_.find(topic);
  if (found == topics_.end()) return std::nullopt;
  const TopicJobs& held = found->second;
  TopicFigures figures = held.counts;
  figures.topic = held.topic;
  figures.bytes = held.LiveBytes();
  for (const auto& [uid, job] : held.jobs) {
    figures.scheduled += job.state == State::kScheduled;
    figures.ready += job.Ready(latest_);
    figures.leased += job.state == State::kLeased;
    figures.dead += job.state == State::kDead;
  }
  return figures;
}

TopicsPage MemoryStore::TopicsFrom(std::string_view cursor, size_t limit) const {
  TopicsPage page;
  auto at = topics_.lower_bound(cursor);
  for (; at != topics_.end() && page.topics.size() < limit; ++at) page.topics.push_back(*FindFigures(at->first));
  if (at != topics_.end()) page.cursor = at->first;
  return page;
}

void MemoryStore::Submit(std::string_view topic, std::span<const NewJob> jobs, Moment now,
                         Done<std::vector<Submitted>> done) {
  TopicJobs* held = FindTopic(topic);
  if (held == nullptr) return Answer<std::vector<Submitted>>(std::move(done), NoSuchTopic(topic));
  std::vector<Submitted> outcomes;
  for (const NewJob& job : jobs) outcomes.push_back(SubmitOne(*held, job, now));
  Answer<std::vector<Submitted>>(std::move(done), std::move(outcomes));
}

Submitted MemoryStore::SubmitOne(TopicJobs& held, const NewJob& asked, Moment now) {
  Job job;
  job.slot = asked.slot;
  job.texts = Owned(ViewOf(asked));
  job.fingerprint = Fingerprint(asked);
  job.trigger = asked.trigger;
  std::tie(job.timeline, job.due) = DueOf(asked.timeline, asked.delay, asked.due, now);
  if (job.trigger == Trigger::kCount) job.due = kNever;
  if (job.trigger != Trigger::kTime) job.count_left = asked.count != 0 ? asked.count : held.topic.count_limit;
  job.max_attempts = asked.max_attempts != 0 ? asked.max_attempts : held.topic.max_attempts;
  if (asked.restored) {
    const auto steady = [&](Time utc) { return utc == Time{} ? utc : utc - (now.utc - now.steady); };
    const Restored& past = *asked.restored;
    if (job.timeline == Timeline::kUtc) job.due = asked.due;
    if (past.dead) job.state = State::kDead;
    job.attempts = past.attempts;
    job.reason = past.reason;
    job.restored_created = past.created;
    job.last_attempt = steady(past.last_attempt);
    if (past.dead) job.ended = past.died == Time{} ? now.steady : steady(past.died);
  }

  const auto answer = [&](SubmitOutcome outcome, const Job& of) {
    return Submitted{outcome, of.uid, ShowAsUtc(of.due, of.timeline, now)};
  };
  Job* old = asked.id.empty() ? nullptr : held.Find({asked.id, asked.key});
  if (old != nullptr && asked.on_conflict != OnConflict::kReplace) {
    const bool same = asked.on_conflict == OnConflict::kKeep || old->fingerprint == job.fingerprint;
    return answer(same ? SubmitOutcome::kDuplicate : SubmitOutcome::kConflict, *old);
  }
  if (old != nullptr && old->state == State::kLeased) return answer(SubmitOutcome::kInFlight, *old);

  const bool frees = old != nullptr && old->Live();
  const Topic& topic = held.topic;
  // Settings may have shrunk below what is stored: what adds nothing is taken even then.
  if (!frees && topic.capacity_jobs != 0 && held.LiveJobs() + 1 > topic.capacity_jobs) {
    return {SubmitOutcome::kOverCapacity, 0, {}};
  }
  const uint64_t freed = frees ? old->Bytes() : 0;
  if (topic.capacity_bytes != 0 && job.Bytes() > freed &&
      held.LiveBytes() - freed + job.Bytes() > topic.capacity_bytes) {
    return {SubmitOutcome::kOverCapacity, 0, {}};
  }
  if (frees) ++held.counts.cancelled;
  if (old != nullptr) held.Erase(*old);
  ++held.counts.accepted;
  job.uid = uids_.Next(now.steady, job.slot);
  if (!asked.id.empty()) held.by_id[{std::string(asked.key), std::string(asked.id)}] = job.uid;
  const Uid uid = job.uid;
  return answer(SubmitOutcome::kAccepted, held.jobs[uid] = std::move(job));
}

void MemoryStore::Claim(std::string_view topic, JobMax max, Millis lease, Moment now, Done<JobBatch> done) {
  TopicJobs* held = FindTopic(topic);
  if (held == nullptr) return Answer<JobBatch>(std::move(done), NoSuchTopic(topic));
  std::vector<Job*> ready;
  if (!held->topic.paused) {
    for (auto& [uid, job] : held->jobs) {
      if (job.Ready(now)) ready.push_back(&job);
    }
  }
  // Seen as UTC the dues of both timelines can be compared. Ids rise in the order of submission.
  std::ranges::sort(ready, {},
                    [&](const Job* job) { return std::pair(ShowAsUtc(job->due, job->timeline, now), job->uid); });
  if (ready.size() > max.jobs) ready.resize(max.jobs);
  const size_t fit = FitInto(max.room, ready);
  const bool more = fit > 0 && fit < ready.size();
  const bool no_room = fit == 0 && !ready.empty();
  ready.resize(fit);
  for (Job* job : ready) {
    job->state = State::kLeased;
    job->fired = true;
    job->fence = ++fence_;
    job->lease_deadline = now.steady + (lease > Millis(0) ? lease : held->topic.lease);
    job->leased = now.steady;
    job->extensions = 0;
    job->holder = max.holder.substr(0, kHolderBytesMax);
    ++held->counts.delivered;
  }
  held->reported = held->reported && held->HasReady(now);
  JobBatch batch = Show({ready.begin(), ready.end()}, now);
  for (size_t i = 0; i < ready.size(); ++i) batch.jobs[i].token = {ready[i]->slot, ready[i]->uid, ready[i]->fence};
  batch.more = more;
  batch.no_room = no_room;
  Answer<JobBatch>(std::move(done), std::move(batch));
}

size_t MemoryStore::FitInto(JobRoom* room, const std::vector<Job*>& jobs) {
  size_t bytes = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (bytes >= kClaimBytes) return i;
    bytes += jobs[i]->CopyBytes();
    if (room != nullptr && !room->Reach(i + 1, bytes)) return i;
  }
  return jobs.size();
}

void MemoryStore::Settle(std::string_view topic, std::span<const Settlement> settlements, Moment now,
                         Done<std::vector<SettleOutcome>> done) {
  TopicJobs* held = FindTopic(topic);
  if (held == nullptr) return Answer<std::vector<SettleOutcome>>(std::move(done), NoSuchTopic(topic));
  std::vector<SettleOutcome> outcomes;
  for (const Settlement& settlement : settlements) outcomes.push_back(SettleOne(*held, settlement, now));
  Answer<std::vector<SettleOutcome>>(std::move(done), std::move(outcomes));
}

SettleOutcome MemoryStore::SettleOne(TopicJobs& held, const Settlement& settlement, Moment now) {
  const auto found = held.jobs.find(settlement.token.handle);
  if (found == held.jobs.end()) return SettleOutcome::kStale;
  Job& job = found->second;
  if (job.state != State::kLeased || settlement.token != Token{job.slot, job.uid, job.fence})
    return SettleOutcome::kStale;
  switch (settlement.kind) {
    case SettleKind::kAck:
      ++held.counts.acked;
      held.Finish(job, State::kDone, now);
      return SettleOutcome::kOk;
    case SettleKind::kNack:
      ++held.counts.nacked;
      held.Retry(job, settlement.delay, std::string(settlement.reason), now);
      return job.state == State::kDead ? SettleOutcome::kDead : SettleOutcome::kOk;
    case SettleKind::kExtend:
      ++job.extensions;
      job.lease_deadline = now.steady + (settlement.lease > Millis(0) ? settlement.lease : held.topic.lease);
      return SettleOutcome::kOk;
    case SettleKind::kRelease:
      job.state = State::kScheduled;
      if (settlement.delay) {
        job.timeline = Timeline::kSteady;
        job.due = now.steady + *settlement.delay;
      }
      return SettleOutcome::kOk;
    case SettleKind::kBury:
      ++held.counts.nacked;
      held.Bury(job, std::string(settlement.reason), now);
      return SettleOutcome::kDead;
  }
  return SettleOutcome::kStale;
}

void MemoryStore::Amend(std::string_view topic, std::span<const Amendment> amendments, Moment now,
                        Done<std::vector<Amended>> done) {
  TopicJobs* held = FindTopic(topic);
  if (held == nullptr) return Answer<std::vector<Amended>>(std::move(done), NoSuchTopic(topic));
  std::vector<Amended> outcomes;
  for (const Amendment& amendment : amendments) outcomes.push_back(AmendOne(*held, amendment, now));
  Answer<std::vector<Amended>>(std::move(done), std::move(outcomes));
}

bool MemoryStore::NewPayload(const TopicJobs& held, Job& job, std::string_view payload) {
  JobView texts = job.Texts();
  const uint64_t bytes_after = held.LiveBytes() - texts.payload.size() + payload.size();
  const bool grows = payload.size() > texts.payload.size();
  if (grows && held.topic.capacity_bytes != 0 && bytes_after > held.topic.capacity_bytes) return false;
  texts.payload = payload;
  job.texts = Owned(std::move(texts));
  return true;
}

Amended MemoryStore::AmendOne(TopicJobs& held, const Amendment& amendment, Moment now) {
  Job* job = held.Find(amendment.job);
  if (job == nullptr) return {AmendOutcome::kUnknown, {}};
  if (const auto outcome = UnchangedOutcome(amendment.kind, job->state)) return {*outcome, {}};
  const Time due = ShowAsUtc(job->due, job->timeline, now);
  if (amendment.seen && !IsAs(*amendment.seen, job->state, job->ShownAttempt(), due, job->timeline)) {
    return {AmendOutcome::kChanged, {}};
  }
  switch (amendment.kind) {
    case AmendKind::kCancel:
      ++held.counts.cancelled;
      held.Finish(*job, State::kCancelled, now);
      return {AmendOutcome::kDone, {}};
    case AmendKind::kReschedule:
      if (amendment.payload && !NewPayload(held, *job, *amendment.payload)) return {AmendOutcome::kOverCapacity, {}};
      job->fired = job->fired || job->Ready(now);
      std::tie(job->timeline, job->due) = DueOf(amendment.timeline, amendment.delay, amendment.due, now);
      if (job->trigger == Trigger::kCount) job->trigger = Trigger::kEither;
      return {AmendOutcome::kDone, ShowAsUtc(job->due, job->timeline, now)};
    case AmendKind::kPayload:
      if (!NewPayload(held, *job, amendment.payload.value_or(""))) return {AmendOutcome::kOverCapacity, {}};
      return {AmendOutcome::kDone, {}};
    case AmendKind::kFire:
      job->fired = true;
      job->timeline = Timeline::kSteady;
      job->due = now.steady;
      return {AmendOutcome::kDone, now.utc};
    case AmendKind::kRedrive:
      held.Redrive(*job, now);
      return {AmendOutcome::kDone, now.utc};
    case AmendKind::kRemove:
      held.Purge(*job);
      return {AmendOutcome::kDone, {}};
    case AmendKind::kAttempts:
      job->max_attempts = amendment.max_attempts;
      return {AmendOutcome::kDone, {}};
    case AmendKind::kRevoke:
      ++held.counts.expired;
      held.Retry(*job, Millis(0), std::string(kRevokedReason), now);
      return {AmendOutcome::kDone, now.utc};
  }
  return {AmendOutcome::kUnknown, {}};
}

void MemoryStore::Count(std::string_view topic, std::span<const CountEvent> events, Moment now,
                        Done<std::vector<Counted>> done) {
  TopicJobs* held = FindTopic(topic);
  if (held == nullptr) return Answer<std::vector<Counted>>(std::move(done), NoSuchTopic(topic));
  std::vector<Counted> outcomes;
  for (const CountEvent& event : events) outcomes.push_back(CountOne(*held, event, now));
  Answer<std::vector<Counted>>(std::move(done), std::move(outcomes));
}

Counted MemoryStore::CountOne(TopicJobs& held, const CountEvent& event, Moment now) {
  Job* job = held.Find(event.job);
  if (job == nullptr) return {CountOutcome::kUnknown, 0};
  if (job->state == State::kDead || !job->Live()) return {CountOutcome::kFinished, 0};
  if (job->trigger == Trigger::kTime || job->fired || job->Ready(now)) return {CountOutcome::kNotCounted, 0};
  if (!job->events.insert(std::string(event.event)).second) return {CountOutcome::kRepeated, job->count_left};
  job->count_left -= std::min(job->count_left, event.by);
  if (job->count_left > 0) return {CountOutcome::kCounted, job->count_left};
  job->fired = true;
  job->timeline = Timeline::kSteady;
  job->due = now.steady;
  return {CountOutcome::kFired, 0};
}

void MemoryStore::Find(std::string_view topic, std::span<const JobRef> jobs, JobRoom* room, Moment now,
                       Done<JobBatch> done) {
  TopicJobs* held = FindTopic(topic);
  if (held == nullptr) return Answer<JobBatch>(std::move(done), NoSuchTopic(topic));
  std::vector<const Job*> found;
  size_t bytes = 0;
  for (const JobRef& ref : jobs) {
    found.push_back(held->Find(ref));
    bytes += found.back() == nullptr ? 0 : found.back()->CopyBytes();
  }
  const bool no_room = room != nullptr && !room->Reach(found.size(), bytes);
  JobBatch batch = no_room ? JobBatch() : Show(found, now);
  batch.no_room = no_room;
  Answer<JobBatch>(std::move(done), std::move(batch));
}

void MemoryStore::List(std::string_view topic, const Selector& what, std::string_view cursor, JobMax max, Moment now,
                       Done<Page> done) {
  TopicJobs* held = FindTopic(topic);
  if (held == nullptr) return Answer<Page>(std::move(done), NoSuchTopic(topic));
  const auto after = cursor.empty() ? Uid{0} : ParseUid(cursor);
  if (!after) return Answer<Page>(std::move(done), FailField(Code::kInvalidArgument, "cursor", "cursor is not one"));
  std::vector<const Job*> found;
  size_t bytes = 0;
  bool cramped = false;
  Page page;
  for (auto at = held->jobs.upper_bound(*after); at != held->jobs.end(); ++at) {
    const Job& job = at->second;
    ++page.looked;
    if (!Matches(what, View(job, now), now.utc)) continue;
    bytes += job.CopyBytes();
    cramped = found.size() < max.jobs && max.room != nullptr && !max.room->Reach(found.size() + 1, bytes);
    if (cramped || found.size() == max.jobs) {
      page.cursor = found.empty() ? std::string(cursor) : UidText(found.back()->uid);
      break;
    }
    found.push_back(&job);
  }
  page.jobs = Show(found, now);
  page.jobs.no_room = cramped && found.empty();
  Answer<Page>(std::move(done), std::move(page));
}

void MemoryStore::TopicJobs::Redrive(Job& job, Moment now) {
  ++counts.redriven;
  counts.worst.Forget(job.uid);
  job.state = State::kScheduled;
  job.attempts = 0;
  job.timeline = Timeline::kSteady;
  job.due = now.steady;
}

void MemoryStore::TopicJobs::Purge(const Job& job) {
  if (job.Live()) ++counts.purged;
  Erase(job);
}

void MemoryStore::Sweep(std::string_view topic, SweepKind kind, std::string_view cursor, size_t limit, Moment now,
                        Done<Swept> done) {
  TopicJobs* held = FindTopic(topic);
  if (held == nullptr) return Answer<Swept>(std::move(done), NoSuchTopic(topic));
  const auto after = cursor.empty() ? Uid{0} : ParseUid(cursor);
  if (!after) return Answer<Swept>(std::move(done), FailField(Code::kInvalidArgument, "cursor", "cursor is not one"));
  std::vector<Job*> found;
  Swept swept;
  for (auto at = held->jobs.upper_bound(*after); at != held->jobs.end(); ++at) {
    Job& job = at->second;
    const bool purges = kind == SweepKind::kPurge && job.state == State::kScheduled;
    if (job.state != State::kDead && !purges && kind != SweepKind::kEmpty) continue;
    if (found.size() == limit) {
      swept.cursor = UidText(found.back()->uid);
      break;
    }
    found.push_back(&job);
  }
  swept.changed = found.size();
  for (Job* job : found) {
    kind == SweepKind::kRedrive ? held->Redrive(*job, now) : held->Purge(*job);
  }
  Answer<Swept>(std::move(done), std::move(swept));
}

void MemoryStore::Load(std::string_view topic, const LoadSpan& span, Moment now, Done<LoadCounts> done) {
  if (!topic.empty() && FindTopic(topic) == nullptr) return Answer<LoadCounts>(std::move(done), NoSuchTopic(topic));
  LoadCounts counts{.jobs = std::vector<uint64_t>(span.steps)};
  for (const auto& [name, held] : topics_) {
    if (topic.empty() || name == topic) LoadOne(held, span, now, counts);
  }
  Answer<LoadCounts>(std::move(done), std::move(counts));
}

void MemoryStore::LoadOne(const TopicJobs& held, const LoadSpan& span, Moment now, LoadCounts& counts) {
  for (const auto& [uid, job] : held.jobs) {
    const Time due = ShowAsUtc(job.due, job.timeline, now);
    if (job.Ready(now)) {
      ++counts.due;
    } else if (job.state == State::kScheduled && due >= span.from && due < span.To()) {
      ++counts.jobs[static_cast<size_t>((due - span.from) / span.step)];
    }
  }
}

void MemoryStore::Advance(Moment now, size_t budget, Done<Advanced> done) {
  latest_ = now;
  Advanced advanced;
  for (auto& [name, held] : topics_) budget -= AdvanceOne(held, now, budget, advanced);
  Answer<Advanced>(std::move(done), std::move(advanced));
}

/// Returns how much of the budget it used.
size_t MemoryStore::AdvanceOne(TopicJobs& held, Moment now, size_t budget, Advanced& advanced) {
  size_t used = 0;
  std::vector<const Job*> forgotten;
  for (auto& [uid, job] : held.jobs) {
    const bool expires = job.state == State::kLeased && job.lease_deadline <= now.steady;
    const bool forgets = !job.Live() && job.forget_at <= now.steady;
    if ((expires || forgets) && used == budget) {
      advanced.more = true;
      break;
    }
    used += expires || forgets;
    if (forgets) forgotten.push_back(&job);
    if (expires) {
      ++held.counts.expired;
      held.Retry(job, std::nullopt, "lease expired", now);
    }
  }
  for (const Job* job : forgotten) held.Erase(*job);
  for (const auto& [uid, job] : held.jobs) {
    if (job.state == State::kLeased) advanced.next_steady = std::min(advanced.next_steady, job.lease_deadline);
    if (!job.Live()) advanced.next_steady = std::min(advanced.next_steady, job.forget_at);
    if (job.state != State::kScheduled || job.Ready(now)) continue;
    Time& next = job.timeline == Timeline::kSteady ? advanced.next_steady : advanced.next_utc;
    next = std::min(next, job.due);
  }
  const bool ready = held.HasReady(now);
  if (ready && !held.reported) advanced.ready.push_back(held.topic.name);
  held.reported = ready;
  return used;
}

void MemoryStore::Reopen() {
  for (auto& [name, held] : topics_) {
    held.reported = false;
    held.counts = {};
    for (auto& [uid, job] : held.jobs) {
      if (job.state == State::kLeased) job.state = State::kScheduled;
    }
    held.counts.recovered = held.LiveJobs();
  }
}

JobView MemoryStore::View(const Job& job, Moment now) {
  const auto show = [now](Time time) { return time == Time{} ? time : ShowAsUtc(time, Timeline::kSteady, now); };
  JobView view = job.Texts();
  view.uid = job.uid;
  view.state = job.state;
  view.due = ShowAsUtc(job.due, job.timeline, now);
  view.trigger = job.trigger;
  view.count_left = job.count_left;
  view.attempt = job.ShownAttempt();
  view.max_attempts = job.max_attempts;
  view.reason = job.reason;
  view.created = job.restored_created == Time{} ? show(CreatedAt(job.uid)) : job.restored_created;
  view.last_attempt = show(job.state == State::kLeased ? job.leased : job.last_attempt);
  if (job.state == State::kDead) view.died = show(job.ended);
  if (!job.Live()) view.finished = show(job.ended);
  if (job.state == State::kLeased) {
    view.lease_deadline = show(job.lease_deadline);
    view.leased = show(job.leased);
    view.extensions = job.extensions;
    view.holder = job.holder;
  }
  return view;
}

JobBatch MemoryStore::Show(const std::vector<const Job*>& jobs, Moment now) {
  JobBatch batch;
  for (const Job* job : jobs) Append(batch, job == nullptr ? JobView() : View(*job, now));
  return batch;
}

}  // namespace tocsin
