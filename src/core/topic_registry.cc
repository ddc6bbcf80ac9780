#include "core/topic_registry.h"

namespace tocsin {

uint32_t NextBatchSlot(Placement placement, TopicEntry& entry, uint32_t caller) {
  const uint32_t slots = entry.topic.slots;
  const uint32_t offset = placement.OffsetOf(entry.home, caller);
  if (offset >= slots) return entry.next_slot++ % slots;
  const uint32_t own = (slots - offset - 1) / placement.shards + 1;  // slots offset, offset + shards, ...
  return offset + entry.next_slot++ % own * placement.shards;
}

TopicEntry* TopicTable::Find(std::string_view topic) {
  const auto at = entries_.find(topic);
  return at == entries_.end() ? nullptr : &at->second;
}

void TopicTable::Put(const Topic& topic) {
  auto [at, fresh] = entries_.try_emplace(topic.name);
  at->second.topic = topic;
  if (!fresh) return;
  at->second.home = placement_.HomeOf(topic.name);
  at->second.lateness = metrics_.GetHistogram("tocsin_lateness_seconds", "From a job's due time to its delivery.",
                                              {{"topic", topic.name}});
}

void TopicTable::Erase(std::string_view topic) {
  if (const auto at = entries_.find(topic); at != entries_.end()) entries_.erase(at);
}

void TopicRegistry::Ensure(std::string topic, Done<Topic> done) {
  Enqueue({Kind::kEnsure, DefaultTopic(std::move(topic)), std::move(done)});
}

void TopicRegistry::Put(Topic topic, Done<Topic> done) { Enqueue({Kind::kPut, std::move(topic), std::move(done)}); }

void TopicRegistry::Drop(std::string topic, Done<Topic> done) {
  Enqueue({Kind::kDrop, DefaultTopic(std::move(topic)), std::move(done)});
}

void TopicRegistry::Enqueue(Change change) {
  const std::string name = change.topic.name;
  queues_[name].waiting.push_back(std::move(change));
  Drain(name);
}

void TopicRegistry::Drain(const std::string& topic) {
  Queue& queue = queues_.find(topic)->second;
  if (queue.draining) return;
  queue.draining = true;
  while (!queue.busy && !queue.waiting.empty()) {
    Change next = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    queue.busy = true;
    Run(std::move(next));
  }
  queue.draining = false;
  if (!queue.busy) queues_.erase(topic);
}

void TopicRegistry::Run(Change change) {
  const std::string name = change.topic.name;
  const auto at = topics_.find(name);
  const bool known = at != topics_.end();
  if (change.kind == Kind::kDrop) {
    if (!known && !half_dropped_.contains(name)) {
      return Finish(name, Fail(Code::kTopicNotFound, "no such topic"), std::move(change.done));
    }
    if (known) topics_.erase(at);
    half_dropped_.insert(name);
    return everywhere_.Drop(name, [this, name, done = std::move(change.done)](Result<void> result) mutable {
      if (!result) return Finish(name, std::unexpected(std::move(result).error()), std::move(done));
      half_dropped_.erase(name);
      Finish(name, Topic{}, std::move(done));
    });
  }
  if (!known) {
    if (topics_.size() >= topics_max_) {
      return Finish(name, Fail(Code::kOverCapacity, "{} topics exist: no more are allowed", topics_max_),
                    std::move(change.done));
    }
    change.topic.version = 1;
    return Store(std::move(change.topic), std::move(change.done));
  }
  const Topic& current = at->second;
  change.topic.version = current.version;
  if (change.kind == Kind::kEnsure || change.topic == current) return Finish(name, current, std::move(change.done));
  if (change.topic.slots != current.slots) {
    return Finish(
        name, FailField(Code::kConflict, "slots", "the topic has {} slots, fixed when it was created", current.slots),
        std::move(change.done));
  }
  ++change.topic.version;
  Store(std::move(change.topic), std::move(change.done));
}

void TopicRegistry::Store(Topic topic, Done<Topic> done) {
  const Topic& stored = topic;
  everywhere_.Store(stored, [this, topic, done = std::move(done)](Result<void> result) mutable {
    const std::string name = topic.name;
    if (!result) return Finish(name, std::unexpected(std::move(result).error()), std::move(done));
    half_dropped_.erase(name);
    topics_.insert_or_assign(name, topic);
    everywhere_.Know(topic, [this, topic, done = std::move(done)]() mutable {
      const std::string known = topic.name;
      Finish(known, std::move(topic), std::move(done));
    });
  });
}

void TopicRegistry::Finish(const std::string& topic, Result<Topic> result, Done<Topic> done) {
  done(std::move(result));
  queues_.find(topic)->second.busy = false;
  Drain(topic);
}

}  // namespace tocsin
