// MemoryPlan: how memory_limit is divided. Requests and answers under way have a fixed base beside it, so that a small
// limit leaves room for them; whatever they may take beyond that comes out of memory_limit. The rest is for jobs.
#pragma once

#include <algorithm>
#include <cstddef>

#include "config/config.h"

namespace tocsin {

struct MemoryPlan {
  explicit MemoryPlan(const Config& config) {
    constexpr size_t kBaseMin = 64 << 20;
    constexpr size_t kBodiesMin = 4;
    const size_t base = std::max<size_t>(kBaseMin, kBodiesMin * config.limits_body_size);
    transfer_bytes = std::max<size_t>(base, config.memory_limit / 8);
    jobs_bytes = config.memory_limit - (transfer_bytes - base);
  }

  size_t transfer_bytes;  // requests and answers under way, over all connections
  size_t jobs_bytes;      // stored jobs, and those on their way to receivers
};

}  // namespace tocsin
