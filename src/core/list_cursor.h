// The cursor of a listing, as text. Pure.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin {

/// Where List goes on.
struct ListCursor {
  uint32_t offset = 0;  // of the shard, counted from the topic's home
  std::string inner;    // its store's own cursor
};

/// Begins with a number that the service draws at its start: a store's cursor means nothing after a restart.
inline std::string CursorText(uint32_t start, const ListCursor& cursor) {
  return fmt::format("{:08x}.{}:{}", start, cursor.offset, cursor.inner);
}

inline Result<ListCursor> ParseCursor(uint32_t start, std::string_view text, uint32_t spread) {
  ListCursor cursor;
  if (text.empty()) return cursor;
  const std::string mine = fmt::format("{:08x}.", start);
  const char* end = text.data() + text.size();
  const char* begin = text.data() + std::min(mine.size(), text.size());
  const auto [at, error] = std::from_chars(begin, end, cursor.offset);
  if (!text.starts_with(mine) || error != std::errc{} || at == end || *at != ':' || cursor.offset >= spread) {
    return FailField(Code::kInvalidArgument, "cursor",
                     "cursor is not one that a listing of this topic gave since the server was started");
  }
  cursor.inner.assign(at + 1, end);
  return cursor;
}

}  // namespace tocsin
