// TopicsEverywhere: what the registry of topics has done on all the shards. Owned by the service; called on shard 0's
// thread, where `done` runs too.
#pragma once

#include <string>

#include "core/shard.h"
#include "core/topic_registry.h"

namespace tocsin {

class TopicsEverywhere final : public TopicRegistry::Everywhere {
 public:
  explicit TopicsEverywhere(Node& node) : node_(node) {}

  void Store(const Topic& topic, Done<void> done) override;
  void Know(const Topic& topic, Task done) override;
  void Drop(const std::string& topic, Done<void> done) override;
  void Forget(const std::string& topic, Task done) override;
  void Newest(const std::string& topic, Done<std::optional<Topic>> done) override;
  std::optional<Topic> Held(const std::string& topic) override;

 private:
  Shard& first() { return *node_.shards[0]; }

  Node& node_;
};

}  // namespace tocsin
