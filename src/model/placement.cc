#include "model/placement.h"

namespace tocsin {
namespace {

// Twice: after one round neighbouring groups would go to the same of two members.
uint64_t Rank(uint64_t id_hash, uint32_t group) { return Mix64(Mix64(id_hash, group), group); }

}  // namespace

size_t OwnerOf(uint32_t group, std::span<const std::string> ids) {
  const auto rank = [group](std::string_view id) { return Rank(Hash64(id), group); };
  return static_cast<size_t>(std::ranges::max_element(ids, {}, rank) - ids.begin());
}

std::vector<size_t> OwnersOf(uint32_t groups, std::span<const std::string> ids) {
  std::vector<uint64_t> hashes;
  for (const std::string& id : ids) hashes.push_back(Hash64(id));
  std::vector<size_t> owners(groups);
  for (uint32_t group = 0; group < groups; ++group) {
    const auto rank = [group](uint64_t hash) { return Rank(hash, group); };
    owners[group] = static_cast<size_t>(std::ranges::max_element(hashes, {}, rank) - hashes.begin());
  }
  return owners;
}

}  // namespace tocsin
