#include "core/service.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "base/result.h"
#include "core/load_reports.h"
#include "core/monitor.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/scatter.h"
#include "core/shard.h"
#include "core/topic_registry.h"
#include "core/topic_reports.h"
#include "core/validate.h"

namespace tocsin {
namespace {

/// `kept` belongs to the thread of `here`, where it is asked and destroyed.
Operations::AskWanted AskingOn(Shard& here, Shard& home, const std::shared_ptr<WantedStill>& kept) {
  if (!*kept) return nullptr;
  return [&here, &home, weak = std::weak_ptr(kept)](std::move_only_function<void(bool)> tell) {
    here.Send([&home, weak, tell = std::move(tell)]() mutable {
      const auto wanted = weak.lock();
      home.Send([tell = std::move(tell), still = wanted != nullptr && (*wanted)()]() mutable { tell(still); });
    });
  };
}

/// Not all at once: a hundred thousand take much memory.
void ForEachTopic(const Store& store, const std::function<void(const Topic&)>& visit) {
  constexpr size_t kEach = 1000;
  TopicsPage page;
  do {
    page = store.TopicsFrom(page.cursor, kEach);
    for (const TopicFigures& figures : page.topics) visit(figures.topic);
  } while (!page.cursor.empty());
}

}  // namespace

Leases LeasesOf(std::string topic, const JobBatch& jobs) {
  Leases leases{.topic = std::move(topic)};
  leases.tokens.reserve(jobs.jobs.size());
  for (const JobView& job : jobs.jobs) leases.tokens.push_back(job.token);
  return leases;
}

Service::Service(const std::vector<ShardParts>& parts, Clock& clock, metrics::Registry& metrics, Limits limits,
                 SinkFactory* sinks, PushMemory* push_memory)
    : node_(std::make_unique<Node>(parts.size(), clock, metrics, limits, sinks, push_memory)),
      registry_(std::make_unique<TopicRegistry>(*node_)),
      reporter_(std::make_unique<TopicReporter>(*node_, parts.size())),
      loads_(std::make_unique<LoadReporter>(*node_)),
      missing_(parts.size()),
      start_(std::random_device{}()) {
  TOCSIN_CHECK(!parts.empty() && parts.size() <= Waiters::kShardsMax);
  node_->on_advanced = [this] { TakeTopicChanges(); };
  for (size_t i = 0; i < parts.size(); ++i) {
    node_->shards.push_back(
        std::make_unique<Shard>(*node_, static_cast<uint32_t>(i), *parts[i].loop, *parts[i].store, parts[i].shared));
  }
  operations_ = std::make_unique<Operations>(*this, *node_, *node_->shards[0]);
  // A crash between two stores leaves a change of a topic in some of them only: the newest version holds everywhere.
  for (const ShardParts& part : parts) {
    ForEachTopic(*part.store, [&](const Topic& topic) { registry_->Restore(topic); });
  }
  for (const ShardParts& part : parts) {
    ForEachTopic(*part.store, [&](const Topic& topic) {
      if (node_->shards[0]->topics().Find(topic.name) == nullptr) Know(parts, *registry_->Find(topic.name));
    });
  }
}

void Service::Know(const std::vector<ShardParts>& parts, const Topic& newest) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto held = parts[i].store->FindFigures(newest.name);
    if (!held || held->topic.version < newest.version) missing_[i].push_back(newest);
    node_->shards[i]->KnowTopic(newest);
  }
}

Service::~Service() = default;

void Service::OnFailed(std::move_only_function<void(const Error&)> failed) { node_->on_failed = std::move(failed); }

Status Service::Ready() const { return node_->Ready(); }

const Limits& Service::limits() const { return node_->limits; }

std::optional<Error> Service::Outage() const { return node_->Outage(); }

const FiguresBoard& Service::figures() const { return node_->board; }

Shard& Service::ShardOf(const Loop& loop) const {
  const auto at = std::ranges::find_if(node_->shards, [&](const auto& shard) { return &shard->loop() == &loop; });
  TOCSIN_CHECK(at != node_->shards.end());
  return **at;
}

