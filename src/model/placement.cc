#include "model/placement.h"

namespace tocsin {

size_t OwnerOf(uint32_t group, std::span<const std::string> ids) {
  // Twice: after one round neighbouring groups would go to the same of two members.
  const auto hash = [group](std::string_view id) { return Mix64(Mix64(Hash64(id), group), group); };
  return static_cast<size_t>(std::ranges::max_element(ids, {}, hash) - ids.begin());
}

}  // namespace tocsin
