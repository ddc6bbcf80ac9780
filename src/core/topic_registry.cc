#include "core/topic_registry.h"

#include <algorithm>
#include <optional>

#include "core/node.h"
#include "core/scatter.h"
#include "core/shard.h"
#include "core/topic_table.h"

namespace tocsin {
namespace {

constexpr int kTriesMax = 5;           // of a change that meets newer versions
constexpr size_t kPrefixesMax = 1000;  // that are remembered

std::optional<Topic> FindTopic(const Store& store, std::string_view name) {
  auto figures = store.FindFigures(name);
  return figures ? std::optional(std::move(figures->topic)) : std::nullopt;
}

}  // namespace

TopicRegistry::TopicRegistry(Node& node) : node_(node) {
  topics_.reserve(node.limits.topics);  // to grow later would hold up the shard
}

void TopicRegistry::Restore(const Topic& topic) {
  const Topic* const known = Find(topic.name);
  if (known == nullptr || known->version < topic.version) Keep(topic);
}

const Topic* TopicRegistry::Find(std::string_view topic) const {
  const auto at = topics_.find(topic);
  return at == topics_.end() ? nullptr : &at->second;
}

template <class T, class Step>
void TopicRegistry::Enqueue(const std::string& topic, Done<T> done, Step step) {
  Done<T> finish = [this, topic, done = std::move(done)](Result<T> result) mutable {
    done(std::move(result));
    queues_.find(topic)->second.busy = false;
    Drain(topic);
  };
  queues_[topic].waiting.push_back(
      [step = std::move(step), finish = std::move(finish)]() mutable { step(std::move(finish)); });
  Drain(topic);
}

void TopicRegistry::Drain(const std::string& topic) {
  Queue& queue = queues_.find(topic)->second;
  if (queue.draining) return;
  queue.draining = true;
  while (!queue.busy && !queue.waiting.empty()) {
    Task next = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    queue.busy = true;
    next();
  }
  queue.draining = false;
  if (!queue.busy) queues_.erase(topic);
}

void TopicRegistry::Ensure(std::string topic, std::string prefix, Done<Topic> done) {
  Done<ChangedTopic> ensured = [done = std::move(done)](Result<ChangedTopic> result) mutable {
    if (!result) return done(std::unexpected(std::move(result).error()));
    done(std::move(result->topic));
  };
  Begin({.topic = std::move(topic), .prefix = std::move(prefix), .done = std::move(ensured)});
}

void TopicRegistry::Change(ChangeTopicRequest request, Done<ChangedTopic> done) {
  Begin({.topic = std::move(request.topic),
         .change = std::move(request.change),
         .if_unknown = request.if_unknown,
         .prefix = std::move(request.prefix),
         .confirm = true,
         .done = std::move(done)});
}

void TopicRegistry::Begin(Changing changing) {
  Done<ChangedTopic> done = std::move(changing.done);
  auto shared = std::make_shared<Changing>(std::move(changing));
  Enqueue<ChangedTopic>(shared->topic, std::move(done), [this, shared](Done<ChangedTopic> finish) {
    shared->done = std::move(finish);
    RunChange(shared);
  });
}

void TopicRegistry::Drop(std::string topic, Done<void> done) {
  Enqueue<void>(topic, std::move(done),
                [this, topic](Done<void> finish) { RunDrop(topic, kTriesMax, std::move(finish)); });
}

void TopicRegistry::RunDrop(const std::string& topic, int tries, Done<void> done) {
  const auto at = topics_.find(topic);
  if (at == topics_.end() && !half_dropped_.contains(topic)) return done(NoSuchTopic(topic));
  Lose(topic);
  half_dropped_.insert(topic);
  DropEverywhere(topic, [this, topic, tries, done = std::move(done)](Result<void> result) mutable {
    if (!result) return DropFailed(topic, std::move(result).error(), tries, std::move(done));
    half_dropped_.erase(topic);
    done({});
  });
}

void TopicRegistry::DropFailed(const std::string& topic, Error error, int tries, Done<void> done) {
  if (error.code == Code::kConflict && tries > 1) {
    return AdoptNewest(topic, kTriesMax, [this, topic, tries, done = std::move(done)](Result<void> adopted) mutable {
      if (!adopted) return done(std::move(adopted));
      RunDrop(topic, tries - 1, std::move(done));
    });
  }
  // It may not have been dropped at all: then other nodes go on with it, and so must this one.
  const auto held = Held(topic);
  if (!held) return done(std::unexpected(std::move(error)));
  Keep(*held);
  KnowEverywhere(*held, [error = std::move(error), done = std::move(done)](Result<void>) mutable {
    done(std::unexpected(std::move(error)));
  });
}

Status TopicRegistry::CheckSink(const Topic& topic) const {
  if (!topic.delivery.Pushes()) return {};
  if (node_.sinks != nullptr) return node_.sinks->Check(topic);
  return FailField(Code::kInvalidArgument, "delivery.sink", "delivery.sink is \"{}\": this server has no sinks",
                   topic.delivery.sink);
}

void TopicRegistry::Tally(std::string_view topic, int by) {
  for (auto& [prefix, count] : by_prefix_) {
    if (topic.starts_with(prefix)) count += static_cast<size_t>(by);
  }
}

void TopicRegistry::Keep(const Topic& topic) {
  const bool fresh = topics_.insert_or_assign(topic.name, topic).second;
  if (making_.erase(topic.name) == 0 && fresh) Tally(topic.name, 1);
}

void TopicRegistry::Lose(const std::string& topic) {
  if (topics_.erase(topic) > 0) Tally(topic, -1);
}

void TopicRegistry::BeginMaking(const std::string& topic) {
  if (making_.insert(topic).second) Tally(topic, 1);
}

void TopicRegistry::EndMaking(const std::string& topic) {
  if (making_.erase(topic) > 0) Tally(topic, -1);
}

size_t TopicRegistry::CountOf(std::string_view prefix) {
  const auto known = by_prefix_.find(prefix);
  if (known != by_prefix_.end()) return known->second;
  if (by_prefix_.size() >= kPrefixesMax) by_prefix_.clear();
  const auto matches = [prefix](const std::string& name) { return name.starts_with(prefix); };
  const size_t count =
      node_.shards[0]->topics().CountOf(prefix) + static_cast<size_t>(std::ranges::count_if(making_, matches));
  by_prefix_.emplace(prefix, count);
  return count;
}

Status TopicRegistry::CheckRoom(std::string_view prefix) {
  const Limits& limits = node_.limits;
  if (topics_.size() + making_.size() >= limits.topics) return TooManyTopics(limits.topics);
  if (prefix.empty() || CountOf(prefix) < limits.topics_per_prefix) return {};
  return FailField(Code::kOverCapacity, "topic",
                   "{} topics exist whose names begin with {}: no more are allowed (limits.topics_per_prefix)",
                   limits.topics_per_prefix, prefix);
}

Result<Topic> TopicRegistry::Changed(const Changing& changing, const Topic* before) {
  if (before == nullptr && changing.if_unknown == IfUnknown::kRefuse) return NoSuchTopic(changing.topic);
  if (before == nullptr) TOCSIN_TRY(CheckRoom(changing.prefix));
  Topic after = before != nullptr ? *before : DefaultTopic(changing.topic);
  Apply(changing.change, after);
  TOCSIN_TRY(Validate(after));
  // Only if the change names a delivery: a topic can be paused even if its sink could not be made now.
  if (changing.change.delivery) TOCSIN_TRY(CheckSink(after));
  if (before != nullptr && after.slots != before->slots) {
    return FailField(Code::kConflict, "slots", "slots is {}: the topic has {}, fixed when it was created", after.slots,
                     before->slots);
  }
  if (before == nullptr || after != *before) ++after.version;
  return after;
}

void TopicRegistry::RunChange(const std::shared_ptr<Changing>& changing) {
  const auto at = topics_.find(changing->topic);
  const Topic* const before = at == topics_.end() ? nullptr : &at->second;
  Result<Topic> after = Changed(*changing, before);
  if (!after) return changing->done(std::unexpected(std::move(after).error()));
  if (before != nullptr && *after == *before && !changing->confirm) {
    return changing->done(ChangedTopic{*std::move(after), false});
  }
  Store(changing, *after, before == nullptr);
}

void TopicRegistry::Store(const std::shared_ptr<Changing>& changing, const Topic& after, bool created) {
  if (created) BeginMaking(after.name);
  PutEverywhere(after, [this, changing, after, created](Result<void> result) {
    if (!result) EndMaking(after.name);
    if (!result && result.error().code != Code::kConflict) {
      return changing->done(std::unexpected(std::move(result).error()));
    }
    if (!result && ++changing->tries == kTriesMax) {
      return changing->done(FailField(Code::kConflict, "topic",
                                      "topic {} is being changed through other nodes; try again", changing->topic));
    }
    if (!result) {
      return AdoptNewest(changing->topic, kTriesMax, [this, changing](Result<void> adopted) {
        if (!adopted) return changing->done(std::unexpected(std::move(adopted).error()));
        RunChange(changing);
      });
    }
    half_dropped_.erase(after.name);
    Keep(after);
    KnowEverywhere(after, [changing, after, created](Result<void>) { changing->done(ChangedTopic{after, created}); });
  });
}

void TopicRegistry::Take(const Topic& topic, Done<void> done) {
  Enqueue<void>(topic.name, std::move(done), [this, topic](Done<void> finish) {
    const auto at = topics_.find(topic.name);
    if (at != topics_.end() && at->second.version >= topic.version) return finish({});
    Adopt(topic, kTriesMax, [this, topic, finish = std::move(finish)](Result<void> result) mutable {
      if (!result) owed_.push_back(topic);
      finish({});
    });
  });
}

void TopicRegistry::TakeDropped(const std::string& topic, Done<void> done) {
  Enqueue<void>(topic, std::move(done), [this, topic](Done<void> finish) {
    std::erase_if(owed_, [&](const Topic& each) { return each.name == topic; });
    const auto at = topics_.find(topic);
    // If it equals what the store has, this node has made it again, and the news of the drop is old.
    if (at == topics_.end() || Held(topic) == at->second) return finish({});
    Lose(topic);
    ForgetEverywhere(topic, std::move(finish));
  });
}

void TopicRegistry::Adopt(const Topic& topic, int tries, Done<void> done) {
  PutEverywhere(topic, [this, topic, tries, done = std::move(done)](Result<void> result) mutable {
    if (!result && result.error().code == Code::kConflict && tries > 1) {
      return AdoptNewest(topic.name, tries - 1, std::move(done));
    }
    if (!result) return done(std::move(result));
    half_dropped_.erase(topic.name);
    Keep(topic);
    KnowEverywhere(topic, std::move(done));
  });
}

void TopicRegistry::AdoptNewest(const std::string& topic, int tries, Done<void> done) {
  auto found = std::make_shared<std::vector<std::optional<Topic>>>(node_.shards.size());
  const auto look = [topic, found](Shard& shard, Done<void> looked) {
    (*found)[shard.index()] = FindTopic(shard.store(), topic);
    looked({});
  };
  OnEveryShard(node_, *node_.shards[0], look, [this, found, tries, done = std::move(done)](Result<void>) mutable {
    const auto version = [](const std::optional<Topic>& each) { return each ? each->version : 0; };
    const auto newest = std::ranges::max_element(*found, {}, version);
    if (!*newest) return done({});  // dropped meanwhile: nothing stands in the way any more
    Adopt(**newest, tries, std::move(done));
  });
}

void TopicRegistry::PutEverywhere(const Topic& topic, Done<void> done) {
  const auto put = [topic](Shard& shard, Done<void> stored) { shard.store().PutTopic(topic, std::move(stored)); };
  OnEveryShard(node_, *node_.shards[0], put, std::move(done));
}

void TopicRegistry::KnowEverywhere(const Topic& topic, Done<void> done) {
  const auto know = [topic](Shard& shard, Done<void> known) {
    shard.KnowTopic(topic);
    known({});
  };
  OnEveryShard(node_, *node_.shards[0], know, std::move(done));
}

void TopicRegistry::DropEverywhere(const std::string& topic, Done<void> done) {
  const auto drop = [&node = node_, topic](Shard& shard, Done<void> dropped) {
    shard.ForgetTopic(topic);
    // Empties the topic in batches first, because a store may drop what is left in one go.
    shard.Sweep(topic, SweepKind::kEmpty, [&node, &shard, topic, dropped = std::move(dropped)](Result<size_t>) mutable {
      shard.store().DropTopic(topic, [&node, &shard, topic, dropped = std::move(dropped)](Result<void> result) mutable {
        node.board.Forget(shard.index(), topic);
        dropped(std::move(result));
      });
    });
  };
  OnEveryShard(node_, *node_.shards[0], drop, [this, topic, done = std::move(done)](Result<void> result) mutable {
    node_.metrics.DropSeries("topic", topic);
    done(std::move(result));
  });
}

void TopicRegistry::ForgetEverywhere(const std::string& topic, Done<void> done) {
  const auto forget = [&node = node_, topic](Shard& shard, Done<void> forgotten) {
    shard.ForgetTopic(topic);
    if (shard.shared_store() != nullptr) shard.shared_store()->ForgetTopic(topic);
    node.board.Forget(shard.index(), topic);
    forgotten({});
  };
  OnEveryShard(node_, *node_.shards[0], forget, [this, topic, done = std::move(done)](Result<void> result) mutable {
    node_.metrics.DropSeries("topic", topic);
    done(std::move(result));
  });
}

std::optional<Topic> TopicRegistry::Held(const std::string& topic) const {
  return FindTopic(node_.shards[0]->store(), topic);
}

}  // namespace tocsin
