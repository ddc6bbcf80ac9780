#include "model/assignment.h"

namespace tocsin {

size_t OwnerOf(uint32_t group, std::span<const std::string> ids) {
  size_t best = 0;
  uint64_t highest = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    // Twice: after one round neighbouring groups would go to the same of two members.
    const uint64_t hash = Mix64(Mix64(Hash64(ids[i]), group), group);
    if (i > 0 && hash <= highest) continue;
    best = i;
    highest = hash;
  }
  return best;
}

}  // namespace tocsin
