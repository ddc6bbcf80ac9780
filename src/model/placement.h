// Placement: which shard serves which slot. Slot 0 of a topic is on its home shard, the next slots on the next shards,
// modulo the number of shards. So few shards serve a topic with few slots, and topics start on different shards.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/hash.h"

namespace tocsin {

struct Placement {
  uint32_t shards = 1;

  uint32_t HomeOf(std::string_view topic) const { return static_cast<uint32_t>(Hash64(topic) % shards); }
  uint32_t ShardOf(uint32_t home, uint32_t slot) const { return (home + slot) % shards; }
  /// The shards that serve a topic are home, home + 1, ... home + SpreadOf - 1.
  uint32_t SpreadOf(uint32_t slots) const { return std::min(slots, shards); }
  /// How far `shard` is from `home`.
  uint32_t OffsetOf(uint32_t home, uint32_t shard) const { return (shard + shards - home) % shards; }
};

}  // namespace tocsin
