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

std::unexpected<Error> NoTopic(std::string_view topic) {
  return FailField(Code::kTopicNotFound, "topic", "no topic {}", topic);
}

void TopicRegistry::Ensure(std::string topic, Done<Topic> done) {
  Change(std::move(topic), {}, IfUnknown::kCreate, [done = std::move(done)](Result<ChangedTopic> result) mutable {
    if (!result) return done(std::unexpected(std::move(result).error()));
    done(std::move(result->topic));
  });
}

void TopicRegistry::Change(std::string topic, TopicChange change, IfUnknown if_unknown, Done<ChangedTopic> done) {
  Enqueue(topic, [this, topic, change, if_unknown, done = std::move(done)]() mutable {
    RunChange(topic, change, if_unknown, std::move(done));
  });
}

void TopicRegistry::Drop(std::string topic, Done<Topic> done) {
  Enqueue(topic, [this, topic, done = std::move(done)]() mutable { RunDrop(topic, std::move(done)); });
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

void TopicRegistry::RunDrop(const std::string& topic, Done<Topic> done) {
  const auto at = topics_.find(topic);
  if (at == topics_.end() && !half_dropped_.contains(topic)) {
    return Finish<Topic>(topic, NoTopic(topic), std::move(done));
  }
  if (at != topics_.end()) topics_.erase(at);
  half_dropped_.insert(topic);
  everywhere_.Drop(topic, [this, topic, done = std::move(done)](Result<void> result) mutable {
    if (!result) return Finish<Topic>(topic, std::unexpected(std::move(result).error()), std::move(done));
    half_dropped_.erase(topic);
    Finish<Topic>(topic, Topic{}, std::move(done));
  });
}

void TopicRegistry::RunChange(const std::string& topic, const TopicChange& change, IfUnknown if_unknown,
                              Done<ChangedTopic> done) {
  const auto refuse = [&](std::unexpected<Error> error) { Finish<ChangedTopic>(topic, error, std::move(done)); };
  const auto at = topics_.find(topic);
  const bool known = at != topics_.end();
  if (!known && if_unknown == IfUnknown::kRefuse) return refuse(NoTopic(topic));
  if (!known && topics_.size() >= topics_max_) {
    return refuse(FailField(Code::kOverCapacity, "topic", "{} topics exist: no more are allowed", topics_max_));
  }
  const Topic before = known ? at->second : DefaultTopic(topic);
  Topic after = before;
  Apply(change, after);
  if (Status valid = Validate(after); !valid) return refuse(std::unexpected(std::move(valid).error()));
  if (known && after == before) return Finish<ChangedTopic>(topic, ChangedTopic{before, false}, std::move(done));
  if (known && after.slots != before.slots) {
    return refuse(FailField(Code::kConflict, "slots", "slots is {}: the topic has {}, fixed when it was created",
                            after.slots, before.slots));
  }
  ++after.version;
  Store(std::move(after), !known, std::move(done));
}

void TopicRegistry::Store(Topic topic, bool created, Done<ChangedTopic> done) {
  const Topic& stored = topic;
  everywhere_.Store(stored, [this, topic, created, done = std::move(done)](Result<void> result) mutable {
    const std::string name = topic.name;
    if (!result) return Finish<ChangedTopic>(name, std::unexpected(std::move(result).error()), std::move(done));
    half_dropped_.erase(name);
    topics_.insert_or_assign(name, topic);
    everywhere_.Know(topic, [this, topic, created, done = std::move(done)]() mutable {
      const std::string known = topic.name;
      Finish<ChangedTopic>(known, ChangedTopic{std::move(topic), created}, std::move(done));
    });
  });
}

template <class T>
void TopicRegistry::Finish(const std::string& topic, Result<T> result, Done<T> done) {
  done(std::move(result));
  queues_.find(topic)->second.busy = false;
  Drain(topic);
}

}  // namespace tocsin
