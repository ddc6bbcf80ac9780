// Payloads carry their job's number, its due time and the run that made it, so that every delivery can be checked
// without asking the server. A Template is a request made beforehand with holes for them.
//
//   payload = number (8 hex digits), due time (13 digits, ms), run (4 hex digits), padding
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "load/protocol.h"

namespace tocsin::bench {

constexpr size_t kNumberDigits = 8;
constexpr size_t kDueDigits = 13;
constexpr size_t kRunDigits = 4;
constexpr size_t kStampBytes = kNumberDigits + kDueDigits + kRunDigits;

struct Stamp {
  uint32_t number = 0;
  int64_t due_ms = 0;
};

/// Dies if `payload` is none of this run.
Stamp ReadStamp(std::string_view payload);

/// `value` in exactly `digits` decimal digits.
void WriteDecimal(char* at, int64_t value, size_t digits);
void WriteHex(char* at, uint32_t value);
/// Of text made by WriteHex.
uint32_t ReadHex(std::string_view digits);
std::string_view RunTag();

class Template {
 public:
  Template& Text(std::string_view text) {
    text_ += text;
    return *this;
  }
  /// The number of job `index` of the batch.
  Template& Number(uint32_t index) { return Hole(kNumber, index, kNumberDigits); }
  Template& Due() { return Hole(kDue, 0, kDueDigits); }
  /// A value of the protocol's own, in `digits` decimal digits.
  Template& Extra(size_t digits) { return Hole(kExtra, 0, digits); }
  Template& Payload(uint32_t index, size_t bytes);

  void Render(std::string& out, const Jobs& jobs, int64_t extra = 0) const;

 private:
  enum Kind : uint8_t { kNumber, kDue, kExtra };
  struct Place {
    uint32_t at;
    uint32_t index;
    Kind kind;
    uint8_t digits;
  };

  Template& Hole(Kind kind, uint32_t index, size_t digits);

  std::string text_;
  std::vector<Place> places_;
};

/// Templates by the number of their jobs, made when first used.
class Templates {
 public:
  template <class Make>
  const Template& Get(uint32_t jobs, Make make) {
    if (jobs >= made_.size()) made_.resize(jobs + 1);
    if (!made_[jobs]) made_[jobs].emplace(make(jobs));
    return *made_[jobs];
  }

 private:
  std::vector<std::optional<Template>> made_;
};

}  // namespace tocsin::bench
