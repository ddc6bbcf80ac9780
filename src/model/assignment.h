// Assignment: which node serves which group of slots. Rendezvous hashing: a group belongs to the member with the
// highest hash of (member, group), so a member that joins or leaves moves no group but those that it gains or had.
// Every node computes it alike.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace tocsin {

/// Slots are owned, scanned and fenced in groups, of which there is a fixed number however many topics there are. A
/// multiple of every number of shards that a node on a shared store may have.
constexpr uint32_t kGroups = 64;

/// The next slots of a topic are in the next groups; agrees with Placement where the number of shards divides kGroups.
constexpr uint32_t GroupOf(uint64_t topic_hash, uint32_t slot) {
  return static_cast<uint32_t>((topic_hash % kGroups + slot) % kGroups);
}
inline uint32_t GroupOf(std::string_view topic, uint32_t slot) { return GroupOf(Hash64(topic), slot); }

/// The index of the owner in `ids`, which are sorted and not empty.
size_t OwnerOf(uint32_t group, std::span<const std::string> ids);

}  // namespace tocsin
