// Work on other shards, with the answers put together on the caller's thread. Three ways:
//  - Ask: one shard does it. A full mailbox answers kOverloaded.
//  - OnEveryShard: all shards do it. Never refused.
//  - Scatter: each shard does its part of a batch, and the answers come in the order of the request. If all slots
//    of a batch live on the caller's shard, it goes to that store unchanged. What is too much for one turn takes
//    several (steps.h).
//
// Threads: all three are called on the caller's thread. A Scattered's `request` is only read after the parts are sent,
// a part belongs to its shard until that has answered, and the rest to the caller's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/episode.h"
#include "core/node.h"
#include "core/requests.h"
#include "core/shard.h"
#include "core/steps.h"
#include "model/names.h"

namespace tocsin {

/// A call that the service has taken. It keeps its caller's shard from being quiet until it is answered.
template <class T>
struct Call {
  Shard* caller = nullptr;
  Done<T> done;

  /// Answers it. On the caller's thread, once.
  void operator()(Result<T> result) {
    done(std::move(result));
    caller->CloseCall();
  }
};

inline std::unexpected<Error> Overloaded() {
  NoteOverload("a shard's mailbox is full");
  return Fail(Code::kOverloaded, "the shard's mailbox is full");
}

inline std::unexpected<Error> NoMemory() {
  NoteOverload("no memory is left for the jobs of an answer");
  return Fail(Code::kOverloaded, "no memory is left for the jobs that were found; try again");
}

inline bool Wanted(const WantedStill& wanted) { return !wanted || wanted(); }
inline std::unexpected<Error> ClientGone() { return Fail(Code::kUnavailable, "the client has gone"); }

/// Runs `work` on `there`: at once if that is the thread we are on.
template <class Work>
void RunOn(Shard& here, Shard& there, Work work) {
  if (&here == &there) return work();
  there.Send(std::move(work));
}

/// Runs `work(answer)` on `there`; `done` runs here with the answer.
template <class T, class Work>
void Ask(Shard& here, Shard& there, Work work, Done<T> done) {
  if (&here == &there) return work(std::move(done));
  auto shared = std::make_shared<Done<T>>(std::move(done));
  const bool sent = there.TrySend([&here, shared, work = std::move(work)]() mutable {
    work([&here, shared](Result<T> result) {
      here.Send([shared, result = std::move(result)]() mutable { (*shared)(std::move(result)); });
    });
  });
  if (!sent) (*shared)(Overloaded());
}

/// Waits for the answers of several shards. Belongs to the caller's thread.
class Round {
 public:
  virtual ~Round() = default;

  void Expect() { ++left_; }
  /// One of the answers that were expected. Also called once by whoever expects them, after the last Expect.
  void Take(Status status) {
    if (!status && status_) status_ = std::move(status);
    if (--left_ == 0) End(std::move(status_));
  }

 private:
  /// All have answered; with the first error if there is one.
  virtual void End(Status status) = 0;

