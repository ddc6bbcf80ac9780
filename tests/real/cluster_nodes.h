// What CLUSTER NODES says, read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tocsin::real {

struct ClusterNode {
  std::string id;
  uint16_t port = 0;
  bool myself = false;
  std::string flags;                            // without "myself": "master", "slave,fail"
  std::string master;                           // of a replica: its master's id; otherwise "-"
  std::string epoch;                            // of its configuration
  std::vector<std::pair<int, int>> hash_slots;  // first and last of each range

  bool Serves(int hash_slot) const;
};

std::vector<ClusterNode> ParseClusterNodes(std::string_view text);

/// Who is there and serves what, the same text for all nodes that see the same.
std::string ViewOf(std::vector<ClusterNode> nodes);

}  // namespace tocsin::real
