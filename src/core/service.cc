#include "core/service.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "base/check.h"
#include "core/every_shard.h"
#include "core/list_cursor.h"
#include "core/rounding.h"
#include "core/scatter.h"
#include "core/shard.h"
#include "core/sweep.h"
#include "core/topic_registry.h"
#include "core/topics_everywhere.h"
#include "core/validate.h"

namespace tocsin {
namespace {

std::unexpected<Error> Overloaded() { return Fail(Code::kOverloaded, "the shard's mailbox is full"); }

Lateness LatenessOf(const metrics::Histogram::Snapshot& recorded) {
  return {.count = recorded.count,
          .p50 = recorded.Quantile(0.5),
          .p99 = recorded.Quantile(0.99),
          .p999 = recorded.Quantile(0.999),
          .max = recorded.Quantile(1)};
}

}  // namespace

class Service::Impl final : public Node {
 public:
  Impl(const std::vector<ShardParts>& parts, Clock& the_clock, metrics::Registry& the_metrics, Limits the_limits,
       Sinks* the_sinks);

  void Start();
  void Stop(Loop& caller, Task done);
  void ClockMoved(Loop& caller, Task done);
  Status Ready() const;
  void ChangeTopic(Loop& caller, ChangeTopicRequest request, Done<ChangedTopic> done);
  void DropTopic(Loop& caller, std::string topic, Done<void> done);
  void Topics(Loop& caller, std::string only, Done<Report> done);
  void Submit(Loop& caller, SubmitRequest request, Done<std::vector<Submitted>> done);
  ReserveId Reserve(Loop& caller, ReserveRequest request, Done<JobBatch> done);
  void CancelReserve(ReserveId id);
  void Release(Loop& caller, const std::string& topic, const JobBatch& jobs);
  bool Knows(Loop& caller, std::string_view topic) { return ShardOf(caller).topics().Find(topic) != nullptr; }
  void List(Loop& caller, ListRequest request, Done<Page> done);
  void Sweep(Loop& caller, std::string topic, SweepKind kind, Done<size_t> done);
  void Probe(Loop& caller, const std::string& topic, Done<Probed> done);
  /// Settle, Amend, Count and Find.
  template <class Use>
  void OnKnownTopic(Loop& caller, typename Use::Request request, Status valid, Done<typename Use::Answer> done);

  Shard& ShardOf(const Loop& loop);

 private:
  struct Listing;

  /// Opens a call, or answers it where the service takes none any more.
  template <class T>
  std::optional<Call<T>> Admit(Loop& caller, Done<T>& done);
  template <class T>
  static void Refuse(Call<T> call, Error error) {
    call.Answer(std::unexpected(std::move(error)));
  }

  /// Has the registry on shard 0 do `change`; the call is answered on its caller's thread.
  template <class T, class Change>
  void ChangeTopics(Call<T> call, Change change);
  /// On shard 0's thread: what other nodes did to topics, and what of it is still owed.
  void TakeTopicChanges();
  /// Whether calls are taken.
  Status TakesCalls() const;
  void ListNext(std::shared_ptr<Listing> listing);

  TopicsEverywhere everywhere_{*this};
  TopicRegistry registry_;
  std::vector<std::vector<Topic>> missing_;  // what each store lacks at the start
  const uint32_t start_ = std::random_device{}();
};

Service::Impl::Impl(const std::vector<ShardParts>& parts, Clock& the_clock, metrics::Registry& the_metrics,
                    Limits the_limits, Sinks* the_sinks)
    : Node(parts.size(), the_clock, the_metrics, the_limits, the_sinks),
      registry_(everywhere_, the_limits.topics, the_sinks),
      missing_(parts.size()) {
  TOCSIN_CHECK(!parts.empty() && parts.size() <= Waiters::kLanesMax);
  on_advanced = [this] { TakeTopicChanges(); };
  // A crash between two stores leaves a change of a topic in some of them only: the newest version holds everywhere.
  std::map<std::string, Topic> newest;
  std::vector<std::map<std::string, uint64_t>> versions(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    shards.push_back(
        std::make_unique<Shard>(*this, static_cast<uint32_t>(i), *parts[i].loop, *parts[i].store, parts[i].shared));
    for (TopicFigures& figures : parts[i].store->Topics()) {
      versions[i][figures.topic.name] = figures.topic.version;
      Topic& topic = newest[figures.topic.name];
      if (topic.name.empty() || figures.topic.version > topic.version) topic = std::move(figures.topic);
    }
  }
  for (const auto& [name, topic] : newest) {
    registry_.Restore(topic);
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto held = versions[i].find(name);
      if (held == versions[i].end() || held->second < topic.version) missing_[i].push_back(topic);
      shards[i]->KnowTopic(topic);
    }
  }
}

