// Text for man pages, which troff sets.
#pragma once

#include <string>
#include <string_view>

namespace tocsin {

/// Escapes a line of text.
inline std::string Roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out = "\\&";  // these would begin a request
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else {
      if (c == '-') out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace tocsin
