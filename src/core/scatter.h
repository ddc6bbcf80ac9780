// Scatter: takes a batch apart by shard, has each shard's store do its part, and puts the answers together in the order
// of the request. A batch whose slots all live on the caller's shard goes to its store as it is.
//
// Threads: Scatter runs on the caller's thread. A Gather's `request` is only read after the parts are sent, a part
// belongs to its shard until that has answered, and the rest to the caller's thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/shard.h"

namespace tocsin {

/// A call that the service has taken: it keeps its caller's shard from being quiet until it is answered.
template <class T>
struct Call {
  Shard* caller = nullptr;
  Done<T> done;

  /// On the caller's thread, once.
  void Answer(Result<T> result) {
    done(std::move(result));
    caller->CloseCall();
  }
};

struct SubmitUse {
  using Request = SubmitRequest;
  using Item = NewJob;
  using Answer = std::vector<Submitted>;
  static constexpr bool kChanges = true;
  static std::vector<Item>& Items(Request& request) { return request.jobs; }
  static uint32_t SlotOf(Item& job, const Topic& topic, uint32_t batch_slot) {
    job.slot = job.key.empty() && job.id.empty() ? batch_slot : SlotFor(job.key, job.id, topic.slots);
    return job.slot;
  }
  static void Run(Store& store, const Request& request, std::span<const Item> jobs, Moment now, Done<Answer> done) {
    store.Submit(request.topic, jobs, now, std::move(done));
  }
  static Submitted Refused() { return {.outcome = SubmitOutcome::kOverloaded}; }
};

struct SettleUse {
  using Request = SettleRequest;
  using Item = Settlement;
  using Answer = std::vector<SettleOutcome>;
  static constexpr bool kChanges = true;
  static std::vector<Item>& Items(Request& request) { return request.settlements; }
  static uint32_t SlotOf(const Item& settlement, const Topic&, uint32_t) { return settlement.token.slot; }
  static void Run(Store& store, const Request& request, std::span<const Item> settlements, Moment now,
                  Done<Answer> done) {
    store.Settle(request.topic, settlements, now, std::move(done));
  }
  static SettleOutcome Refused() { return SettleOutcome::kOverloaded; }
};

struct AmendUse {
  using Request = AmendRequest;
  using Item = Amendment;
  using Answer = std::vector<Amended>;
  static constexpr bool kChanges = true;
  static std::vector<Item>& Items(Request& request) { return request.amendments; }
  static uint32_t SlotOf(const Item& amendment, const Topic& topic, uint32_t) {
    return SlotFor(amendment.job.key, amendment.job.id, topic.slots);
  }
  static void Run(Store& store, const Request& request, std::span<const Item> amendments, Moment now,
                  Done<Answer> done) {
    store.Amend(request.topic, amendments, now, std::move(done));
  }
  static Amended Refused() { return {.outcome = AmendOutcome::kOverloaded}; }
};

struct CountUse {
  using Request = CountRequest;
  using Item = CountEvent;
  using Answer = std::vector<Counted>;
  static constexpr bool kChanges = true;
  static std::vector<Item>& Items(Request& request) { return request.events; }
  static uint32_t SlotOf(const Item& event, const Topic& topic, uint32_t) {
    return SlotFor(event.job.key, event.job.id, topic.slots);
  }
  static void Run(Store& store, const Request& request, std::span<const Item> events, Moment now, Done<Answer> done) {
    store.Count(request.topic, events, now, std::move(done));
  }
  static Counted Refused() { return {.outcome = CountOutcome::kOverloaded}; }
};

struct FindUse {
  using Request = FindRequest;
  using Item = JobRef;
  using Answer = JobBatch;
  static constexpr bool kChanges = false;
  static std::vector<Item>& Items(Request& request) { return request.jobs; }
  static uint32_t SlotOf(const Item& job, const Topic& topic, uint32_t) {
    return SlotFor(job.key, job.id, topic.slots);
  }
  static void Run(Store& store, const Request& request, std::span<const Item> jobs, Moment now, Done<Answer> done) {
    store.Find(request.topic, jobs, now, std::move(done));
  }
};

template <class T>
void Resize(std::vector<T>& answer, size_t size) {
  answer.resize(size);
}
inline void Resize(JobBatch& answer, size_t size) { answer.jobs.resize(size); }

template <class T>
void Merge(std::vector<T>& answer, std::vector<T> part, const std::vector<uint32_t>& at) {
  for (size_t i = 0; i < at.size(); ++i) answer[at[i]] = std::move(part[i]);
}
inline void Merge(JobBatch& answer, JobBatch part, const std::vector<uint32_t>& at) {
  for (size_t i = 0; i < at.size(); ++i) answer.jobs[at[i]] = std::move(part.jobs[i]);
  for (auto& bytes : part.bytes) answer.bytes.push_back(std::move(bytes));
}

template <class Use>
struct Gather {
  struct Part {
    std::vector<typename Use::Item> items;
    std::vector<uint32_t> at;  // where each stood in the request
  };

