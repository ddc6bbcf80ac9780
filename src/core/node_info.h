// NodeInfo: what a node reports about itself, through every front end. A value.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "core/cluster.h"

namespace tocsin {

struct NodeInfo {
  std::string version;
  size_t shards = 1;
  std::chrono::steady_clock::time_point started;
  std::shared_ptr<const std::atomic<size_t>> connections =  // open, over all front ends
      std::make_shared<const std::atomic<size_t>>(0);
  std::shared_ptr<Cluster> cluster = std::make_shared<SingleNode>();
};

}  // namespace tocsin