Shard& Service::Impl::ShardOf(const Loop& loop) {
  const auto at = std::ranges::find_if(shards, [&](const auto& shard) { return &shard->loop() == &loop; });
  TOCSIN_CHECK(at != shards.end());
  return **at;
}

Status Service::Impl::TakesCalls() const {
  if (failed.load(std::memory_order_relaxed)) {
    return Fail(Code::kStorageFailed, "the store has failed: the server has to be restarted");
  }
  if (stopping.load(std::memory_order_relaxed)) return Fail(Code::kShuttingDown, "the server is shutting down");
  return {};
}

Status Service::Impl::Ready() const {
  TOCSIN_TRY(TakesCalls());
  return troubles.OfAll();
}

template <class T>
std::optional<Call<T>> Service::Impl::Admit(Loop& caller, Done<T>& done) {
  if (Status open = TakesCalls(); !open) {
    done(std::unexpected(std::move(open).error()));
    return std::nullopt;
  }
  Shard& shard = ShardOf(caller);
  shard.OpenCall();
  return Call<T>{&shard, std::move(done)};
}

void Service::Impl::Start() {
  for (size_t i = 0; i < shards.size(); ++i) {
    Shard& shard = *shards[i];
    shard.Send([&shard, missing = std::move(missing_[i])]() mutable { shard.Begin(std::move(missing)); });
  }
}

void Service::Impl::Stop(Loop& caller, Task done) {
  const bool twice = stopping.exchange(true);
  TOCSIN_CHECK(!twice);
  Shard& origin = ShardOf(caller);
  const auto stop = [](Shard& shard, Done<void> quiet) {
    shard.Stop([quiet = std::move(quiet)]() mutable { quiet({}); });
  };
  // Announcements may still be in the mailboxes of quiet shards: a second round goes behind them.
  OnEvery(*this, origin, stop, [this, &origin, done = std::move(done)](Result<void>) mutable {
    const auto pass = [](Shard&, Done<void> passed) { passed({}); };
    // Past the service's own frames, so that `done` may destroy it.
    OnEvery(*this, origin, pass,
            [&origin, done = std::move(done)](Result<void>) mutable { origin.loop().Post(std::move(done)); });
  });
}

void Service::Impl::ClockMoved(Loop& caller, Task done) {
  Done<void> answer = [done = std::move(done)](Result<void>) mutable { done(); };
  auto call = Admit<void>(caller, answer);
  if (!call) return;
  const auto look = [](Shard& shard, Done<void> looked) {
    shard.Look([looked = std::move(looked)]() mutable { looked({}); });
  };
  Shard& origin = *call->caller;
  OnEvery(*this, origin, look,
          [call = std::move(*call)](Result<void> result) mutable { call.Answer(std::move(result)); });
}

void Service::Impl::TakeTopicChanges() {
  Shard& first = *shards[0];
  TopicChanges changes = first.shared_store() == nullptr ? TopicChanges{} : first.shared_store()->TakeTopicChanges();
  if (changes.changed.empty() && changes.dropped.empty() && !registry_.Owes()) return;
  // As calls: the shard is not quiet before they are done.
  const auto taken = [&first] { first.CloseCall(); };
  for (std::string& topic : changes.dropped) {
    first.OpenCall();
    registry_.TakeDropped(std::move(topic), taken);
  }
  std::vector<Topic> owed = registry_.TakeOwed();
  for (auto* const list : {&owed, &changes.changed}) {
    for (Topic& topic : *list) {
      first.OpenCall();
      registry_.Take(std::move(topic), taken);
    }
  }
}

