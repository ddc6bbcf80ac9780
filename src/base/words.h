// Words that are the same in any case: those of RESP.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace tocsin {

constexpr char Capital(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

constexpr bool SameWord(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::ranges::equal(a, b, {}, Capital, Capital);
}

inline std::string Capitals(std::string_view word) {
  std::string capitals(word);
  std::ranges::transform(capitals, capitals.begin(), Capital);
  return capitals;
}

}  // namespace tocsin