  typename Use::Request request;
  Call<typename Use::Answer> call;
  typename Use::Answer answer;
  std::vector<Part> parts;  // by shard
  std::optional<Error> error;
  size_t left = 0;  // parts that have not answered, and one for the scattering itself
  size_t done = 0;  // parts that a shard took

  void Take(size_t part, Result<typename Use::Answer> result) {
    ++done;
    if (result) {
      Merge(answer, std::move(*result), parts[part].at);
    } else if (!error) {
      error = std::move(result).error();
    }
    Leave();
  }

  void Refuse(size_t part) {
    if constexpr (requires { Use::Refused(); }) {
      for (const uint32_t at : parts[part].at) answer[at] = Use::Refused();
    } else {
      error = Error{Code::kOverloaded, "a shard's mailbox is full", {}};
    }
    Leave();
  }

  void Leave() {
    if (--left > 0) return;
    if (!error && done == 0) error = Error{Code::kOverloaded, "the shard's mailbox is full", {}};
    if (error) return call.Answer(std::unexpected(std::move(*error)));
    call.Answer(std::move(answer));
  }
};

/// On the shard's own thread.
template <class Use, class Then>
void RunPart(Shard& shard, const typename Use::Request& request, std::span<const typename Use::Item> items, Then then) {
  using Answer = typename Use::Answer;
  Use::Run(shard.store(), request, items, shard.Now(), [&shard, then = std::move(then)](Result<Answer> result) mutable {
    shard.Note(result);
    then(std::move(result));
  });
  if constexpr (Use::kChanges) shard.Changed();
}

template <class Use>
void SendParts(Node& node, std::shared_ptr<Gather<Use>> gather) {
  Shard& caller = *gather->call.caller;
  const auto send = [&](size_t part) {
    Shard& shard = *node.shards[part];
    const std::span<const typename Use::Item> items = gather->parts[part].items;
    ++gather->left;
    if (&shard == &caller) {
      return RunPart<Use>(shard, gather->request, items,
                          [gather, part](auto result) { gather->Take(part, std::move(result)); });
    }
    auto work = [&shard, &caller, gather, part, items] {
      RunPart<Use>(shard, gather->request, items, [&caller, gather, part](auto result) {
        caller.Send([gather, part, result = std::move(result)]() mutable { gather->Take(part, std::move(result)); });
      });
    };
    caller.Deliver(shard, std::move(work), [gather, part] { gather->Refuse(part); });
  };
  gather->left = 1;
  for (size_t part = 0; part < gather->parts.size(); ++part) {
    if (!gather->parts[part].items.empty()) send(part);
  }
  gather->Leave();
}

template <class Use>
void Scatter(Node& node, TopicEntry& entry, typename Use::Request request, Call<typename Use::Answer> call) {
  Shard& caller = *call.caller;
  auto& items = Use::Items(request);
  const uint32_t batch_slot = NextBatchSlot(node.placement, entry, caller.index());
  static thread_local std::vector<uint32_t> shards;  // scratch: not used any more when a store is called
  shards.resize(items.size());
  bool own = true;
  for (size_t i = 0; i < items.size(); ++i) {
    shards[i] = node.placement.ShardOf(entry.home, Use::SlotOf(items[i], entry.topic, batch_slot));
    own = own && shards[i] == caller.index();
  }
  if (own) {
    return RunPart<Use>(caller, request, items,
                        [call = std::move(call)](auto result) mutable { call.Answer(std::move(result)); });
  }
  auto gather = std::make_shared<Gather<Use>>();
  gather->call = std::move(call);
  gather->parts.resize(node.shards.size());
  Resize(gather->answer, items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    auto& part = gather->parts[shards[i]];
    part.items.push_back(std::move(items[i]));
    part.at.push_back(static_cast<uint32_t>(i));
  }
  items.clear();
  gather->request = std::move(request);
  SendParts<Use>(node, std::move(gather));
}

}  // namespace tocsin