template <class T, class Change>
void Service::Impl::ChangeTopics(Call<T> call, Change change) {
  Shard& caller = *call.caller;
  Shard& first = *shards[0];
  if (&caller == &first) {
    return change(registry_, [call = std::move(call)](Result<T> result) mutable { call.Answer(std::move(result)); });
  }
  auto shared = std::make_shared<Call<T>>(std::move(call));
  const bool sent = first.TrySend([this, &caller, shared, change = std::move(change)]() mutable {
    change(registry_, [&caller, shared](Result<T> result) {
      caller.Send([shared, result = std::move(result)]() mutable { shared->Answer(std::move(result)); });
    });
  });
  if (!sent) shared->Answer(Overloaded());
}

void Service::Impl::ChangeTopic(Loop& caller, ChangeTopicRequest request, Done<ChangedTopic> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  ChangeTopics(std::move(*call),
               [request = std::move(request)](TopicRegistry& registry, Done<ChangedTopic> changed) mutable {
                 registry.Change(std::move(request.topic), request.change, request.if_unknown, std::move(changed));
               });
}

void Service::Impl::DropTopic(Loop& caller, std::string topic, Done<void> done) {
  Done<Topic> answer = [done = std::move(done)](Result<Topic> result) mutable {
    if (!result) return done(std::unexpected(std::move(result).error()));
    done({});
  };
  auto call = Admit(caller, answer);
  if (!call) return;
  ChangeTopics(std::move(*call), [topic = std::move(topic)](TopicRegistry& registry, Done<Topic> changed) mutable {
    registry.Drop(std::move(topic), std::move(changed));
  });
}

void Service::Impl::Topics(Loop& caller, std::string only, Done<Report> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  auto read = std::make_shared<std::vector<std::shared_ptr<const ShardFigures>>>(shards.size());
  const auto look = [read, only = std::move(only)](Shard& shard, Done<void> looked) {
    auto figures = shard.Figures();
    if (!only.empty()) {
      auto one = std::make_shared<ShardFigures>();
      std::ranges::copy_if(*figures, std::back_inserter(*one),
                           [&](const auto& each) { return each.topic.name == only; });
      figures = std::move(one);
    }
    (*read)[shard.index()] = std::move(figures);
    looked({});
  };
  Shard& origin = *call->caller;
  OnEvery(*this, origin, look, [&origin, read, call = std::move(*call)](Result<void>) mutable {
    Report report;
    metrics::Histogram::Snapshot all;
    for (TopicFigures& figures : Sum(*read)) {
      TopicReport& topic = report.topics.emplace_back(std::move(figures));
      const TopicEntry* entry = origin.topics().Find(topic.figures.topic.name);
      if (entry == nullptr || topic.figures.delivered == 0) continue;
      const auto lateness = entry->lateness->Read();
      all.Add(lateness);
      topic.lateness = LatenessOf(lateness);
    }
    report.lateness = LatenessOf(all);
    call.Answer(std::move(report));
  });
}

void Service::Impl::Submit(Loop& caller, SubmitRequest request, Done<std::vector<Submitted>> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  if (Status valid = Validate(request, limits, clock.Now()); !valid) {
    return Refuse(std::move(*call), std::move(valid).error());
  }
  for (NewJob& job : request.jobs) job.delay = RoundUp(job.delay, clock);
  Shard& shard = *call->caller;
  if (TopicEntry* entry = shard.topics().Find(request.topic)) {
    return Scatter<SubmitUse>(*this, *entry, std::move(request), std::move(*call));
  }
  if (Status valid = ValidateTopicName(request.topic); !valid) {
    return Refuse(std::move(*call), std::move(valid).error());
  }
  const std::string name = request.topic;
  shard.OpenCall();
  Call<Topic> made{&shard, [this, &shard, request = std::move(request), call = std::move(*call)](auto result) mutable {
                     if (!result) return Refuse(std::move(call), std::move(result).error());
                     TopicEntry* entry = shard.topics().Find(request.topic);
                     if (entry == nullptr) return call.Answer(NoSuchTopic(request.topic));  // dropped at once
                     Scatter<SubmitUse>(*this, *entry, std::move(request), std::move(call));
                   }};
  ChangeTopics(std::move(made),
               [name](TopicRegistry& registry, Done<Topic> changed) { registry.Ensure(name, std::move(changed)); });
}

