// Figures: what the shards' stores say of their topics, summed. Each shard publishes its own at every scan; a scrape
// reads what was published last, so that it neither waits for a shard nor touches a store from another thread.
//
// Threads: FiguresBoard is thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "metrics/registry.h"
#include "spi/store.h"

namespace tocsin {

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
