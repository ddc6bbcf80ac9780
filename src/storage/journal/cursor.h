// Cursors as text: numbers with points between them. Those who get one only hand it back.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace tocsin::journal {

/// Reads up to N numbers; those that are missing stay as they are, also if there is no cursor at all. The first is an
/// index, never 0.
template <size_t N>
Status ParseCursor(std::string_view cursor, std::array<uint64_t, N>& numbers) {
  const char* at = cursor.data();
  const char* const end = at + cursor.size();
  bool good = true;
  for (size_t i = 0; at != end && good; ++i) {
    if (i > 0) good = *at++ == '.';
    uint64_t number = 0;
    const auto read = std::from_chars(at, end, number);
    good = good && i < N && read.ec == std::errc() && (i > 0 || (number != 0 && number <= UINT32_MAX));
    if (!good) break;
    numbers[i] = number;
    at = read.ptr;
    good = at == end || at + 1 != end;
  }
  if (good) return {};
  return FailField(Code::kInvalidArgument, "cursor", "'{}' is not a cursor that was given out", cursor);
}

/// Leaves `at` alone if there is no cursor.
inline Status ParseCursor(std::string_view cursor, uint32_t& at) {
  std::array<uint64_t, 1> numbers{at};
  TOCSIN_TRY(ParseCursor(cursor, numbers));
  at = static_cast<uint32_t>(numbers[0]);
  return {};
}

}  // namespace tocsin::journal