bool Service::Knows(Loop& caller, std::string_view topic) const {
  return ShardOf(caller).topics().Find(topic) != nullptr;
}

Service::Bundle::Bundle(Service& service, Loop& caller) : shard_(service.ShardOf(caller)) { shard_.BeginBundle(); }

Service::Bundle::~Bundle() { shard_.EndBundle(); }

template <class T>
std::optional<Call<T>> Service::Admit(Loop& caller, Done<T>& done) {
  if (Status open = node_->TakesCalls(); !open) {
    done(std::unexpected(std::move(open).error()));
    return std::nullopt;
  }
  Shard& shard = ShardOf(caller);
  shard.OpenCall();
  return Call<T>{&shard, std::move(done)};
}

template std::optional<Call<Page>> Service::Admit(Loop& caller, Done<Page>& done);  // for lists.cc
// For topic_pages.cc.
template std::optional<Call<TopicsPageReport>> Service::Admit(Loop& caller, Done<TopicsPageReport>& done);
template std::optional<Call<HistoryReport>> Service::Admit(Loop& caller, Done<HistoryReport>& done);
template std::optional<Call<DeliveriesPage>> Service::Admit(Loop& caller, Done<DeliveriesPage>& done);
template std::optional<Call<metrics::Histogram::Snapshot>> Service::Admit(Loop& caller,
                                                                          Done<metrics::Histogram::Snapshot>& done);

void Service::Start() {
  for (size_t i = 0; i < missing_.size(); ++i) {
    Shard& shard = *node_->shards[i];
    shard.Send([&shard, missing = std::move(missing_[i])]() mutable { shard.Begin(std::move(missing)); });
  }
}

void Service::Stop(Loop& caller, Task done) {
  const bool twice = node_->stopping.exchange(true);
  TOCSIN_CHECK(!twice);
  Shard& origin = ShardOf(caller);
  const auto stop = [](Shard& shard, Done<void> quiet) {
    shard.Stop([quiet = std::move(quiet)]() mutable { quiet({}); });
  };
  // Announcements may still be in the mailboxes of quiet shards: a second round goes behind them.
  OnEveryShard(*node_, origin, stop, [this, &origin, done = std::move(done)](Result<void>) mutable {
    const auto pass = [](Shard&, Done<void> passed) { passed({}); };
    // Past the service's own frames, so that `done` may destroy it.
    OnEveryShard(*node_, origin, pass,
                 [&origin, done = std::move(done)](Result<void>) mutable { origin.loop().Post(std::move(done)); });
  });
}

void Service::AwaitReleases(Loop& caller, Task done) {
  Shard& origin = ShardOf(caller);
  const auto wait = [](Shard& shard, Done<void> quiet) {
    shard.AwaitQuiet([quiet = std::move(quiet)]() mutable { quiet({}); });
  };
  OnEveryShard(*node_, origin, wait,
               [&origin, done = std::move(done)](Result<void>) mutable { origin.loop().Post(std::move(done)); });
}

void Service::ClockMoved(Loop& caller, Task done) {
  Done<void> answer = [done = std::move(done)](Result<void>) mutable { done(); };
  auto call = Admit(caller, answer);
  if (!call) return;
  const auto look = [](Shard& shard, Done<void> looked) {
    shard.Look([looked = std::move(looked)]() mutable { looked({}); });
  };
  Shard& origin = *call->caller;
  OnEveryShard(*node_, origin, look, std::move(*call));
}

void Service::TakeTopicChanges() {
  Shard& first = *node_->shards[0];
  TopicChanges changes = first.shared_store() == nullptr ? TopicChanges{} : first.shared_store()->TakeTopicChanges();
  if (changes.changed.empty() && changes.dropped.empty() && !registry_->Owes()) return;
  // As calls: the shard is not quiet before they are done.
  const auto taken = [&first](Result<void>) { first.CloseCall(); };
  for (const std::string& topic : changes.dropped) {
    first.OpenCall();
    registry_->TakeDropped(topic, taken);
  }
  registry_->TakeOwed([&first, taken] {
    first.OpenCall();
    return Done<void>(taken);
  });
  for (const HeardTopic& topic : changes.changed) {
    first.OpenCall();
    registry_->Take(topic, taken);
  }
}

