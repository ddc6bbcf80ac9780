// Replies of the RESP wire, RESP3 as Tocsin speaks it: taken from bytes that come in any pieces. One thread.
//
// Invariants: what a reply declares is never believed before it is there, so that memory follows the bytes that came;
// nesting, the number of values and the size of a reply are bounded. After an error the reader is of no more use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tocsin::cli {

struct RespValue {
  enum class Kind : uint8_t { kNull, kText, kError, kInteger, kDouble, kBool, kArray, kMap };

  Kind kind = Kind::kNull;
  int64_t integer = 0;           // of an integer; 0 or 1 of a bool
  double number = 0;             // of a double
  std::string text;              // of a text or an error
  std::vector<RespValue> items;  // of an array; of a map key, value, key, value

  bool is(Kind wanted) const { return kind == wanted; }
};

class RespReader {
 public:
  static constexpr size_t kDepthMax = 8;
  static constexpr size_t kValuesMax = size_t{1} << 22;
  static constexpr size_t kBytesMax = size_t{1} << 30;
  static constexpr size_t kLineMax = size_t{1} << 16;

  void Append(std::string_view bytes);

  /// Whether nothing is left of what was appended.
  bool empty() const { return at_ == buffer_.size() && open_.empty(); }

  /// The next whole reply; nothing where more bytes are needed. kTooLarge over a limit, kCorrupt where it is not RESP.
  Result<std::optional<RespValue>> Next();

 private:
  struct Open {
    RespValue value;
    size_t left = 0;  // values still to come
  };

  Result<bool> Step(std::optional<RespValue>& whole);
  std::optional<RespValue> Close(RespValue value);

  std::string buffer_;
  size_t at_ = 0;           // what was taken of it
  size_t bytes_ = 0;        // of the reply so far
  size_t values_ = 0;       // of the reply, as far as it says
  std::vector<Open> open_;  // the arrays and maps around the next value
};

}  // namespace tocsin::cli