template <class Use>
void Service::Impl::OnKnownTopic(Loop& caller, typename Use::Request request, Status valid,
                                 Done<typename Use::Answer> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  if (!valid) return Refuse(std::move(*call), std::move(valid).error());
  TopicEntry* entry = call->caller->topics().Find(request.topic);
  if (entry == nullptr) return call->Answer(NoSuchTopic(request.topic));
  Scatter<Use>(*this, *entry, std::move(request), std::move(*call));
}

ReserveId Service::Impl::Reserve(Loop& caller, ReserveRequest request, Done<JobBatch> done) {
  auto admitted = Admit(caller, done);
  if (!admitted) return {};
  if (Status valid = Validate(request, limits); !valid) {
    Refuse(std::move(*admitted), std::move(valid).error());
    return {};
  }
  Shard& here = *admitted->caller;
  const uint32_t home_index = placement.HomeOf(request.topic);
  Shard& home = *shards[home_index];
  const uint64_t number = here.NextReserve();
  auto call = std::make_shared<Call<JobBatch>>(std::move(*admitted));
  Waiters::Reserve reserve{.number = number,
                           .topic = request.topic,
                           .max = request.max,
                           .lease = request.lease,
                           .waits = request.wait > Millis(0),
                           .deadline = clock.IoNow() + request.wait,
                           .done = {}};
  reserve.done = [this, &here, &home, number, call, topic = std::move(request.topic)](Result<JobBatch> result) mutable {
    RunOn(home, here, [this, &here, &home, number, call, topic, result = std::move(result)]() mutable {
      if (!here.cancelled().empty() && here.cancelled().contains(number) && result && !result->jobs.empty()) {
        const uint32_t slot = result->jobs.front().token.slot;
        here.ReleaseAt(*shards[placement.ShardOf(home.index(), slot)], topic, std::exchange(*result, JobBatch{}));
      }
      call->Answer(std::move(result));
    });
  };
  if (&home == &here) {
    home.Reserve(std::move(reserve));
  } else if (!home.TrySend([&home, reserve = std::move(reserve)]() mutable { home.Reserve(std::move(reserve)); })) {
    call->Answer(Overloaded());
  }
  return {home_index, number};
}

void Service::Impl::CancelReserve(ReserveId id) {
  if (id.number == 0) return;
  Shard& here = *shards[Shard::CallerOf(id.number)];
  Shard& home = *shards[id.shard];
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

void Service::Impl::Release(Loop& caller, const std::string& topic, const JobBatch& jobs) {
  // Never refused by a full mailbox, as a settle may be: nobody would try again.
  std::vector<JobBatch> parts(shards.size());
  const uint32_t home = placement.HomeOf(topic);
  for (const JobView& job : jobs.jobs) parts[placement.ShardOf(home, job.token.slot)].jobs.push_back(job);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].jobs.empty()) ShardOf(caller).ReleaseAt(*shards[i], topic, std::move(parts[i]));
  }
}

struct Service::Impl::Listing {
  Call<Page> call;
  std::string topic;
  State state;
  size_t limit;
  uint32_t home;
  uint32_t spread;
  ListCursor at;
  uint32_t start;
  Page page;