void Service::ChangeTopic(Loop& caller, ChangeTopicRequest request, Done<ChangedTopic> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  auto change = [this, request = std::move(request)](Done<ChangedTopic> changed) mutable {
    registry_->Change(std::move(request), std::move(changed));
  };
  Shard& here = *call->caller;
  Ask<ChangedTopic>(here, *node_->shards[0], std::move(change), std::move(*call));
}

void Service::DropTopic(Loop& caller, std::string topic, Done<void> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  auto drop = [this, topic = std::move(topic)](Done<void> dropped) mutable {
    registry_->Drop(std::move(topic), std::move(dropped));
  };
  Shard& here = *call->caller;
  Ask<void>(here, *node_->shards[0], std::move(drop), std::move(*call));
}

void Service::ShowTopic(Loop& caller, std::string topic, Done<TopicReport> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  Shard& origin = *call->caller;
  reporter_->One(origin, std::move(topic), std::move(*call));
}

size_t Service::CountTopics(Loop& caller, std::string_view prefix) const {
  return ShardOf(caller).topics().CountOf(prefix);
}

void Service::NextLeased(Loop& caller, std::string prefix, std::string after, Done<NextTopics> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  Shard& origin = *call->caller;
  reporter_->NextLeased(origin, std::move(prefix), std::move(after), std::move(*call));
}

void Service::Topics(Loop& caller, std::string prefix, TakeTopic take, Done<void> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  Shard& origin = *call->caller;
  reporter_->All(origin, std::move(prefix), std::move(take), std::move(*call));
}

void Service::Total(Loop& caller, Done<Totals> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  Shard& origin = *call->caller;
  reporter_->Total(origin, std::move(*call));
}

void Service::Load(Loop& caller, LoadRequest request, Done<LoadReport> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  Shard& origin = *call->caller;
  loads_->Report(origin, std::move(request), std::move(*call));
}

void Service::InTurn(Loop& caller, Task step) {
  Shard& shard = ShardOf(caller);
  shard.OpenCall();
  shard.InTurn([&shard, step = std::move(step)]() mutable {
    step();
    shard.CloseCall();
  });
}

void Service::Submit(Loop& caller, SubmitRequest request, Done<std::vector<Submitted>> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  if (!request.checked) {
    Status valid = Validate(request, node_->limits, node_->clock.Now());
    if (!valid) return (*call)(std::unexpected(std::move(valid).error()));
  }
  for (NewJob& job : request.jobs) job.delay = node_->clock.RoundUp(job.delay);
  Shard& shard = *call->caller;
  if (TopicEntry* entry = shard.topics().Find(request.topic)) {
    return Scatter<SubmitUse>(*node_, *entry, std::move(request), std::move(*call));
  }
  if (Status valid = ValidateTopicName(request.topic); !valid) {
    return (*call)(std::unexpected(std::move(valid).error()));
  }
  auto create = [this, name = request.topic, prefix = request.prefix](Done<Topic> created) mutable {
    registry_->Ensure(std::move(name), std::move(prefix), std::move(created));
  };
  auto submit = [this, &shard, request = std::move(request), call = std::move(*call)](Result<Topic> topic) mutable {
    if (!topic) return call(std::unexpected(std::move(topic).error()));
    TopicEntry* entry = shard.topics().Find(request.topic);
    if (entry == nullptr) return call(NoSuchTopic(request.topic));  // dropped at once
    Scatter<SubmitUse>(*node_, *entry, std::move(request), std::move(call));
  };
  Ask<Topic>(shard, *node_->shards[0], std::move(create), std::move(submit));
}

template <class Use>
void Service::OnKnownTopic(Loop& caller, typename Use::Request request, Status valid, Done<typename Use::Answer> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  if (!valid) return (*call)(std::unexpected(std::move(valid).error()));
  TopicEntry* entry = call->caller->topics().Find(request.topic);
  if (entry == nullptr) return (*call)(NoSuchTopic(request.topic));
  Scatter<Use>(*node_, *entry, std::move(request), std::move(*call));
}

