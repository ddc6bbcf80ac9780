#include "core/topics_everywhere.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/every_shard.h"
#include "core/sweep.h"

namespace tocsin {
namespace {

std::optional<Topic> FindTopic(const Store& store, std::string_view name) {
  auto topics = store.Topics();
  const auto at = std::ranges::find_if(topics, [&](const TopicFigures& each) { return each.topic.name == name; });
  return at == topics.end() ? std::nullopt : std::optional(std::move(at->topic));
}

}  // namespace

void TopicsEverywhere::Store(const Topic& topic, Done<void> done) {
  const auto put = [topic](Shard& shard, Done<void> stored) { shard.store().PutTopic(topic, std::move(stored)); };
  OnEvery(node_, first(), put, std::move(done));
}

void TopicsEverywhere::Know(const Topic& topic, Task done) {
  const auto know = [topic](Shard& shard, Done<void> known) {
    shard.KnowTopic(topic);
    known({});
  };
  OnEvery(node_, first(), know, [done = std::move(done)](Result<void>) mutable { done(); });
}

void TopicsEverywhere::Drop(const std::string& topic, Done<void> done) {
  const auto drop = [topic](Shard& shard, Done<void> dropped) {
    shard.ForgetTopic(topic);
    // In batches, because a store drops what is left in one go.
    SweepAll(shard, topic, SweepKind::kEmpty, [&shard, topic, dropped = std::move(dropped)](Result<size_t>) mutable {
      shard.store().DropTopic(topic, [&shard, dropped = std::move(dropped)](Result<void> result) mutable {
        shard.Figures();
        dropped(std::move(result));
      });
    });
  };
  OnEvery(node_, first(), drop, [this, topic, done = std::move(done)](Result<void> result) mutable {
    node_.metrics.DropSeries("topic", topic);
    done(std::move(result));
  });
}

void TopicsEverywhere::Forget(const std::string& topic, Task done) {
  const auto forget = [topic](Shard& shard, Done<void> forgotten) {
    shard.ForgetTopic(topic);
    if (shard.shared_store() != nullptr) shard.shared_store()->ForgetTopic(topic);
    shard.Figures();
    forgotten({});
  };
  OnEvery(node_, first(), forget, [this, topic, done = std::move(done)](Result<void>) mutable {
    node_.metrics.DropSeries("topic", topic);
    done();
  });
}

void TopicsEverywhere::Newest(const std::string& topic, Done<std::optional<Topic>> done) {
  auto found = std::make_shared<std::vector<std::optional<Topic>>>(node_.shards.size());
  const auto look = [topic, found](Shard& shard, Done<void> looked) {
    (*found)[shard.index()] = FindTopic(shard.store(), topic);
    looked({});
  };
  OnEvery(node_, first(), look, [found, done = std::move(done)](Result<void>) mutable {
    const auto version = [](const std::optional<Topic>& each) { return each ? each->version : 0; };
    done(std::move(*std::ranges::max_element(*found, {}, version)));
  });
}

std::optional<Topic> TopicsEverywhere::Held(const std::string& topic) { return FindTopic(first().store(), topic); }

}  // namespace tocsin
