#include "core/operations.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <random>

#include "base/hash.h"
#include "base/result.h"
#include "base/text.h"
#include "core/service.h"
#include "core/uid_set.h"
#include "core/validate.h"
#include "model/names.h"

namespace tocsin {
namespace {

constexpr size_t kRunningMax = 8;  // operations at once
constexpr size_t kKeptMax = 100;   // reports
constexpr size_t kSamples = 5;
constexpr size_t kPageJobs = 500;
constexpr size_t kPagesEachSecond = 10;  // with a rate, at least: what was found is to be fresh when its turn comes
constexpr size_t kMovedMax = 500'000;    // jobs that one walk moves; more take several
constexpr size_t kLookedEach = 20'000;   // jobs, before progress is noted
constexpr Millis kTick{50};              // how often an operation with a rate acts
constexpr Millis kTryAgainAfter{50};
constexpr Millis kTellEvery{1'000};
constexpr int kTriesMax = 100;  // of a batch that a full mailbox refuses

struct ActionRow {
  AmendKind kind;
  std::string_view done;          // the outcome of a job that was changed
  std::span<const State> states;  // that it concerns unless the selector names some
};

constexpr State kScheduledAlone[] = {State::kScheduled};
constexpr State kDeadAlone[] = {State::kDead};
constexpr State kScheduledAndDead[] = {State::kScheduled, State::kDead};

// In the order of JobAction.
constexpr ActionRow kActions[] = {
    {AmendKind::kCancel, "cancelled", kScheduledAlone}, {AmendKind::kReschedule, "rescheduled", kScheduledAlone},
    {AmendKind::kRedrive, "redriven", kDeadAlone},      {AmendKind::kRemove, "purged", kScheduledAndDead},
    {AmendKind::kFire, "fired", kScheduledAlone},       {AmendKind::kAttempts, "changed", kScheduledAndDead},
};

const ActionRow& RowOf(JobAction action) { return kActions[static_cast<size_t>(action)]; }

/// Five letters and digits that people do not take for each other.
std::string NewMark() {
  constexpr std::string_view kSigns = "23456789abcdefghjkmnpqrstuvwxyz";
  constexpr size_t kLength = 5;
  std::random_device random;
  std::uniform_int_distribution<size_t> any(0, kSigns.size() - 1);
  std::string mark;
  while (mark.size() < kLength) mark += kSigns[any(random)];
  return mark + '-';
}

/// Closes the call that an operation has been, behind its answer.
auto Closing(Shard& home) {
  const auto close = [](Shard* shard) { shard->CloseCall(); };
  return std::unique_ptr<Shard, decltype(close)>(&home, close);
}

/// A job that an operation has found.
struct Found {
  Uid uid = 0;
  State state = State::kScheduled;
  Time due{};
};

}  // namespace

struct Operations::Operation {
  OperateRequest request;
  OperationReport report;
  uint64_t number = 0;         // in its id
  AskWanted ask;               // of a dry run
  Done<OperationReport> done;  // of a dry run
  std::move_only_function<void(const OperationReport&)> ended;
  std::string cursor;
  bool begun = false;        // the first page was read
  bool counting = false;     // the first walk of a spread, which needs the number of jobs
  uint64_t spread_over = 0;  // that number
  uint64_t acted = 0;        // jobs that it tried to change
  uint64_t changed = 0;      // jobs that it has changed
  metrics::Registry* registry = nullptr;
  std::vector<std::shared_ptr<metrics::Counter>> counters;  // of the report's outcomes
  size_t walks = 1;                                         // if it moves very many jobs: each moves a part of them
  size_t walk = 0;                                          // the present one
  UidSet moved;                                             // by it: a store may list a job that has moved again
  std::deque<Found> found;                                  // not changed yet
  std::vector<Found> batch;                                 // being changed
  double credit = 0;                                        // with a rate: jobs that may be changed now
  IoTime credited_at{};
  IoTime told_at{};  // to those who listen
  int tries = 0;     // in a row that a full mailbox has refused
  bool stop = false;
  JobBatch samples;

  void Count(std::string_view outcome) {
    auto& outcomes = report.outcomes;
    const auto known = std::ranges::find(outcomes, outcome, &std::pair<std::string_view, uint64_t>::first);
    const auto at = static_cast<size_t>(known - outcomes.begin());
    if (at == outcomes.size()) {
      outcomes.emplace_back(outcome, 0);
      const std::string action(kActionNames[static_cast<size_t>(request.action)]);
      counters.push_back(registry->GetCounter("tocsin_operation_jobs_total", "Jobs that operations met, by outcome.",
                                              {{"action", action}, {"outcome", std::string(outcome)}}));
    }
    ++outcomes[at].second;
    counters[at]->Add();
  }