void Service::Settle(Loop& caller, SettleRequest request, Done<std::vector<SettleOutcome>> done) {
  Status valid = request.checked ? Status{} : Validate(request, node_->limits);
  for (Settlement& each : request.settlements) {
    if (valid && each.delay) each.delay = node_->clock.RoundUp(*each.delay);
  }
  OnKnownTopic<SettleUse>(caller, std::move(request), std::move(valid), std::move(done));
}

void Service::Amend(Loop& caller, AmendRequest request, Done<std::vector<Amended>> done) {
  Status valid = request.checked ? Status{} : Validate(request, node_->limits, node_->clock.Now());
  for (Amendment& each : request.amendments) {
    if (valid) each.delay = node_->clock.RoundUp(each.delay);
  }
  OnKnownTopic<AmendUse>(caller, std::move(request), std::move(valid), std::move(done));
}

void Service::Count(Loop& caller, CountRequest request, Done<std::vector<Counted>> done) {
  Status valid = request.checked ? Status{} : Validate(request, node_->limits);
  OnKnownTopic<CountUse>(caller, std::move(request), std::move(valid), std::move(done));
}

void Service::Find(Loop& caller, FindRequest request, Done<JobBatch> done) {
  TOCSIN_CHECK(request.room == nullptr || request.jobs.size() <= 1);
  Status valid = request.checked ? Status() : Validate(request, node_->limits);
  OnKnownTopic<FindUse>(caller, std::move(request), std::move(valid), std::move(done));
}

ReserveId Service::Reserve(Loop& caller, ReserveRequest request, Done<JobBatch> done) {
  auto call = Admit(caller, done);
  if (!call) return {};
  if (Status valid = Validate(request, node_->limits); !valid) {
    (*call)(std::unexpected(std::move(valid).error()));
    return {};
  }
  Shard& here = *call->caller;
  Shard& home = *node_->shards[node_->placement.HomeOf(request.topic)];
  const uint64_t number = here.NextReserve();
  const IoTime deadline = node_->clock.IoNow() + request.wait;
  auto reserve = [&home, number, deadline, request](Done<JobBatch> answer) mutable {
    home.Reserve({.number = number,
                  .topic = std::move(request.topic),
                  .max = request.max,
                  .lease = request.lease,
                  .holder = std::move(request.consumer),
                  .waits = request.wait > Millis(0),
                  .deadline = deadline,
                  .room = std::move(request.room),
                  .done = std::move(answer)});
  };
  auto answer = [this, &here, &home, number, topic = std::move(request.topic),
                 call = std::move(*call)](Result<JobBatch> result) mutable {
    if (result && !result->jobs.empty() && here.cancelled().contains(number)) {
      const uint32_t slot = result->jobs.front().token.slot;
      Shard& from = *node_->shards[node_->placement.ShardOf(home.index(), slot)];
      here.ReleaseAt(from, LeasesOf(std::move(topic), std::exchange(*result, JobBatch{})));
    }
    call(std::move(result));
  };
  Ask<JobBatch>(here, home, std::move(reserve), std::move(answer));
  return {home.index(), number};
}

void Service::CancelReserve(ReserveId id) {
  if (id.number == 0) return;
  Shard& here = *node_->shards[Shard::CallerOf(id.number)];
  Shard& home = *node_->shards[id.shard];
  here.cancelled().insert(id.number);
  here.OpenCall();
  home.Send([&here, &home, id] {
    home.CancelReserve(id.number);
    // Behind any answer that is on its way.
    here.Send([&here, id] {
      here.cancelled().erase(id.number);
      here.CloseCall();
    });
  });
}

void Service::Release(Loop& caller, const Leases& leases) {
  // Not through Settle: a full mailbox may refuse that, and nobody would try again.
  std::vector<Leases> parts(node_->shards.size());
  const uint32_t home = node_->placement.HomeOf(leases.topic);
  for (const Token& token : leases.tokens) parts[node_->placement.ShardOf(home, token.slot)].tokens.push_back(token);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].tokens.empty()) continue;
    parts[i].topic = leases.topic;
    ShardOf(caller).ReleaseAt(*node_->shards[i], std::move(parts[i]));
  }
}

