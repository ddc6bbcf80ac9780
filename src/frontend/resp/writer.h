// Writer: replies as RESP, appended to the caller's string. What RESP2 lacks is written as Redis does: a map as a flat
// array, a boolean as 1 or 0, a double as a string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "frontend/shared/value_writer.h"

namespace tocsin::resp {

enum class Protocol : uint8_t { kResp2 = 2, kResp3 = 3 };

class Writer final : public shared::ValueWriter {
 public:
  Writer(std::string& out, Protocol protocol) : out_(out), resp3_(protocol == Protocol::kResp3) {}

  /// Room for so many bytes more.
  void Reserve(size_t bytes) { out_.reserve(out_.size() + bytes); }
  void Simple(std::string_view text);
  void Text(std::string_view bytes) override;
  void Number(int64_t value) override { Head(':', value); }
  void Null() override { out_ += resp3_ ? "_\r\n" : "$-1\r\n"; }
  void Flag(bool value) override;
  /// With three decimals.
  void Real(double value) override;
  void Array(size_t items) override { Head('*', static_cast<int64_t>(items)); }
  void EndArray() override {}
  void Object(size_t members) override {
    Head(resp3_ ? '%' : '*', static_cast<int64_t>(resp3_ ? members : 2 * members));
  }
  void EndObject() override {}
  void Name(std::string_view name) override { Text(name); }
  void Payload(std::string_view payload) override { Member("payload", payload); }
  void Fail(const Error& error);

 private:
  void Head(char type, int64_t value);

  std::string& out_;
  const bool resp3_;
};

}  // namespace tocsin::resp
