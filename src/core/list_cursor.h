// The cursor of a listing, as text. Pure.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin {

/// Where List goes on: the shard, counted from the topic's home, and its store's own cursor.
struct ListCursor {
  uint32_t lane = 0;
  std::string inner;
};

/// Begins with a number of the service's own: what a cursor means to a store does not outlive a restart.
inline std::string CursorText(uint32_t start, const ListCursor& cursor) {
  return fmt::format("{:08x}.{}:{}", start, cursor.lane, cursor.inner);
}

inline Result<ListCursor> ParseCursor(uint32_t start, std::string_view text, uint32_t spread) {
  ListCursor cursor;
  if (text.empty()) return cursor;
  const std::string mine = fmt::format("{:08x}.", start);
  const char* end = text.data() + text.size();
  const char* begin = text.data() + std::min(mine.size(), text.size());
  const auto [at, error] = std::from_chars(begin, end, cursor.lane);
  if (!text.starts_with(mine) || error != std::errc{} || at == end || *at != ':' || cursor.lane >= spread) {
    return FailField(Code::kInvalidArgument, "cursor",
                     "cursor is not one that a listing of this topic gave since the server was started");
  }
  cursor.inner.assign(at + 1, end);
  return cursor;
}

}  // namespace tocsin