void Service::Sweep(Loop& caller, std::string topic, SweepKind kind, Done<size_t> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  if (call->caller->topics().Find(topic) == nullptr) return (*call)(NoSuchTopic(topic));
  auto swept = std::make_shared<std::vector<size_t>>(node_->shards.size());
  const auto sweep = [swept, topic = std::move(topic), kind](Shard& shard, Done<void> ended) {
    shard.Sweep(topic, kind, [swept, &shard, ended = std::move(ended)](Result<size_t> result) mutable {
      if (!result) return ended(std::unexpected(std::move(result).error()));
      (*swept)[shard.index()] = *result;
      ended({});
    });
  };
  Shard& origin = *call->caller;
  OnEveryShard(*node_, origin, sweep, [swept, call = std::move(*call)](Result<void> result) mutable {
    if (!result) return call(std::unexpected(std::move(result).error()));
    call(std::accumulate(swept->begin(), swept->end(), size_t{0}));
  });
}

void Service::Operate(Loop& caller, OperateRequest request, Done<OperationReport> done, OperationEnded ended) {
  auto call = Admit(caller, done);
  if (!call) return;
  Shard& here = *call->caller;
  const std::string topic = request.topic;
  auto wanted = std::make_shared<WantedStill>(std::exchange(request.wanted, nullptr));
  auto start = [this, &here, wanted = std::move(wanted), request = std::move(request), ended = std::move(ended),
                call = std::move(*call)](Result<TopicReport> report) mutable {
    if (!report) return call(std::unexpected(std::move(report).error()));
    const TopicFigures& figures = report->figures;
    auto work = [this, ask = AskingOn(here, *node_->shards[0], wanted), request = std::move(request),
                 ended = std::move(ended),
                 jobs = figures.scheduled + figures.leased + figures.dead](Done<OperationReport> answer) mutable {
      operations_->Start(std::move(request), jobs, std::move(ask), std::move(answer), std::move(ended));
    };
    auto answer = [wanted = std::move(wanted), call = std::move(call)](Result<OperationReport> told) mutable {
      wanted.reset();  // the other shard may be the last to forget this function
      call(std::move(told));
    };
    Ask<OperationReport>(here, *node_->shards[0], std::move(work), std::move(answer));
  };
  reporter_->One(here, topic, std::move(start));
}

template <class T>
void Service::AskOperations(Loop& caller, std::string topic, std::function<Result<T>(Operations&)> ask, Done<T> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  Shard& here = *call->caller;
  if (here.topics().Find(topic) == nullptr) return (*call)(NoSuchTopic(topic));
  auto work = [this, ask = std::move(ask)](Done<T> answer) { answer(ask(*operations_)); };
  Ask<T>(here, *node_->shards[0], std::move(work), std::move(*call));
}

void Service::ShowOperation(Loop& caller, std::string topic, std::string id, Done<OperationReport> done) {
  auto show = [topic, id](Operations& operations) { return operations.Show(topic, id); };
  AskOperations<OperationReport>(caller, topic, std::move(show), std::move(done));
}

void Service::ListOperations(Loop& caller, std::string topic, Done<std::vector<OperationReport>> done) {
  auto list = [topic](Operations& operations) { return Result<std::vector<OperationReport>>(operations.List(topic)); };
  AskOperations<std::vector<OperationReport>>(caller, topic, std::move(list), std::move(done));
}

void Service::StopOperation(Loop& caller, std::string topic, std::string id, Done<void> done) {
  auto stop = [topic, id](Operations& operations) { return operations.Stop(topic, id); };
  AskOperations<void>(caller, topic, std::move(stop), std::move(done));
}

void Service::Probe(Loop& caller, std::string topic, Done<Probed> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  Shard& here = *call->caller;
  if (here.topics().Find(topic) == nullptr) return (*call)(NoSuchTopic(topic));
  Shard& home = *node_->shards[node_->placement.HomeOf(topic)];
  auto probe = [&home, topic = std::move(topic)](Done<Probed> answer) { home.Probe(topic, std::move(answer)); };
  Ask<Probed>(here, home, std::move(probe), std::move(*call));
}

}  // namespace tocsin
