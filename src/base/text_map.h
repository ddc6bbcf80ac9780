// TextMap: a hash map by text that is searched with a view, without making a string.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/hash.h"

namespace tocsin {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return Hash64(text); }
};
template <class T>
using TextMap = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

}  // namespace tocsin
