#include "config/start_time.h"

#include <charconv>

namespace tocsin {
namespace {

constexpr std::string_view kForm = "0000-00-00T00:00:00Z";  // a digit for each 0

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || text.starts_with('-')) return std::nullopt;
  return value;
}

bool HasForm(std::string_view text) {
  if (text.size() != kForm.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !digit : text[i] != kForm[i]) return false;
  }
  return true;
}

std::optional<Time> ParseDate(std::string_view text) {
  if (!HasForm(text)) return std::nullopt;
  const auto part = [text](size_t at, size_t digits) { return static_cast<int>(*Number(text.substr(at, digits))); };
  const std::chrono::year_month_day day(std::chrono::year(part(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(part(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(part(8, 2))));
  const int hour = part(11, 2);
  const int minute = part(14, 2);
  const int second = part(17, 2);
  if (!day.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return Time(std::chrono::sys_days(day)) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

}  // namespace

std::optional<Time> ParseStartTime(std::string_view text) {
  using std::chrono::January;
  const auto ms = Number(text);
  const std::optional<Time> time = ms ? FromMs(*ms) : ParseDate(text);
  const bool fits = time && *time >= std::chrono::sys_days(std::chrono::year(2000) / January / 1) &&
                    *time < std::chrono::sys_days(std::chrono::year(2100) / January / 1);
  return fits ? time : std::nullopt;
}

}  // namespace tocsin