  /// True when the listing is over.
  bool Take(Page part, uint32_t lanes) {
    for (JobView& job : part.jobs.jobs) page.jobs.jobs.push_back(std::move(job));
    for (auto& bytes : part.jobs.bytes) page.jobs.bytes.push_back(std::move(bytes));
    at.inner = std::move(part.cursor);
    if (at.inner.empty() && ++at.lane == lanes) return true;
    page.cursor = CursorText(start, at);
    return page.jobs.jobs.size() >= limit || part.jobs.more;
  }
};

void Service::Impl::List(Loop& caller, ListRequest request, Done<Page> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  if (Status valid = Validate(request, limits); !valid) return Refuse(std::move(*call), std::move(valid).error());
  const TopicEntry* entry = call->caller->topics().Find(request.topic);
  if (entry == nullptr) return call->Answer(NoSuchTopic(request.topic));
  const uint32_t spread = placement.SpreadOf(entry->topic.slots);
  auto at = ParseCursor(start_, request.cursor, spread);
  if (!at) return Refuse(std::move(*call), std::move(at).error());
  ListNext(std::make_shared<Listing>(std::move(*call), std::move(request.topic), request.state, request.limit,
                                     entry->home, spread, std::move(*at), start_, Page{}));
}

void Service::Impl::ListNext(std::shared_ptr<Listing> listing) {
  Shard& here = *listing->call.caller;
  Shard& there = *shards[placement.ShardOf(listing->home, listing->at.lane)];
  auto read = [this, &here, &there, listing] {
    const size_t room = listing->limit - listing->page.jobs.jobs.size();
    there.store().List(listing->topic, listing->state, listing->at.inner, room, there.Now(),
                       [this, &here, &there, listing](Result<Page> part) {
                         there.Note(part);
                         RunOn(there, here, [this, listing, part = std::move(part)]() mutable {
                           if (!part) return Refuse(std::move(listing->call), std::move(part).error());
                           if (!listing->Take(std::move(*part), listing->spread)) {
                             // Through the loop, so that other work gets its turn between two parts.
                             return listing->call.caller->Send([this, listing] { ListNext(listing); });
                           }
                           if (listing->at.lane == listing->spread) listing->page.cursor.clear();
                           listing->call.Answer(std::move(listing->page));
                         });
                       });
  };
  if (&here == &there) return read();
  if (!there.TrySend(std::move(read))) listing->call.Answer(Overloaded());
}

void Service::Impl::Sweep(Loop& caller, std::string topic, SweepKind kind, Done<size_t> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  const TopicEntry* entry = call->caller->topics().Find(topic);
  if (entry == nullptr) return call->Answer(NoSuchTopic(topic));
  auto total = std::make_shared<std::vector<size_t>>(shards.size());
  const auto sweep = [total, topic, kind](Shard& shard, Done<void> swept) {
    SweepAll(shard, topic, kind, [total, &shard, swept = std::move(swept)](Result<size_t> result) mutable {
      if (!result) return swept(std::unexpected(std::move(result).error()));
      (*total)[shard.index()] = *result;
      swept({});
    });
  };
  Shard& origin = *call->caller;
  OnEvery(*this, origin, sweep, [total, call = std::move(*call)](Result<void> result) mutable {
    if (!result) return Refuse(std::move(call), std::move(result).error());
    size_t sum = 0;
    for (const size_t part : *total) sum += part;
    call.Answer(sum);
  });
}

void Service::Impl::Probe(Loop& caller, const std::string& topic, Done<Probed> done) {
  auto admitted = Admit(caller, done);
  if (!admitted) return;
  Shard& here = *admitted->caller;
  if (here.topics().Find(topic) == nullptr) return admitted->Answer(NoSuchTopic(topic));
  Shard& home = *shards[placement.HomeOf(topic)];
  auto call = std::make_shared<Call<Probed>>(std::move(*admitted));
  auto probe = [&here, &home, topic, call] {
    home.Probe(topic, [&here, &home, call](Result<Probed> result) {
      RunOn(home, here, [call, result = std::move(result)]() mutable { call->Answer(std::move(result)); });
    });
  };
  if (&home == &here) return probe();
  if (!home.TrySend(std::move(probe))) call->Answer(Overloaded());
}