  size_t left_ = 1;
  Status status_;
};

/// Runs `work` on every shard, then `all` on `origin`, with the first error if there is one. On the thread of `origin`.
inline void OnEveryShard(Node& node, Shard& origin, const std::function<void(Shard&, Done<void>)>& work,
                         Done<void> all) {
  struct Every final : Round {
    explicit Every(Done<void> the_all) : all(std::move(the_all)) {}
    void End(Status status) override { all(std::move(status)); }
    Done<void> all;
  };
  auto round = std::make_shared<Every>(std::move(all));
  for (const auto& pointer : node.shards) {
    Shard& shard = *pointer;
    round->Expect();
    Done<void> done = [&shard, &origin, round](Result<void> result) {
      shard.Note(result);
      RunOn(shard, origin, [round, result = std::move(result)]() mutable { round->Take(std::move(result)); });
    };
    RunOn(origin, shard, [&shard, work, done = std::move(done)]() mutable { work(shard, std::move(done)); });
  }
  round->Take({});
}

/// What Scatter has to know of a kind of batch: where its items are and what the store does with them. Derived classes
/// say which slot an item belongs to, and the outcome of an item that failed while others did not.
template <auto kItemsOf, auto kRunOf>
struct BatchUse;
template <class R, class I, class A, std::vector<I> R::* kItemsOf,
          void (Store::*kRunOf)(std::string_view, std::span<const I>, Moment, Done<A>)>
struct BatchUse<kItemsOf, kRunOf> {
  using Request = R;
  using Item = I;
  using Answer = A;
  static constexpr auto kItems = kItemsOf;
  static constexpr auto kRun = kRunOf;
};

struct SubmitUse : BatchUse<&SubmitRequest::jobs, &Store::Submit> {
  static uint32_t SlotOf(Item& job, const Topic& topic, uint32_t batch_slot) {
    job.slot = job.key.empty() && job.id.empty() ? batch_slot : SlotFor(job.key, job.id, topic.slots);
    return job.slot;
  }
  static Submitted Failed(Code code) { return {.outcome = FailedOutcome<SubmitOutcome>(code)}; }
};

struct SettleUse : BatchUse<&SettleRequest::settlements, &Store::Settle> {
  static uint32_t SlotOf(const Item& settlement, const Topic&, uint32_t) { return settlement.token.slot; }
  static SettleOutcome Failed(Code code) { return FailedOutcome<SettleOutcome>(code); }
};

struct AmendUse : BatchUse<&AmendRequest::amendments, &Store::Amend> {
  static uint32_t SlotOf(const Item& amendment, const Topic& topic, uint32_t) {
    return SlotFor(amendment.job, topic.slots);
  }
  static Amended Failed(Code code) { return {.outcome = FailedOutcome<AmendOutcome>(code)}; }
};

struct CountUse : BatchUse<&CountRequest::events, &Store::Count> {
  static uint32_t SlotOf(const Item& event, const Topic& topic, uint32_t) { return SlotFor(event.job, topic.slots); }
  static Counted Failed(Code code) { return {.outcome = FailedOutcome<CountOutcome>(code)}; }
};

/// Changes nothing, and has no outcome for a single item. Its jobs need room.
struct FindUse {
  using Request = FindRequest;
  using Item = JobRef;
  using Answer = JobBatch;
  static constexpr auto kItems = &FindRequest::jobs;
  static uint32_t SlotOf(const Item& job, const Topic& topic, uint32_t) { return SlotFor(job, topic.slots); }
};

/// A batch that several shards work on.
template <class Use>
struct Scattered final : Round {
  using Answer = typename Use::Answer;
  using Items = std::span<const typename Use::Item>;
  struct Part {
    std::vector<typename Use::Item> items;
    std::vector<uint32_t> at;  // where each stood in the request; empty: there too
    size_t steps = 1;

    size_t At(size_t i) const { return at.empty() ? i : at[i]; }
    void CountSteps() {
      steps = 0;
      for (Items left = items; !left.empty(); left = left.subspan(FirstStep(left))) ++steps;
    }
  };

  /// The answer for `count` items of the part.
  void TakeStep(const Part& part, size_t from, size_t count, Result<Answer> result) {
    ++taken;
    if (!result) return FailStep(part, from, count, std::move(result).error());
    for (size_t i = 0; i < count; ++i) OutcomesOf(answer)[part.At(from + i)] = std::move(OutcomesOf(*result)[i]);
    if constexpr (requires { answer.bytes; }) {
      for (auto& bytes : result->bytes) answer.bytes.push_back(std::move(bytes));
    }
    Take({});
  }

  void RefusePart(const Part& part) {
    Status status;
    if constexpr (requires { Use::Failed(Code::kOverloaded); }) {
      NoteOverload("a shard's mailbox is full");
      for (size_t i = 0; i < part.items.size(); ++i) answer[part.At(i)] = Use::Failed(Code::kOverloaded);
    } else {
      status = Overloaded();
    }
    for (size_t i = 0; i < part.steps; ++i) Take(status);
  }

  /// If others succeed, an error for the whole would hide it.
  void FailStep(const Part& part, size_t from, size_t count, Error error) {
    if constexpr (requires { Use::Failed(error.code); }) {
      if (NothingWasDone(error.code) || error.code == Code::kUnavailable) {
        for (size_t i = 0; i < count; ++i) answer[part.At(from + i)] = Use::Failed(error.code);
        ++failed;
        if (!first_error || NothingWasDone(first_error->code)) first_error = std::move(error);
        return Take({});
      }
    }
    Take(std::unexpected(std::move(error)));
  }

  void End(Status status) override {
    if (status && taken == 0) status = Overloaded();
    if (status && failed == taken && first_error) status = std::unexpected(std::move(*first_error));
    if (!status) return call(std::unexpected(std::move(status).error()));
    call(std::move(answer));
  }

  static auto& OutcomesOf(Answer& answer) {
    if constexpr (requires { answer.jobs; }) {
      return answer.jobs;
    } else {
      return answer;
    }
  }

