#include "cli/text/human_size.h"

#include <array>
#include <charconv>

namespace tocsin::cli {
namespace {

constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};

}  // namespace

Result<int64_t> ParseSize(std::string_view text) {
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc::result_out_of_range) return Fail(Code::kInvalidArgument, "\"{}\" is too large", text);
  const std::string_view name = text.substr(static_cast<size_t>(end - text.data()));
  const auto unit = name.empty() ? kUnits.begin() : std::ranges::find(kUnits, name);
  if (problem != std::errc{} || number < 0 || unit == kUnits.end()) {
    return Fail(Code::kInvalidArgument,
                "\"{}\" is not a size: write a whole number with B, KiB, MiB, GiB or TiB, such as 64MiB", text);
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(number, int64_t{1} << (10 * (unit - kUnits.begin())), &bytes)) {
    return Fail(Code::kInvalidArgument, "\"{}\" is too large", text);
  }
  return bytes;
}

std::string ShowSize(int64_t bytes) {
  size_t unit = 0;
  int64_t divisor = 1;
  while (unit + 1 < kUnits.size() && bytes / divisor >= 1024) {
    divisor *= 1024;
    ++unit;
  }
  const int64_t tenths = bytes % divisor * 10 / divisor;
  return tenths == 0 ? fmt::format("{} {}", bytes / divisor, kUnits[unit])
                     : fmt::format("{}.{} {}", bytes / divisor, tenths, kUnits[unit]);
}

}  // namespace tocsin::cli