  /// False if the walk that has ended was the last.
  bool NextWalk() {
    if (counting) {
      counting = false;
      spread_over = std::exchange(report.matched, 0);
    } else if (++walk == walks) {
      return false;
    }
    report.looked = 0;
    moved = UidSet();
    return true;
  }

  /// How many jobs to find before some are changed.
  size_t PageJobs() const {
    if (!request.rate || counting || request.dry_run) return kPageJobs;
    return std::clamp<size_t>(*request.rate / kPagesEachSecond, 1, kPageJobs);
  }

  /// Whether it changes the times of jobs, and so their places in a list.
  bool Moves() const { return request.action == JobAction::kReschedule || request.action == JobAction::kFire; }

  /// Whether the job is of this walk, and was not found by it before.
  bool IsNew(Uid uid) {
    if (!Moves()) return true;
    return Mix64(uid, walks) % walks == walk && moved.Insert(uid);
  }

  /// How many more jobs it may change.
  uint64_t Left() const { return request.matched_max ? *request.matched_max - changed : UINT64_MAX; }

  /// Nothing if the job has no due time that could be moved, or would get one out of range: `why` is then its outcome.
  std::optional<Amendment> AmendmentFor(const Found& job, Moment now, std::string_view& why) const;
};

std::optional<Amendment> Operations::Operation::AmendmentFor(const Found& job, Moment now,
                                                             std::string_view& why) const {
  Amendment amendment{.job = {.id = {}, .key = {}, .uid = job.uid}, .kind = RowOf(request.action).kind};
  amendment.max_attempts = request.max_attempts;
  amendment.seen = Seen{.state = job.state};
  if (request.shift || request.what.due.Bounds()) amendment.seen->due = job.due;
  if (request.action != JobAction::kReschedule) return amendment;
  amendment.timeline = Timeline::kUtc;
  if (request.shift) {
    if (job.due == kNever) {
      why = "not_timed";
      return std::nullopt;
    }
    amendment.due = job.due + *request.shift;
  } else {
    const uint64_t over = std::max<uint64_t>(spread_over, 1);
    const uint64_t at = std::min(acted, over - 1);
    const auto window = static_cast<double>(request.window.value_or(Millis(0)).count());
    amendment.due =
        *request.to + Millis(static_cast<int64_t>(window * static_cast<double>(at) / static_cast<double>(over)));
  }
  if (amendment.due > now.utc + kDelayMax || amendment.due < Time{}) {
    why = "out_of_range";
    return std::nullopt;
  }
  return amendment;
}

Operations::Operations(Service& service, Node& node, Shard& home)
    : service_(service), node_(node), home_(home), mark_(NewMark()) {}

void Operations::Start(OperateRequest request, uint64_t jobs, AskWanted ask, Done<OperationReport> done,
                       std::move_only_function<void(const OperationReport&)> ended) {
  if (Status valid = Validate(request, home_.Now()); !valid) return done(std::unexpected(std::move(valid).error()));
  if (running_ >= kRunningMax) {
    return done(Fail(Code::kOverloaded, "{} operations run already: wait for one of them, or stop one", running_));
  }
  if (request.what.states.All()) {
    for (const State state : RowOf(request.action).states) request.what.states.Add(StateSet::Of(state));
  }
  auto operation = std::make_shared<Operation>();
  operation->registry = &node_.metrics;
  OperationReport& report = operation->report;
  report.topic = request.topic;
  report.action = request.action;
  report.of = jobs;
  report.started = home_.Now().utc;
  operation->credited_at = node_.clock.IoNow();
  operation->counting = request.window.has_value() && !request.dry_run;
  operation->request = std::move(request);
  if (operation->Moves() && !operation->request.dry_run) operation->walks = 1 + jobs / kMovedMax;
  operation->ended = std::move(ended);
  SetRunning(running_ + 1);
  home_.OpenCall();  // it is not quiet before the operation is over
  if (operation->request.dry_run) {
    operation->ask = std::move(ask);
    operation->done = std::move(done);
    return Look(operation);
  }
  operation->number = ++last_number_;
  report.id = fmt::format("{}{}", mark_, operation->number);
  operations_[operation->number] = operation;
  done(report);
  Tell(*operation);
  Look(operation);
}

void Operations::Tell(Operation& operation) {
  operation.told_at = node_.clock.IoNow();
  node_.events.Publish(EventKind::kOperation, operation.report.topic, operation.report);
}

void Operations::SetRunning(size_t running) {
  running_ = running;
  if (!gauge_) gauge_ = node_.metrics.GetGauge("tocsin_operations_running", "Operations that run, with dry runs.");
  gauge_->Set(static_cast<double>(running));
}

Operations::OperationPtr Operations::Find(std::string_view topic, std::string_view id) const {
  if (!id.starts_with(mark_)) return nullptr;
  uint64_t number = 0;
  const char* const end = id.data() + id.size();
  const auto [at, error] = std::from_chars(id.data() + mark_.size(), end, number);
  if (error != std::errc{} || at != end) return nullptr;
  const auto found = operations_.find(number);
  return found != operations_.end() && found->second->report.topic == topic ? found->second : nullptr;
}

Result<OperationReport> Operations::Show(std::string_view topic, std::string_view id) const {
  if (const OperationPtr operation = Find(topic, id)) return operation->report;
  return FailField(Code::kNotFound, "id", "the topic has no operation {} on this node; a restart forgets operations",
                   Shown(id));
}

std::vector<OperationReport> Operations::List(std::string_view topic) const {
  std::vector<OperationReport> reports;
  for (const auto& [id, operation] : operations_) {
    if (operation->report.topic == topic) reports.push_back(operation->report);
  }
  std::ranges::reverse(reports);
  return reports;
}

Status Operations::Stop(std::string_view topic, std::string_view id) {
  TOCSIN_TRY(Show(topic, id));
  Find(topic, id)->stop = true;
  return {};
}

void Operations::GoOn(const OperationPtr& operation) {
  if (!operation->ask) return Look(operation);
  operation->ask([this, operation](bool wanted) {
    operation->stop = !wanted;
    Look(operation);
  });
}

void Operations::Look(const OperationPtr& operation) {
  if (operation->stop || node_.stopping) return End(operation, OperationState::kStopped);
  if (operation->begun && operation->cursor.empty() && !operation->NextWalk()) {
    return End(operation, OperationState::kDone);
  }
  operation->begun = true;
  ListRequest request{.topic = operation->request.topic,
                      .what = operation->request.what,
                      .cursor = operation->cursor,
                      .limit = operation->PageJobs(),
                      .looked_max = kLookedEach};
  service_.List(home_.loop(), std::move(request), [this, operation](Result<Page> page) {
    if (!page && page.error().code == Code::kOverloaded) {
      operation->begun = !operation->cursor.empty();  // a walk whose first page was refused is not over
      return TryAgain(operation, [this, operation] { Look(operation); });
    }
    if (!page) return End(operation, OperationState::kFailed, page.error().message);
    operation->tries = 0;
    Looked(operation, std::move(*page));
  });
}

void Operations::Looked(const OperationPtr& operation, Page page) {
  OperationReport& report = operation->report;
  report.looked += page.looked;
  operation->cursor = std::move(page.cursor);
  if (operation->request.dry_run || operation->counting) report.matched += page.jobs.jobs.size();
  if (operation->request.dry_run) {
    for (const JobView& job : page.jobs.jobs) {
      if (operation->samples.jobs.size() < kSamples) Append(operation->samples, job);
    }
  } else if (!operation->counting) {
    for (const JobView& job : page.jobs.jobs) {
      if (!operation->IsNew(job.uid)) continue;
      operation->found.push_back({job.uid, job.state, job.due});
      ++report.matched;
    }
    // Only new jobs, by the hundred thousand, can make a walk so much larger than the topic was.
    if (operation->moved.size() > 2 * kMovedMax) {
      return End(operation, OperationState::kFailed, "the topic grows faster than its jobs are moved: name fewer");
    }
  }
  Act(operation);
}

void Operations::TryAgain(const OperationPtr& operation, std::move_only_function<void()> step) {
  if (++operation->tries > kTriesMax) {
    return End(operation, OperationState::kFailed, "the node is overloaded: a shard took nothing more for too long");
  }
  home_.RunAt(node_.clock.IoNow() + kTryAgainAfter, std::move(step));
}

void Operations::Act(const OperationPtr& operation) {
  if (operation->found.empty() || operation->stop || node_.stopping) return GoOn(operation);
  if (operation->Left() == 0) return LookAtOneMore(operation);
  size_t batch = std::min<uint64_t>({operation->found.size(), kPageJobs, operation->Left()});
  if (const auto rate = operation->request.rate) {
    const IoTime now = node_.clock.IoNow();
    const std::chrono::duration<double> passed = now - std::exchange(operation->credited_at, now);
    // What was not used while it looked for jobs is lost, except for two ticks' worth.
    const double most = std::max(1.0, *rate * 2 * std::chrono::duration<double>(kTick).count());
    operation->credit = std::min(operation->credit + passed.count() * *rate, most);
    batch = std::min(batch, static_cast<size_t>(operation->credit));
    if (batch == 0) return home_.RunAt(now + kTick, [this, operation] { Act(operation); });
    operation->credit -= static_cast<double>(batch);
  }
  const Moment now = home_.Now();
  AmendRequest request{.topic = operation->request.topic, .amendments = {}, .bytes = nullptr, .checked = true};
  for (size_t i = 0; i < batch; ++i, ++operation->acted) {
    const Found job = operation->found.front();
    operation->found.pop_front();
    std::string_view why;
    const auto amendment = operation->AmendmentFor(job, now, why);
    if (amendment) {
      request.amendments.push_back(*amendment);
      operation->batch.push_back(job);
    } else {
      operation->Count(why);
    }
  }
  if (request.amendments.empty()) return Act(operation);
  service_.Amend(home_.loop(), std::move(request), [this, operation](Result<std::vector<Amended>> outcomes) {
    if (!outcomes && outcomes.error().code != Code::kOverloaded) {
      return End(operation, OperationState::kFailed, outcomes.error().message);
    }
    const size_t jobs = operation->batch.size();
    Acted(operation, outcomes ? *outcomes : std::vector<Amended>(jobs, {.outcome = AmendOutcome::kOverloaded}));
  });
}

void Operations::Acted(const OperationPtr& operation, const std::vector<Amended>& outcomes) {
  bool full = false;
  std::vector<Found> again;
  const std::vector<Found> batch = std::exchange(operation->batch, {});
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Amended& amended = outcomes[i];
    if (amended.outcome == AmendOutcome::kOverloaded) {
      again.push_back(batch[i]);
      continue;
    }
    operation->changed += amended.outcome == AmendOutcome::kDone ? 1 : 0;
    operation->Count(NameOf(amended.outcome, RowOf(operation->request.action).done));
    full = full || amended.outcome == AmendOutcome::kStorageFull;
  }
  if (full) return End(operation, OperationState::kFailed, "the disk is full");
  if (node_.clock.IoNow() - operation->told_at >= kTellEvery) Tell(*operation);
  if (!again.empty()) {
    if (again.size() < batch.size()) operation->tries = 0;
    operation->acted -= again.size();
    operation->found.insert(operation->found.begin(), again.begin(), again.end());
    return TryAgain(operation, [this, operation] { Act(operation); });
  }
  operation->tries = 0;
  // Through the loop: a chain of answers that come at once must not become a deep stack, nor a long turn.
  home_.InTurn([this, operation] { Act(operation); });
}

void Operations::LookAtOneMore(const OperationPtr& operation) {
  // A store may list a job twice: one that is not as it was found is not one more.
  const Found next = operation->found.front();
  operation->found.pop_front();
  FindRequest request{.topic = operation->request.topic,
                      .jobs = {{.id = {}, .key = {}, .uid = next.uid}},
                      .bytes = nullptr,
                      .checked = true};
  service_.Find(home_.loop(), std::move(request), [this, operation, next](Result<JobBatch> found) {
    if (!found && found.error().code == Code::kOverloaded) {
      operation->found.push_front(next);
      return TryAgain(operation, [this, operation] { Act(operation); });
    }
    if (!found) return End(operation, OperationState::kFailed, found.error().message);
    operation->tries = 0;
    const JobView& job = found->jobs.front();
    if (job.uid != 0 && job.state == next.state && Matches(operation->request.what, job, home_.Now().utc)) {
      return End(operation, OperationState::kFailed,
                 fmt::format("more jobs match than matched_max allows: {} are changed, the others are as they were",
                             operation->changed));
    }
    operation->Count(NameOf(job.uid == 0 ? AmendOutcome::kUnknown : AmendOutcome::kChanged, {}));
    home_.InTurn([this, operation] { Act(operation); });
  });
}

void Operations::End(const OperationPtr& operation, OperationState state, std::string error) {
  OperationReport& report = operation->report;
  report.state = state;
  report.error = std::move(error);
  report.ended = home_.Now().utc;
  operation->found.clear();
  operation->moved = UidSet();
  operation->ask = nullptr;
  SetRunning(running_ - 1);
  if (!operation->request.dry_run) {
    const std::string name(NameOf(state));
    node_.metrics
        .GetCounter("tocsin_operations_total", "Operations that are over, by how they ended.", {{"state", name}})
        ->Add();
    Tell(*operation);
  }
  const auto closed = Closing(home_);
  if (operation->ended) std::exchange(operation->ended, nullptr)(report);
  if (operation->done) {
    report.samples = std::make_shared<const JobBatch>(std::move(operation->samples));
    if (state == OperationState::kDone) return operation->done(std::move(report));
    return operation->done(Fail(Code::kUnavailable, "the jobs could not be counted: {}", report.error));
  }
  // The oldest that are over are forgotten.
  for (auto at = operations_.begin(); operations_.size() > kKeptMax && at != operations_.end();) {
    at = at->second->report.state == OperationState::kRunning ? std::next(at) : operations_.erase(at);
  }
}

}  // namespace tocsin
