// Bytes as text: UTF-8, base64, percent escapes; words in any case; names that are nearly right. No state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tocsin {

/// Whether every sequence of `bytes` is well-formed (RFC 3629).
bool IsUtf8(std::string_view bytes);
/// A name from a client, for an error message: cut short between characters, with \\xHH for bytes that are not UTF-8.
std::string Shown(std::string_view name);

/// RFC 4648, with padding.
void AppendBase64(std::string& out, std::string_view bytes);
/// Nothing if `text` is not what AppendBase64 writes for some bytes.
std::optional<std::string> DecodeBase64(std::string_view text);

/// For a segment of a path or a value of a query: everything except letters, digits and -._~ becomes %XX.
void AppendPercent(std::string& out, std::string_view text);
/// %XX becomes its byte; `plus_is_space` as in a query. Nothing if an escape is malformed.
std::optional<std::string> DecodePercent(std::string_view text, bool plus_is_space);

// Words that are the same in any case: those of RESP.
constexpr char Capital(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

constexpr bool SameWord(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::ranges::equal(a, b, {}, Capital, Capital);
}

inline std::string Capitals(std::string_view word) {
  std::string capitals(word);
  std::ranges::transform(capitals, capitals.begin(), Capital);
  return capitals;
}

/// How many characters must be inserted, removed or replaced to turn one into the other.
size_t EditDistance(std::string_view a, std::string_view b);

/// `; did you mean "x"?` for the nearest name, or nothing if none is near. `names` is a range of strings.
template <class Names>
std::string DidYouMean(std::string_view unknown, const Names& names) {
  constexpr size_t kLongest = 64;  // a longer name is no typing error, and the search takes quadratic time
  if (unknown.size() > kLongest) return "";
  constexpr size_t kShortest = 3;  // of a name that lacks its end, such as _ms
  constexpr size_t kEnd = 3;
  std::string_view nearest;
  size_t least = (unknown.size() + 1) / 3 + 1;  // so many letters are too many
  for (const std::string_view name : names) {
    const bool begins =
        unknown.size() >= kShortest && name.starts_with(unknown) && name.size() - unknown.size() <= kEnd;
    const size_t distance = begins ? 1 : EditDistance(unknown, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest.empty() ? "" : "; did you mean \"" + std::string(nearest) + "\"?";
}

}  // namespace tocsin
