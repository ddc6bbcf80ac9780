// Figures: what the shards' stores say of their topics, summed. Each shard publishes its own at every scan; a scrape
// reads what was published last, so that it neither waits for a shard nor touches a store from another thread.
//
// Threads: FiguresBoard is thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "metrics/registry.h"
#include "spi/store.h"

namespace tocsin {

/// A figure, and what it is called on every wire.
struct FigureColumn {
  std::string_view name;
  uint64_t TopicFigures::* value;
};
constexpr FigureColumn kFigureColumns[] = {
    {"scheduled", &TopicFigures::scheduled}, {"ready", &TopicFigures::ready},
    {"leased", &TopicFigures::leased},       {"dead", &TopicFigures::dead},
    {"bytes", &TopicFigures::bytes},         {"recovered", &TopicFigures::recovered},
    {"accepted", &TopicFigures::accepted},   {"delivered", &TopicFigures::delivered},
    {"acked", &TopicFigures::acked},         {"nacked", &TopicFigures::nacked},
    {"expired", &TopicFigures::expired},     {"died", &TopicFigures::died},
    {"redriven", &TopicFigures::redriven},   {"cancelled", &TopicFigures::cancelled},
    {"purged", &TopicFigures::purged},
};

void Add(TopicFigures& sum, const TopicFigures& part);

using ShardFigures = std::vector<TopicFigures>;

/// One entry for each topic, by name, with the settings of the highest version.
std::vector<TopicFigures> Sum(const std::vector<std::shared_ptr<const ShardFigures>>& shards);

/// recovered + accepted - scheduled - leased - dead - acked - cancelled - purged: 0, or a job was lost or invented.
int64_t ConservationDifference(const TopicFigures& figures);

class FiguresBoard {
 public:
  FiguresBoard(size_t shards, metrics::Registry& metrics);

  void Publish(size_t shard, std::shared_ptr<const ShardFigures> figures);

 private:
  void Collect(metrics::Sink& sink);

  std::mutex mutex_;
  std::vector<std::shared_ptr<const ShardFigures>> shards_;
  metrics::Registry::Registration registration_;  // last: ends before what it reads
};

}  // namespace tocsin
