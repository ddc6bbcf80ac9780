// Writer: replies as RESP, appended to the caller's string. What RESP2 lacks is written as Redis does: a map as a flat
// array, a boolean as 1 or 0, a double as a string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::resp {

enum class Protocol : uint8_t { kResp2 = 2, kResp3 = 3 };

class Writer {
 public:
  Writer(std::string& out, Protocol protocol) : out_(out), resp3_(protocol == Protocol::kResp3) {}

  void Simple(std::string_view text);
  void Bulk(std::string_view bytes);
  void Integer(int64_t value) { Head(':', value); }
  void Null() { out_ += resp3_ ? "_\r\n" : "$-1\r\n"; }
  void Bool(bool value);
  /// With three digits behind the point.
  void Double(double value);
  /// `size` elements follow.
  void Array(size_t size) { Head('*', static_cast<int64_t>(size)); }
  /// `size` pairs follow.
  void Map(size_t size) { Head(resp3_ ? '%' : '*', static_cast<int64_t>(resp3_ ? size : 2 * size)); }
  void Fail(const Error& error);

 private:
  void Head(char type, int64_t value);

  std::string& out_;
  const bool resp3_;
};

}  // namespace tocsin::resp
