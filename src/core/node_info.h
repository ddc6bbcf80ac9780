// NodeInfo: what a node says of itself, over every front end. A value.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tocsin {

struct NodeInfo {
  std::string version;
  size_t shards = 1;
  std::chrono::steady_clock::time_point started;
};

}  // namespace tocsin
