// Assignment: which node serves which group of slots. Rendezvous hashing: a group belongs to the member with the
// highest hash of (member, group). If a member joins or leaves, only the groups that it gains or loses move. Every node
// computes the same assignment.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace tocsin {

/// Nodes own, scan and fence slots in groups. The number of groups does not depend on the number of topics. It is a
/// multiple of every number of shards that a node on a shared store may have.
constexpr uint32_t kGroups = 64;

/// The next slots of a topic are in the next groups; agrees with Placement if the number of shards divides kGroups.
constexpr uint32_t GroupOf(uint64_t topic_hash, uint32_t slot) {
  return static_cast<uint32_t>((topic_hash % kGroups + slot) % kGroups);
}
inline uint32_t GroupOf(std::string_view topic, uint32_t slot) { return GroupOf(Hash64(topic), slot); }

/// The index of the owner in `ids`, which are sorted and not empty.
size_t OwnerOf(uint32_t group, std::span<const std::string> ids);

}  // namespace tocsin
