#include "core/topic_registry.h"

#include <algorithm>

#include "core/node.h"
#include "core/scatter.h"
#include "core/shard.h"
#include "core/topic_table.h"

namespace tocsin {
namespace {

constexpr int kTriesMax = 5;  // of a change that meets newer versions

std::optional<Topic> FindTopic(const Store& store, std::string_view name) {
  auto topics = store.Topics();
  const auto at = std::ranges::find_if(topics, [&](const TopicFigures& each) { return each.topic.name == name; });
  return at == topics.end() ? std::nullopt : std::optional(std::move(at->topic));
}

}  // namespace

void TopicRegistry::Ensure(std::string topic, Done<Topic> done) {
  auto changing = std::make_shared<Changing>();
  changing->topic = std::move(topic);
  changing->done = [done = std::move(done)](Result<ChangedTopic> result) mutable {
    if (!result) return done(std::unexpected(std::move(result).error()));
    done(std::move(result->topic));
  };
  Begin(std::move(changing));
}

void TopicRegistry::Change(std::string topic, TopicChange change, IfUnknown if_unknown, Done<ChangedTopic> done) {
  Begin(std::make_shared<Changing>(std::move(topic), change, if_unknown, true, std::move(done)));
}

void TopicRegistry::Begin(std::shared_ptr<Changing> changing) {
  const std::string topic = changing->topic;
  Enqueue(topic, [this, changing = std::move(changing)] { RunChange(changing); });
}

void TopicRegistry::Drop(std::string topic, Done<void> done) {
  Enqueue(topic, [this, topic, done = std::move(done)]() mutable { RunDrop(topic, kTriesMax, std::move(done)); });
}

void TopicRegistry::Enqueue(const std::string& topic, Step step) {
  queues_[topic].waiting.push_back(std::move(step));
  Drain(topic);
}

void TopicRegistry::Drain(const std::string& topic) {
  Queue& queue = queues_.find(topic)->second;
  if (queue.draining) return;
  queue.draining = true;
  while (!queue.busy && !queue.waiting.empty()) {
    Step next = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    queue.busy = true;
    next();
  }
  queue.draining = false;
  if (!queue.busy) queues_.erase(topic);
}

void TopicRegistry::RunDrop(const std::string& topic, int tries, Done<void> done) {
  const auto at = topics_.find(topic);
  if (at == topics_.end() && !half_dropped_.contains(topic)) {
    return Finish<void>(topic, NoSuchTopic(topic), std::move(done));
  }
  if (at != topics_.end()) topics_.erase(at);
  half_dropped_.insert(topic);
  DropEverywhere(topic, [this, topic, tries, done = std::move(done)](Result<void> result) mutable {
    if (!result) return DropFailed(topic, std::move(result).error(), tries, std::move(done));
    half_dropped_.erase(topic);
    Finish<void>(topic, {}, std::move(done));
  });
}

void TopicRegistry::DropFailed(const std::string& topic, Error error, int tries, Done<void> done) {
  if (error.code == Code::kConflict && tries > 1) {
    return AdoptNewest(topic, kTriesMax, [this, topic, tries, done = std::move(done)](Result<void> adopted) mutable {
      if (adopted) return RunDrop(topic, tries - 1, std::move(done));
      Finish<void>(topic, std::unexpected(std::move(adopted).error()), std::move(done));
    });
  }
  auto finish = [this, topic, error = std::move(error), done = std::move(done)]() mutable {
    Finish<void>(topic, std::unexpected(std::move(error)), std::move(done));
  };
  // It may not have been dropped at all: then other nodes go on with it, and so must this one.
  const auto held = Held(topic);
  if (!held) return finish();
  topics_.insert_or_assign(topic, *held);
  KnowEverywhere(*held, std::move(finish));
}

Status TopicRegistry::CheckSink(const Topic& topic) const {
  if (!topic.delivery.Pushes()) return {};
  if (node_.sinks != nullptr) return node_.sinks->Check(topic);
  return FailField(Code::kInvalidArgument, "delivery.sink", "delivery.sink is \"{}\": this server has no sinks",
                   topic.delivery.sink);
}

Result<Topic> TopicRegistry::Changed(const Changing& changing, const Topic* before) const {
  if (before == nullptr && changing.if_unknown == IfUnknown::kRefuse) return NoSuchTopic(changing.topic);
  if (before == nullptr && topics_.size() >= node_.limits.topics) {
    return FailField(Code::kOverCapacity, "topic", "{} topics exist: no more are allowed", node_.limits.topics);
  }
  Topic after = before != nullptr ? *before : DefaultTopic(changing.topic);
  Apply(changing.change, after);
  TOCSIN_TRY(Validate(after));
  // Other settings can be changed, and a topic paused, though its sink could not be made now.
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
  if (!after) {
    return Finish<ChangedTopic>(changing->topic, std::unexpected(std::move(after).error()), std::move(changing->done));
  }
  if (before != nullptr && *after == *before && !changing->confirm) {
    return Finish<ChangedTopic>(changing->topic, ChangedTopic{*std::move(after), false}, std::move(changing->done));
  }
  Store(changing, *after, before == nullptr);
}

void TopicRegistry::Store(const std::shared_ptr<Changing>& changing, const Topic& after, bool created) {
  PutEverywhere(after, [this, changing, after, created](Result<void> result) {
    const auto refuse = [&](std::unexpected<Error> error) {
      Finish<ChangedTopic>(changing->topic, std::move(error), std::move(changing->done));
    };
    if (!result && result.error().code != Code::kConflict) return refuse(std::unexpected(std::move(result).error()));
    if (!result && ++changing->tries == kTriesMax) {
      return refuse(FailField(Code::kConflict, "topic", "topic {} is being changed through other nodes; try again",
                              changing->topic));
    }
    if (!result) {
      return AdoptNewest(changing->topic, kTriesMax, [this, changing](Result<void> adopted) {
        if (adopted) return RunChange(changing);
        Finish<ChangedTopic>(changing->topic, std::unexpected(std::move(adopted).error()), std::move(changing->done));
      });
    }
    half_dropped_.erase(after.name);
    topics_.insert_or_assign(after.name, after);
    KnowEverywhere(after, [this, changing, after, created] {
      Finish<ChangedTopic>(changing->topic, ChangedTopic{after, created}, std::move(changing->done));
    });
  });
}

void TopicRegistry::Take(Topic topic, Task done) {
  const std::string name = topic.name;
  Enqueue(name, [this, topic = std::move(topic), done = std::move(done)]() mutable {
    const auto at = topics_.find(topic.name);
    if (at != topics_.end() && at->second.version >= topic.version) return Finish(topic.name, std::move(done));
    Adopt(topic, kTriesMax, [this, topic, done = std::move(done)](Result<void> result) mutable {
      if (!result) owed_.push_back(topic);
      Finish(topic.name, std::move(done));
    });
  });
}

void TopicRegistry::TakeDropped(std::string topic, Task done) {
  Enqueue(topic, [this, topic, done = std::move(done)]() mutable { RunTakeDropped(topic, std::move(done)); });
}

void TopicRegistry::RunTakeDropped(const std::string& topic, Task done) {
  std::erase_if(owed_, [&](const Topic& each) { return each.name == topic; });
  const auto at = topics_.find(topic);
  // The same as the store has: it was made again through this node, and the word of the drop is old.
  if (at == topics_.end() || Held(topic) == at->second) return Finish(topic, std::move(done));
  topics_.erase(at);
  ForgetEverywhere(topic, [this, topic, done = std::move(done)]() mutable { Finish(topic, std::move(done)); });
}

void TopicRegistry::Adopt(const Topic& topic, int tries, Done<void> done) {
  PutEverywhere(topic, [this, topic, tries, done = std::move(done)](Result<void> result) mutable {
    if (!result && result.error().code == Code::kConflict && tries > 1) {
      return AdoptNewest(topic.name, tries - 1, std::move(done));
    }
    if (!result) return done(std::move(result));
    half_dropped_.erase(topic.name);
    topics_.insert_or_assign(topic.name, topic);
    KnowEverywhere(topic, [done = std::move(done)]() mutable { done({}); });
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

void TopicRegistry::KnowEverywhere(const Topic& topic, Task done) {
  const auto know = [topic](Shard& shard, Done<void> known) {
    shard.KnowTopic(topic);
    known({});
  };
  OnEveryShard(node_, *node_.shards[0], know, [done = std::move(done)](Result<void>) mutable { done(); });
}

void TopicRegistry::DropEverywhere(const std::string& topic, Done<void> done) {
  const auto drop = [topic](Shard& shard, Done<void> dropped) {
    shard.ForgetTopic(topic);
    // Empties the topic in batches first, because a store drops what is left in one go.
    shard.Sweep(topic, SweepKind::kEmpty, [&shard, topic, dropped = std::move(dropped)](Result<size_t>) mutable {
      shard.store().DropTopic(topic, [&shard, dropped = std::move(dropped)](Result<void> result) mutable {
        shard.Figures();
        dropped(std::move(result));
      });
    });
  };
  OnEveryShard(node_, *node_.shards[0], drop, [this, topic, done = std::move(done)](Result<void> result) mutable {
    node_.metrics.DropSeries("topic", topic);
    done(std::move(result));
  });
}

void TopicRegistry::ForgetEverywhere(const std::string& topic, Task done) {
  const auto forget = [topic](Shard& shard, Done<void> forgotten) {
    shard.ForgetTopic(topic);
    if (shard.shared_store() != nullptr) shard.shared_store()->ForgetTopic(topic);
    shard.Figures();
    forgotten({});
  };
  OnEveryShard(node_, *node_.shards[0], forget, [this, topic, done = std::move(done)](Result<void>) mutable {
    node_.metrics.DropSeries("topic", topic);
    done();
  });
}

std::optional<Topic> TopicRegistry::Held(const std::string& topic) const {
  return FindTopic(node_.shards[0]->store(), topic);
}

template <class T>
void TopicRegistry::Finish(const std::string& topic, Result<T> result, Done<T> done) {
  done(std::move(result));
  queues_.find(topic)->second.busy = false;
  Drain(topic);
}

void TopicRegistry::Finish(const std::string& topic, Task done) {
  Finish<void>(topic, {}, [done = std::move(done)](Result<void>) mutable { done(); });
}

}  // namespace tocsin
