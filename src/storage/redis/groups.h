// The groups of a prefix: how many there are, and the hash tag of each.
//
// The number is set when a prefix is first used, and is kept in Redis: every node of the prefix has the same. A tag
// is {prefix.n}. With plain tags, which earlier programs used, n is the number of the group. Otherwise the groups
// divide Cluster's hash slots evenly: group g has the smallest n whose hash slot lies in its part. Parts are numbered
// with their bits in reverse, so that the slots of one topic, which are in neighbouring groups, lie far apart and on
// as many masters as there are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clients/redis/client.h"
#include "model/placement.h"
#include "spi/store.h"
#include "storage/redis/scripts.h"

namespace tocsin::redis {

struct Groups {
  uint32_t count = kGroups;  // a power of two from kGroups to kGroupsMax
  bool plain = false;        // their tags are

  /// As Redis keeps it: "64" or "64 plain".
  std::string Text() const { return fmt::format("{}{}", count, plain ? " plain" : ""); }
};
std::optional<Groups> ParseGroups(std::string_view text);

class GroupTags {
 public:
  GroupTags(std::string_view prefix, Groups groups);

  uint32_t size() const { return static_cast<uint32_t>(tags_.size()); }
  const std::string& operator[](uint32_t group) const { return tags_[group]; }
  uint32_t GroupOf(std::string_view topic, uint32_t slot) const { return tocsin::GroupOf(topic, slot, size()); }
  SlotKeys KeysOf(std::string_view topic, uint32_t slot) const {
    return {tags_[GroupOf(topic, slot)], fmt::format("{}/{}", topic, slot)};
  }

 private:
  std::vector<std::string> tags_;
};

/// The groups of the prefix: as many as `wanted`, if nobody has used it before.
void ReadGroups(Client& client, std::string_view prefix, uint32_t wanted, Done<Groups> done);

}  // namespace tocsin::redis
