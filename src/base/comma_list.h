// Lists of names or numbers in one text, as options and settings have them. No state.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace tocsin {

/// The items of a list with commas between them, without the blanks around each. An empty text has none; a comma at the
/// end begins no item.
inline std::vector<std::string_view> CommaList(std::string_view text) {
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, end);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    items.push_back(item.substr(0, item.find_last_not_of(' ') + 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return items;
}

}  // namespace tocsin