  typename Use::Request request;
  Call<Answer> call;
  Answer answer;
  std::vector<Part> parts;  // by shard
  size_t taken = 0;         // steps that a shard took
  size_t failed = 0;        // of those
  std::optional<Error> first_error;
};

/// On the shard's own thread.
template <class Use, class Then>
void RunPart(Shard& shard, const typename Use::Request& request, std::span<const typename Use::Item> items, Then then) {
  if constexpr (std::is_same_v<Use, FindUse>) {
    auto take = [&shard, then = std::move(then)](Result<JobBatch> found) mutable {
      shard.Note(found);
      found && found->no_room ? then(NoMemory()) : then(std::move(found));
    };
    shard.store().Find(request.topic, items, request.room, shard.Now(), std::move(take));
  } else {
    auto take = [&shard, then = std::move(then)](auto result) mutable {
      shard.Note(result);
      then(std::move(result));
    };
    (shard.store().*Use::kRun)(request.topic, items, shard.Now(), std::move(take));
    shard.Changed();
  }
}

/// The part from the item `from` on, a step in each turn. Does not wait for the answer of one step before the next.
/// `take(from, count, result)` is called for each, in any order.
template <class Use, class TakeStep>
void RunSteps(Shard& shard, std::shared_ptr<Scattered<Use>> batch, const typename Scattered<Use>::Part& part,
              size_t from, TakeStep take) {
  const auto left = typename Scattered<Use>::Items(part.items).subspan(from);
  const size_t count = FirstStep(left);
  RunPart<Use>(shard, batch->request, left.first(count),
               [take, from, count](auto result) { take(from, count, std::move(result)); });
  if (count == left.size()) return;
  shard.InTurn([&shard, batch = std::move(batch), &part, from = from + count, take = std::move(take)]() mutable {
    RunSteps<Use>(shard, std::move(batch), part, from, std::move(take));
  });
}

template <class Use>
void SendParts(Node& node, std::shared_ptr<Scattered<Use>> batch) {
  Shard& caller = *batch->call.caller;
  for (size_t i = 0; i < batch->parts.size(); ++i) {
    auto& part = batch->parts[i];
    if (part.items.empty()) continue;
    part.CountSteps();
    for (size_t step = 0; step < part.steps; ++step) batch->Expect();
    Shard& shard = *node.shards[i];
    if (&shard == &caller) {
      RunSteps<Use>(shard, batch, part, 0, [batch, &part](size_t from, size_t count, auto result) {
        batch->TakeStep(part, from, count, std::move(result));
      });
      continue;
    }
    auto work = [&shard, &caller, batch, &part] {
      RunSteps<Use>(shard, batch, part, 0, [&caller, batch, &part](size_t from, size_t count, auto result) {
        caller.Send([batch, &part, from, count, result = std::move(result)]() mutable {
          batch->TakeStep(part, from, count, std::move(result));
        });
      });
    };
    caller.Deliver(shard, std::move(work), [batch, &part] { batch->RefusePart(part); });
  }
  batch->Take({});
}

template <class Use>
void Scatter(Node& node, TopicEntry& entry, typename Use::Request request, Call<typename Use::Answer> call) {
  Shard& caller = *call.caller;
  auto& items = request.*Use::kItems;
  const uint32_t batch_slot = NextBatchSlot(node.placement, entry, caller.index());
  static thread_local std::vector<uint32_t> shards;  // scratch: not used any more when a store is called
  shards.resize(items.size());
  bool own = true;
  for (size_t i = 0; i < items.size(); ++i) {
    shards[i] = node.placement.ShardOf(entry.home, Use::SlotOf(items[i], entry.topic, batch_slot));
    own = own && shards[i] == caller.index();
  }
  const bool steps = TakesSteps(std::span<const typename Use::Item>(items));
  if (own && !steps) return RunPart<Use>(caller, request, items, std::move(call));
  auto batch = std::make_shared<Scattered<Use>>();
  batch->call = std::move(call);
  batch->parts.resize(node.shards.size());
  Scattered<Use>::OutcomesOf(batch->answer).resize(items.size());
  if (own) {
    batch->parts[caller.index()].items = std::move(items);
  } else {
    for (size_t i = 0; i < items.size(); ++i) {
      auto& part = batch->parts[shards[i]];
      part.items.push_back(std::move(items[i]));
      part.at.push_back(static_cast<uint32_t>(i));
    }
  }
  items.clear();
  batch->request = std::move(request);
  SendParts<Use>(node, std::move(batch));
}

}  // namespace tocsin
