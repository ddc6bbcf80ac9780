#include "spi/contract/store_contract.h"

#include <algorithm>

namespace tocsin {
namespace {

template <class T>
T Value(Result<T> result) {
  if (result) return std::move(result).value();
  ADD_FAILURE() << result.error().message;
  return T{};
}

template <class T>
T Only(std::vector<T> outcomes) {
  if (outcomes.size() == 1) return std::move(outcomes[0]);
  ADD_FAILURE() << outcomes.size() << " outcomes for one request";
  return T{};
}

}  // namespace

void StoreContract::SetUp() {
  harness_ = GetParam()();
  Put(DefaultSettings());
}

void StoreContract::TearDown() {
  Scan();
  constexpr LoadSpan kAllTime{.from = {}, .step = kLoadLast - Time{}, .steps = 1};
  uint64_t due = 0;
  uint64_t in_steps = 0;
  for (const TopicFigures& f : store().Topics()) {
    SCOPED_TRACE(f.topic.name);
    EXPECT_EQ(f.recovered + f.accepted, f.scheduled + f.leased + f.dead + f.acked + f.cancelled + f.purged);
    EXPECT_LE(f.ready, f.scheduled);
    EXPECT_EQ(List(State::kScheduled, 100, f.topic.name).size(), f.scheduled);
    EXPECT_EQ(List(State::kLeased, 100, f.topic.name).size(), f.leased);
    EXPECT_EQ(List(State::kDead, 100, f.topic.name).size(), f.dead);
    if (f.scheduled + f.leased + f.dead == 0) EXPECT_EQ(f.bytes, 0U);
    const LoadCounts load = Load(kAllTime, f.topic.name);
    EXPECT_EQ(load.due + load.jobs[0] + CountWithoutStep(f.topic.name), f.scheduled);
    due += load.due;
    in_steps += load.jobs[0];
  }
  const LoadCounts load = Load(kAllTime, {});
  EXPECT_EQ(load.due, due);
  EXPECT_EQ(load.jobs[0], in_steps);
}

Topic StoreContract::DefaultSettings() const {
  Topic topic = DefaultTopic(kTopic);
  topic.slots = 1;  // one slot, so that the order of delivery is that of the whole topic
  return topic;
}

void StoreContract::Put(const Topic& topic) {
  EXPECT_TRUE(Await<void>([&](Done<void> done) { store().PutTopic(topic, std::move(done)); }));
}

void StoreContract::Set(const std::function<void(Topic&)>& change) {
  Topic topic = Figures().topic;
  change(topic);
  ++topic.version;
  Put(topic);
}

NewJob StoreContract::Job(std::string_view id, Millis delay, std::string_view payload) {
  NewJob job;
  job.id = id;
  job.delay = delay;
  job.payload = payload;
  return job;
}

NewJob StoreContract::JobAt(std::string_view id, Time due) {
  NewJob job = Job(id);
  job.timeline = Timeline::kUtc;
  job.due = due;
  return job;
}

NewJob StoreContract::CountJob(std::string_view id, uint32_t count, Trigger trigger, Millis delay) {
  NewJob job = Job(id, delay);
  job.trigger = trigger;
  job.count = count;
  return job;
}

NewJob StoreContract::Keyed(NewJob job, std::string_view key) {
  job.key = key;
  return job;
}

NewJob StoreContract::Asking(NewJob job, OnConflict on_conflict) {
  job.on_conflict = on_conflict;
  return job;
}

std::vector<Submitted> StoreContract::SubmitAll(const std::vector<NewJob>& jobs, std::string_view topic) {
  auto outcomes =
      Value(Await<std::vector<Submitted>>([&](auto done) { store().Submit(topic, jobs, Now(), std::move(done)); }));
  EXPECT_EQ(outcomes.size(), jobs.size());
  outcomes.resize(jobs.size());
  return outcomes;
}

Submitted StoreContract::Submit(const NewJob& job, std::string_view topic) { return Only(SubmitAll({job}, topic)); }

Submitted StoreContract::Accept(const NewJob& job, std::string_view topic) {
  const Submitted submitted = Submit(job, topic);
  EXPECT_EQ(submitted.outcome, SubmitOutcome::kAccepted);
  EXPECT_NE(submitted.uid, 0U);
  return submitted;
}

void StoreContract::Scan() {
  found_ = {};
  do {
    auto next = Value(Await<Advanced>([&](auto done) { store().Advance(Now(), 1000, std::move(done)); }));
    next.ready.insert(next.ready.end(), found_.ready.begin(), found_.ready.end());
    found_ = std::move(next);
  } while (found_.more);
}

void StoreContract::Pass(Millis by) {
  clock().Advance(by);
  Scan();
}

void StoreContract::LoseLeases() {
  if (!harness_->keeps_leases()) return;
  Pass(std::chrono::hours(24));  // they run out
  Pass(std::chrono::hours(24));  // and so do their back-offs
}

JobBatch StoreContract::Claim(size_t max, Millis lease, std::string_view topic, JobRoom* room) {
  Scan();
  return Value(Await<JobBatch>([&](auto done) { store().Claim(topic, {max, room}, lease, Now(), std::move(done)); }));
}

std::vector<std::string> StoreContract::ClaimIds(size_t max) {
  std::vector<std::string> ids;
  for (const JobView& job : Claim(max).jobs) ids.push_back(job.Id());
  return ids;
}

std::vector<std::string> StoreContract::TakeIds(size_t max) {
  std::vector<std::string> ids;
  for (const JobView& job : Claim(max).jobs) {
    ids.push_back(job.Id());
    EXPECT_EQ(Ack(job.token), SettleOutcome::kOk);
  }
  return ids;
}

JobView StoreContract::ClaimOne(Millis lease) {
  last_ = Claim(1, lease);
  if (last_.jobs.size() == 1) return last_.jobs[0];
  ADD_FAILURE() << "nothing to claim";
  return {};
}

JobView StoreContract::ClaimAs(std::string_view holder, Millis lease) {
  Scan();
  const JobMax max{.jobs = 1, .holder = holder};
  last_ = Value(Await<JobBatch>([&](auto done) { store().Claim(kTopic, max, lease, Now(), std::move(done)); }));
  if (last_.jobs.size() == 1) return last_.jobs[0];
  ADD_FAILURE() << "nothing to claim for " << holder;
  return {};
}

SettleOutcome StoreContract::Settle(const Settlement& settlement, std::string_view topic) {
  return Only(Value(Await<std::vector<SettleOutcome>>(
      [&](auto done) { store().Settle(topic, {&settlement, 1}, Now(), std::move(done)); })));
}

SettleOutcome StoreContract::Nack(const Token& token, std::optional<Millis> delay, std::string_view reason) {
  return Settle({.token = token, .kind = SettleKind::kNack, .delay = delay, .reason = reason});
}

SettleOutcome StoreContract::Extend(const Token& token, Millis lease) {
  return Settle({.token = token, .kind = SettleKind::kExtend, .lease = lease});
}

SettleOutcome StoreContract::Bury(const Token& token, std::string_view reason) {
  return Settle({.token = token, .kind = SettleKind::kBury, .reason = reason});
}

Amended StoreContract::Amend(const Amendment& amendment) {
  return Only(Value(
      Await<std::vector<Amended>>([&](auto done) { store().Amend(kTopic, {&amendment, 1}, Now(), std::move(done)); })));
}

AmendOutcome StoreContract::Cancel(std::string_view id, std::string_view key) {
  return Amend({.job = {id, key}, .kind = AmendKind::kCancel}).outcome;
}

AmendOutcome StoreContract::Fire(std::string_view id) {
  return Amend({.job = {id, {}}, .kind = AmendKind::kFire}).outcome;
}

AmendOutcome StoreContract::NewPayload(std::string_view id, std::string_view payload) {
  return Amend({.job = {id, {}}, .kind = AmendKind::kPayload, .payload = payload}).outcome;
}

Amended StoreContract::Reschedule(std::string_view id, Millis delay) {
  return Amend({.job = {id, {}}, .kind = AmendKind::kReschedule, .delay = delay});
}

AmendOutcome StoreContract::Change(std::string_view id, AmendKind kind, std::string_view key) {
  return Amend({.job = {id, key}, .kind = kind}).outcome;
}

AmendOutcome StoreContract::NewAttempts(std::string_view id, uint32_t max_attempts) {
  return Amend({.job = {id, {}}, .kind = AmendKind::kAttempts, .max_attempts = max_attempts}).outcome;
}

Counted StoreContract::Count(std::string_view id, std::string_view event, uint32_t by) {
  const CountEvent each{{id, {}}, event, by};
  return Only(Value(
      Await<std::vector<Counted>>([&](auto done) { store().Count(kTopic, {&each, 1}, Now(), std::move(done)); })));
}

JobView StoreContract::Find(std::string_view id, std::string_view key) {
  const JobRef ref{id, key};
  last_ = Value(Await<JobBatch>([&](auto done) { store().Find(kTopic, {&ref, 1}, nullptr, Now(), std::move(done)); }));
  return Only(last_.jobs);
}

std::optional<State> StoreContract::StateOf(std::string_view id) {
  const JobView view = Find(id);
  return view.uid == 0 ? std::nullopt : std::optional(view.state);
}

size_t StoreContract::Visit(const Selector& what, size_t page_size, const std::function<void(const JobView&)>& visit,
                            std::string_view topic) {
  std::string cursor;
  size_t looked = 0;
  do {
    const Page page =
        Value(Await<Page>([&](auto done) { store().List(topic, what, cursor, {page_size}, Now(), std::move(done)); }));
    EXPECT_LE(page.jobs.jobs.size(), page_size);
    EXPECT_LE(page.jobs.jobs.size(), page.looked);
    std::ranges::for_each(page.jobs.jobs, visit);
    looked += page.looked;
    EXPECT_TRUE(page.cursor.empty() || page.cursor != cursor) << "a listing that does not move";
    if (page.cursor == cursor) break;
    cursor = page.cursor;
  } while (!cursor.empty());
  return looked;
}

std::multiset<std::string> StoreContract::Select(const Selector& what, size_t page_size) {
  std::multiset<std::string> ids;
  Visit(what, page_size, [&](const JobView& job) { ids.insert(job.Id()); });
  return ids;
}

std::multiset<std::string> StoreContract::List(State state, size_t page_size, std::string_view topic) {
  std::multiset<std::string> ids;
  const auto visit = [&](const JobView& job) {
    EXPECT_EQ(job.state, state);
    ids.insert(job.Id());
  };
  Visit(OfState(state), page_size, visit, topic);
  return ids;
}

size_t StoreContract::Sweep(SweepKind kind, size_t limit) {
  return Value(Await<Swept>([&](auto done) { store().Sweep(kTopic, kind, {}, limit, Now(), std::move(done)); }))
      .changed;
}

TopicFigures StoreContract::Figures(std::string_view topic) {
  for (TopicFigures& figures : store().Topics()) {
    if (figures.topic.name == topic) return std::move(figures);
  }
  ADD_FAILURE() << "no figures for " << topic;
  return {};
}

LoadCounts StoreContract::Load(const LoadSpan& span, std::string_view topic) {
  LoadCounts counts;
  do {
    const LoadCounts part = Value(Await<LoadCounts>(
        [&](auto done) { store().Load(topic, span.After(counts.jobs.size()), Now(), std::move(done)); }));
    EXPECT_FALSE(part.jobs.empty());
    if (part.jobs.empty()) break;
    counts.due = part.due;
    counts.jobs.insert(counts.jobs.end(), part.jobs.begin(), part.jobs.end());
  } while (counts.jobs.size() < span.steps);
  counts.jobs.resize(span.steps);
  return counts;
}

size_t StoreContract::CountWithoutStep(std::string_view topic) {
  size_t found = 0;
  std::string cursor;
  do {
    const Page page = Value(Await<Page>(
        [&](auto done) { store().List(topic, OfState(State::kScheduled), cursor, {1000}, Now(), std::move(done)); }));
    for (const JobView& job : page.jobs.jobs) found += job.due >= kLoadLast;
    cursor = page.cursor;
  } while (!cursor.empty());
  return found;
}

std::multiset<std::string> StoreContract::Drain(int steps, Millis step) {
  std::multiset<std::string> ids;
  for (int i = 0; i < steps; ++i) {
    for (auto some = TakeIds(); !some.empty(); some = TakeIds()) ids.insert(some.begin(), some.end());
    Pass(step);
  }
  return ids;
}

}  // namespace tocsin
