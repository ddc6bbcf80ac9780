// Work on other shards, with the answers put together on the caller's thread. Three ways:
//  - Ask: one shard does it. A full mailbox answers kOverloaded.
//  - OnEveryShard: all shards do it. Never refused.
//  - Scatter: each shard does its part of a batch, and the answers come in the order of the request. If all slots
//    of a batch live on the caller's shard, it goes to that store unchanged.
//
// Threads: all three are called on the caller's thread. A Scattered's `request` is only read after the parts are sent,
// a part belongs to its shard until that has answered, and the rest to the caller's thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/node.h"
#include "core/requests.h"
#include "core/shard.h"

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

inline std::unexpected<Error> Overloaded() { return Fail(Code::kOverloaded, "the shard's mailbox is full"); }

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
/// say which slot an item belongs to, and the outcome of an item that a full mailbox refused.
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
  static Submitted Refused() { return {.outcome = SubmitOutcome::kOverloaded}; }
};

struct SettleUse : BatchUse<&SettleRequest::settlements, &Store::Settle> {
  static uint32_t SlotOf(const Item& settlement, const Topic&, uint32_t) { return settlement.token.slot; }
  static SettleOutcome Refused() { return SettleOutcome::kOverloaded; }
};

struct AmendUse : BatchUse<&AmendRequest::amendments, &Store::Amend> {
  static uint32_t SlotOf(const Item& amendment, const Topic& topic, uint32_t) {
    return SlotFor(amendment.job.key, amendment.job.id, topic.slots);
  }
  static Amended Refused() { return {.outcome = AmendOutcome::kOverloaded}; }
};

struct CountUse : BatchUse<&CountRequest::events, &Store::Count> {
  static uint32_t SlotOf(const Item& event, const Topic& topic, uint32_t) {
    return SlotFor(event.job.key, event.job.id, topic.slots);
  }
  static Counted Refused() { return {.outcome = CountOutcome::kOverloaded}; }
};

/// Changes nothing, and has no outcome for a single item.
struct FindUse : BatchUse<&FindRequest::jobs, &Store::Find> {
  static uint32_t SlotOf(const Item& job, const Topic& topic, uint32_t) {
    return SlotFor(job.key, job.id, topic.slots);
  }
};

/// A batch that several shards work on.
template <class Use>
struct Scattered final : Round {
  using Answer = typename Use::Answer;
  struct Part {
    std::vector<typename Use::Item> items;
    std::vector<uint32_t> at;  // where each stood in the request
  };

  void TakePart(const Part& part, Result<Answer> result) {
    ++taken;
    if (!result) return Take(std::unexpected(std::move(result).error()));
    for (size_t i = 0; i < part.at.size(); ++i) OutcomesOf(answer)[part.at[i]] = std::move(OutcomesOf(*result)[i]);
    if constexpr (requires { answer.bytes; }) {
      for (auto& bytes : result->bytes) answer.bytes.push_back(std::move(bytes));
    }
    Take({});
  }

  void RefusePart(const Part& part) {
    if constexpr (requires { Use::Refused(); }) {
      for (const uint32_t at : part.at) answer[at] = Use::Refused();
      Take({});
    } else {
      Take(Overloaded());
    }
  }

  void End(Status status) override {
    if (status && taken == 0) status = Overloaded();
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
  size_t taken = 0;         // parts that a shard took
};

/// On the shard's own thread.
template <class Use, class Then>
void RunPart(Shard& shard, const typename Use::Request& request, std::span<const typename Use::Item> items, Then then) {
  (shard.store().*Use::kRun)(request.topic, items, shard.Now(), [&shard, then = std::move(then)](auto result) mutable {
    shard.Note(result);
    then(std::move(result));
  });
  if constexpr (!std::is_same_v<Use, FindUse>) shard.Changed();
}

template <class Use>
void SendParts(Node& node, std::shared_ptr<Scattered<Use>> batch) {
  Shard& caller = *batch->call.caller;
  for (size_t i = 0; i < batch->parts.size(); ++i) {
    const auto& part = batch->parts[i];
    if (part.items.empty()) continue;
    batch->Expect();
    Shard& shard = *node.shards[i];
    if (&shard == &caller) {
      RunPart<Use>(shard, batch->request, part.items,
                   [batch, &part](auto result) { batch->TakePart(part, std::move(result)); });
      continue;
    }
    auto work = [&shard, &caller, batch, &part] {
      RunPart<Use>(shard, batch->request, part.items, [&caller, batch, &part](auto result) {
        caller.Send([batch, &part, result = std::move(result)]() mutable { batch->TakePart(part, std::move(result)); });
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
  if (own) return RunPart<Use>(caller, request, items, std::move(call));
  auto batch = std::make_shared<Scattered<Use>>();
  batch->call = std::move(call);
  batch->parts.resize(node.shards.size());
  Scattered<Use>::OutcomesOf(batch->answer).resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    auto& part = batch->parts[shards[i]];
    part.items.push_back(std::move(items[i]));
    part.at.push_back(static_cast<uint32_t>(i));
  }
  items.clear();
  batch->request = std::move(request);
  SendParts<Use>(node, std::move(batch));
}

}  // namespace tocsin
