#include "base/text_search.h"

#include <cstring>

namespace tocsin {

TextSearch::TextSearch(std::string_view part) : part_(part) {
  if (part_.size() < 2) return;
  skips_.fill(static_cast<uint32_t>(part_.size()));
  for (size_t i = 0; i + 1 < part_.size(); ++i) {
    skips_[static_cast<uint8_t>(part_[i])] = static_cast<uint32_t>(part_.size() - 1 - i);
  }
}

bool TextSearch::IsIn(std::string_view text) {
  if (part_.empty()) return true;
  if (part_.size() > text.size()) return false;
  if (part_.size() == 1) return std::memchr(text.data(), part_.front(), text.size()) != nullptr;
  // Comparisons may take so many bytes in all. Beyond that the text repeats what the part repeats.
  size_t compare_max = 4 * text.size();
  const size_t rest = part_.size() - 1;
  for (size_t at = rest; at < text.size();) {
    const char last = text[at];
    if (last == part_.back()) {
      if (std::memcmp(text.data() + at - rest, part_.data(), rest) == 0) return true;
      if (compare_max < rest) return IsInLinear(text.substr(at - rest));
      compare_max -= rest;
    }
    at += skips_[static_cast<uint8_t>(last)];
  }
  return false;
}

bool TextSearch::IsInLinear(std::string_view text) {
  if (borders_.empty()) {
    borders_.assign(part_.size(), 0);
    for (uint32_t i = 1, matched = 0; i < part_.size(); ++i) {
      while (matched > 0 && part_[i] != part_[matched]) matched = borders_[matched - 1];
      if (part_[i] == part_[matched]) ++matched;
      borders_[i] = matched;
    }
  }
  size_t matched = 0;
  for (const char c : text) {
    while (matched > 0 && c != part_[matched]) matched = borders_[matched - 1];
    if (c == part_[matched] && ++matched == part_.size()) return true;
  }
  return false;
}

}  // namespace tocsin