Service::Service(std::vector<ShardParts> shards, Clock& clock, metrics::Registry& metrics, Limits limits, Sinks* sinks)
    : impl_(std::make_unique<Impl>(shards, clock, metrics, limits, sinks)) {}

Service::~Service() = default;

void Service::OnFailed(std::move_only_function<void(const Error&)> failed) { impl_->on_failed = std::move(failed); }

void Service::Start() { impl_->Start(); }

void Service::Stop(Loop& caller, Task done) { impl_->Stop(caller, std::move(done)); }

void Service::ClockMoved(Loop& caller, Task done) { impl_->ClockMoved(caller, std::move(done)); }

void Service::ChangeTopic(Loop& caller, ChangeTopicRequest request, Done<ChangedTopic> done) {
  impl_->ChangeTopic(caller, std::move(request), std::move(done));
}

void Service::DropTopic(Loop& caller, std::string topic, Done<void> done) {
  impl_->DropTopic(caller, std::move(topic), std::move(done));
}

void Service::Topics(Loop& caller, std::string only, Done<Report> done) {
  impl_->Topics(caller, std::move(only), std::move(done));
}

void Service::Submit(Loop& caller, SubmitRequest request, Done<std::vector<Submitted>> done) {
  impl_->Submit(caller, std::move(request), std::move(done));
}

ReserveId Service::Reserve(Loop& caller, ReserveRequest request, Done<JobBatch> done) {
  return impl_->Reserve(caller, std::move(request), std::move(done));
}

void Service::CancelReserve(ReserveId id) { impl_->CancelReserve(id); }

void Service::Release(Loop& caller, const std::string& topic, const JobBatch& jobs) {
  impl_->Release(caller, topic, jobs);
}

bool Service::Knows(Loop& caller, std::string_view topic) { return impl_->Knows(caller, topic); }

Service::Bundle::Bundle(Service& service, Loop& caller) : service_(service), caller_(caller) {
  service_.impl_->ShardOf(caller_).BeginBundle();
}

Service::Bundle::~Bundle() { service_.impl_->ShardOf(caller_).EndBundle(); }

void Service::Settle(Loop& caller, SettleRequest request, Done<std::vector<SettleOutcome>> done) {
  Status valid = Validate(request, impl_->limits);
  for (Settlement& each : request.settlements) {
    if (valid && each.delay) each.delay = RoundUp(*each.delay, impl_->clock);
  }
  impl_->OnKnownTopic<SettleUse>(caller, std::move(request), std::move(valid), std::move(done));
}

void Service::Amend(Loop& caller, AmendRequest request, Done<std::vector<Amended>> done) {
  Status valid = Validate(request, impl_->limits, impl_->clock.Now());
  for (Amendment& each : request.amendments) {
    if (valid) each.delay = RoundUp(each.delay, impl_->clock);
  }
  impl_->OnKnownTopic<AmendUse>(caller, std::move(request), std::move(valid), std::move(done));
}

void Service::Count(Loop& caller, CountRequest request, Done<std::vector<Counted>> done) {
  Status valid = Validate(request, impl_->limits);
  impl_->OnKnownTopic<CountUse>(caller, std::move(request), std::move(valid), std::move(done));
}

void Service::Find(Loop& caller, FindRequest request, Done<JobBatch> done) {
  Status valid = Validate(request, impl_->limits);
  impl_->OnKnownTopic<FindUse>(caller, std::move(request), std::move(valid), std::move(done));
}

void Service::List(Loop& caller, ListRequest request, Done<Page> done) {
  impl_->List(caller, std::move(request), std::move(done));
}

void Service::Sweep(Loop& caller, std::string topic, SweepKind kind, Done<size_t> done) {
  impl_->Sweep(caller, std::move(topic), kind, std::move(done));
}

void Service::Probe(Loop& caller, std::string topic, Done<Probed> done) {
  impl_->Probe(caller, topic, std::move(done));
}

Status Service::Ready() const { return impl_->Ready(); }

const Limits& Service::limits() const { return impl_->limits; }

}  // namespace tocsin
