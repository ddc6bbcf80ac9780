// Which shard of a node serves which slot, and which node serves which group of slots. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace tocsin {

/// Slot 0 of a topic is on its home shard, the next slots on the next shards, modulo the number of shards. So few
/// shards serve a topic with few slots, and topics start on different shards.
struct Placement {
  uint32_t shards = 1;

  uint32_t HomeOf(std::string_view topic) const { return static_cast<uint32_t>(Hash64(topic) % shards); }
  uint32_t ShardOf(uint32_t home, uint32_t slot) const { return (home + slot) % shards; }
  /// The shards that serve a topic are home, home + 1, ... home + SpreadOf - 1.
  uint32_t SpreadOf(uint32_t slots) const { return std::min(slots, shards); }
  /// How far `shard` is from `home`.
  uint32_t OffsetOf(uint32_t home, uint32_t shard) const { return (shard + shards - home) % shards; }
};

/// Nodes own, scan and fence slots in groups. The number of groups does not depend on the number of topics. It is a
/// power of two from kGroups, unless somebody has chosen more, to kGroupsMax: a multiple of every number of shards that
/// a node on a shared store may have.
constexpr uint32_t kGroups = 64;
constexpr uint32_t kGroupsMax = 4096;

/// The next slots of a topic are in the next groups; agrees with Placement if the number of shards divides `groups`.
constexpr uint32_t GroupOf(uint64_t topic_hash, uint32_t slot, uint32_t groups) {
  return static_cast<uint32_t>((topic_hash % groups + slot) % groups);
}
inline uint32_t GroupOf(std::string_view topic, uint32_t slot, uint32_t groups) {
  return GroupOf(Hash64(topic), slot, groups);
}

/// The index of the owner in `ids`, which are sorted and not empty. Rendezvous hashing: a group belongs to the member
/// with the highest hash of (member, group). If a member joins or leaves, only the groups that it gains or loses move.
/// Every node computes the same.
size_t OwnerOf(uint32_t group, std::span<const std::string> ids);
/// The same for each of so many groups.
std::vector<size_t> OwnersOf(uint32_t groups, std::span<const std::string> ids);

}  // namespace tocsin
