#include "core/topic_registry.h"

#include <algorithm>
#include <optional>

#include "core/node.h"
#include "core/scatter.h"
#include "core/shard.h"
#include "core/topic_table.h"

namespace tocsin {
namespace {

constexpr int kTriesMax = 5;  // of a change that meets newer versions

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
  topics_.erase(topic);
  half_changed_.erase(topic);
  std::erase_if(owed_, [&](const Topic& each) { return each.name == topic; });
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

Status TopicRegistry::CheckGiven(std::string_view prefix, const Topic* before, const Topic& after) const {
  // Also if the caller changes another setting: with another address, what somebody else named would sign for that.
  const bool same = before != nullptr && before->delivery == after.delivery;
  if (prefix.empty() || same || !after.delivery.Pushes() || node_.sinks == nullptr) return {};
  return node_.sinks->CheckGiven(after);
}

void TopicRegistry::Keep(const Topic& topic) {
  topics_.insert_or_assign(topic.name, topic);
  making_.erase(topic.name);
}

size_t TopicRegistry::CountOf(std::string_view prefix) const {
  return node_.shards[0]->topics().CountOf(prefix) + making_.CountOf(prefix);
}

Status TopicRegistry::CheckRoom(std::string_view prefix) const {
  const Limits& limits = node_.limits;
  if (topics_.size() + making_.size() >= limits.topics) return TooManyTopics(limits.topics);
  if (prefix.empty() || CountOf(prefix) < limits.topics_per_prefix) return {};
  return FailField(Code::kOverCapacity, "topic",
                   "there may be no more topics than {} whose names begin with {} (limits.topics_per_prefix)",
                   limits.topics_per_prefix, prefix);
}

Result<Topic> TopicRegistry::Changed(const Changing& changing, const Topic* before) const {
  if (before == nullptr && changing.if_unknown == IfUnknown::kRefuse) return NoSuchTopic(changing.topic);
  if (before == nullptr) TOCSIN_TRY(CheckRoom(changing.prefix));
  Topic after = before != nullptr ? *before : DefaultTopic(changing.topic);
  Apply(changing.change, after);
  TOCSIN_TRY(Validate(after));
  // Only if the change names a delivery: a topic can be paused even if its sink could not be made now.
  if (changing.change.delivery) {
    TOCSIN_TRY(CheckGiven(changing.prefix, before, after));
    TOCSIN_TRY(CheckSink(after));
  }
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
  if (created) making_.insert(after.name);
  PutEverywhere(after, [this, changing, after, created](Result<void> result) {
    if (!result && result.error().code != Code::kConflict) {
      auto refuse = [this, changing, after, error = std::move(result).error()](Result<void>) mutable {
        making_.erase(after.name);
        changing->done(std::unexpected(std::move(error)));
      };
      return TakeBack(after, created, std::move(refuse));
    }
    if (!result) making_.erase(after.name);
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
    half_changed_.erase(after.name);
    Keep(after);
    KnowEverywhere(after, [changing, after, created](Result<void>) { changing->done(ChangedTopic{after, created}); });
  });
}

void TopicRegistry::TakeBack(const Topic& refused, bool created, Done<void> done) {
  // Other nodes may use a shared store's topic already, and tell this node of it.
  if (node_.shards[0]->shared_store() != nullptr) return done({});
  created ? RemoveAgain(refused.name, std::move(done)) : PutBack(refused, std::move(done));
}

void TopicRegistry::RemoveAgain(const std::string& topic, Done<void> done) {
  half_dropped_.insert(topic);
  DropEverywhere(topic, [this, topic, done = std::move(done)](Result<void> result) mutable {
    if (result) half_dropped_.erase(topic);
    done(std::move(result));
  });
}

void TopicRegistry::PutBack(const Topic& refused, Done<void> done) {
  Topic before = *Find(refused.name);
  if (before == refused) return done({});  // nothing was to change
  // As a newer version: a start takes the newest that any store has.
  before.version = refused.version + 1;
  const auto put = [before, refused](Shard& shard, Done<void> stored) {
    // Most often all stores have refused. Those write nothing, because they may have little room.
    if (FindTopic(shard.store(), refused.name) != refused) return stored({});
    shard.store().PutBackTopic(before, std::move(stored));
  };
  OnEveryShard(node_, *node_.shards[0], put, [this, before, done = std::move(done)](Result<void> result) mutable {
    Keep(before);
    if (!result) {
      half_changed_.insert(before.name);
      owed_.push_back(before);
    }
    KnowEverywhere(before, std::move(done));
  });
}

void TopicRegistry::Take(const HeardTopic& topic, Done<void> done) {
  Enqueue<void>(topic.name, std::move(done), [this, topic](Done<void> finish) {
    const Topic* const known = Find(topic.name);
    if (known != nullptr && known->version >= topic.version) return finish({});
    AdoptEverywhere(topic, [this, topic, finish = std::move(finish)](Result<void> adopted) mutable {
      if (adopted) return Adopted(topic, std::move(finish));
      AdoptNewest(topic.name, kTriesMax, [this, topic, finish = std::move(finish)](Result<void> result) mutable {
        if (!result) owed_.push_back(topic);
        finish({});
      });
    });
  });
}

void TopicRegistry::TakeOwed(const std::function<Done<void>()>& done) {
  for (const Topic& topic : std::exchange(owed_, {})) TakeAgain(topic, done());
}

void TopicRegistry::TakeAgain(const Topic& topic, Done<void> done) {
  Enqueue<void>(topic.name, std::move(done), [this, topic](Done<void> finish) {
    const Topic* const known = Find(topic.name);
    const bool missed = half_changed_.contains(topic.name) && known != nullptr && *known == topic;
    if (known != nullptr && known->version >= topic.version && !missed) return finish({});
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
    topics_.erase(topic);
    ForgetEverywhere(topic, std::move(finish));
  });
}

void TopicRegistry::Adopt(const Topic& topic, int tries, Done<void> done) {
  PutEverywhere(topic, [this, topic, tries, done = std::move(done)](Result<void> result) mutable {
    if (!result && result.error().code == Code::kConflict && tries > 1) {
      return AdoptNewest(topic.name, tries - 1, std::move(done));
    }
    if (!result) return done(std::move(result));
    Adopted(topic, std::move(done));
  });
}

void TopicRegistry::Adopted(const Topic& topic, Done<void> done) {
  half_dropped_.erase(topic.name);
  half_changed_.erase(topic.name);
  Keep(topic);
  KnowEverywhere(topic, std::move(done));
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

void TopicRegistry::AdoptEverywhere(const HeardTopic& topic, Done<void> done) {
  const auto adopt = [topic](Shard& shard, Done<void> adopted) {
    if (shard.shared_store()->AdoptTopic(topic)) return adopted({});
    adopted(Fail(Code::kConflict, "a later version of topic {} is known", topic.name));
  };
  OnEveryShard(node_, *node_.shards[0], adopt, std::move(done));
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
