#include "sinks/webhook/verdict.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "sinks/webhook/batch.h"

namespace tocsin::webhook {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr int kTimeout = 408;
constexpr int kTooEarly = 425;
constexpr int kTooMany = 429;

/// Digits alone.
std::optional<int64_t> Number(std::string_view text) {
  int64_t number = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return INT64_MAX;
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<unsigned> Month(std::string_view name) {
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto at = std::ranges::find(kMonths, name);
  if (at == kMonths.end()) return std::nullopt;
  return static_cast<unsigned>(at - kMonths.begin()) + 1;
}

/// "Sun, 06 Nov 1994 08:49:37 GMT". Which day of the week it says does not matter.
std::optional<sys_seconds> Date(std::string_view text) {
  constexpr std::string_view kForm = "???, ?? ??? ???? ??:??:?? GMT";
  const auto fits = [](char c, char form) { return form == '?' || c == form; };
  if (!std::ranges::equal(text, kForm, fits)) return std::nullopt;
  const auto day = Number(text.substr(5, 2));
  const auto month = Month(text.substr(8, 3));
  const auto year = Number(text.substr(12, 4));
  const auto hour = Number(text.substr(17, 2));
  const auto minute = Number(text.substr(20, 2));
  const auto second = Number(text.substr(23, 2));
  if (!day || !month || !year || !hour || !minute || !second) return std::nullopt;
  if (*hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)), std::chrono::month(*month),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) + seconds(*second);
}

std::string Said(const Answer& answer) {
  if (answer.phrase.empty()) return fmt::format("the receiver answered {}", answer.status);
  return fmt::format("the receiver answered {} {}", answer.status, answer.phrase);
}

}  // namespace

std::optional<seconds> ParseRetryAfter(std::string_view text, sys_seconds now) {
  constexpr int64_t kMost = std::chrono::seconds(std::chrono::years(100)).count();  // no sum with it overflows
  if (const auto number = Number(text)) return seconds(std::min(*number, kMost));
  const auto date = Date(text);
  if (!date) return std::nullopt;
  return std::max(*date - now, seconds(0));
}

Delivered VerdictOf(const Answer& answer, bool retry_4xx, sys_seconds now) {
  const int status = answer.status;
  if (status / 100 == 2) return {};
  Delivered delivered{.outcome = DeliverOutcome::kRetry, .delay = {}, .reason = Said(answer)};
  // Not for good: it may be a page that stands in for the receiver while that is away.
  if (status / 100 == 3) delivered.reason += ": redirects are not followed";
  const bool passing = status == kTimeout || status == kTooEarly || status == kTooMany;
  if (status / 100 == 4 && !passing && !retry_4xx) delivered.outcome = DeliverOutcome::kRefused;
  if (delivered.outcome != DeliverOutcome::kRetry) return delivered;
  // Without a delay the back-off holds: "at once", again and again, would use up all attempts in a moment.
  if (const auto after = ParseRetryAfter(answer.retry_after, now); after && *after > seconds(0)) {
    delivered.delay = std::min(std::chrono::duration_cast<Millis>(*after), kDelayAsked);
  }
  return delivered;
}

}  // namespace tocsin::webhook
