#include "load/stamp.h"

#include <unistd.h>

namespace tocsin::bench {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

constexpr auto kHexPairs = [] {
  std::array<std::array<char, 2>, 256> pairs{};
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = {kHex[i / 16], kHex[i % 16]};
  return pairs;
}();

constexpr auto kHexValues = [] {
  std::array<uint8_t, 256> values{};
  for (size_t i = 0; i < kHex.size(); ++i) values[static_cast<uint8_t>(kHex[i])] = static_cast<uint8_t>(i);
  return values;
}();

int64_t ReadDecimal(std::string_view digits) {
  int64_t value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

}  // namespace

std::string_view RunTag() {
  static const std::string run = fmt::format("{:04x}", static_cast<uint16_t>(getpid()));
  return run;
}

void WriteDecimal(char* at, int64_t value, size_t digits) {
  for (size_t i = digits; i > 0; --i, value /= 10) at[i - 1] = static_cast<char>('0' + value % 10);
}

void WriteHex(char* at, uint32_t value) {
  for (size_t i = 0; i < kNumberDigits; i += 2) std::memcpy(at + i, kHexPairs[value >> (24 - 4 * i) & 0xFF].data(), 2);
}

uint32_t ReadHex(std::string_view digits) {
  uint32_t value = 0;
  for (const char digit : digits) value = value << 4 | kHexValues[static_cast<uint8_t>(digit)];
  return value;
}

Stamp ReadStamp(std::string_view payload) {
  if (payload.size() < kStampBytes || payload.substr(kNumberDigits + kDueDigits, kRunDigits) != RunTag()) {
    Die("delivered: a job that this run did not submit; start with an empty server: {}", payload.substr(0, 60));
  }
  return {.number = ReadHex(payload.substr(0, kNumberDigits)),
          .due_ms = ReadDecimal(payload.substr(kNumberDigits, kDueDigits))};
}

Template& Template::Hole(Kind kind, uint32_t index, size_t digits) {
  places_.push_back({.at = static_cast<uint32_t>(text_.size()),
                     .index = index,
                     .kind = kind,
                     .digits = static_cast<uint8_t>(digits)});
  text_.append(digits, '0');
  return *this;
}

Template& Template::Payload(uint32_t index, size_t bytes) {
  Number(index).Due().Text(RunTag());
  text_.append(bytes - kStampBytes, 'x');
  return *this;
}

void Template::Render(std::string& out, const Jobs& jobs, int64_t extra) const {
  const size_t begin = out.size();
  out += text_;
  char due[kDueDigits];
  WriteDecimal(due, jobs.due_ms, kDueDigits);
  for (const Place& place : places_) {
    char* at = out.data() + begin + place.at;
    switch (place.kind) {
      case kNumber:
        WriteHex(at, jobs.first + place.index);
        break;
      case kDue:
        std::memcpy(at, due, kDueDigits);
        break;
      case kExtra:
        WriteDecimal(at, extra, place.digits);
        break;
    }
  }
}

}  // namespace tocsin::bench
