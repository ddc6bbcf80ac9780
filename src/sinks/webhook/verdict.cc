#include "sinks/webhook/verdict.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "sinks/webhook/batch.h"

namespace tocsin::webhook {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr int kTimeout = 408;
constexpr int kTooEarly = 425;
constexpr int kTooMany = 429;

/// Only digits.
std::optional<int64_t> Number(std::string_view text) {
  int64_t number = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return INT64_MAX;
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "Sun, 06 Nov 1994 08:49:37 GMT". The day of the week is ignored.
std::optional<sys_seconds> Date(const std::string& text) {
  constexpr const char* kForm = "%a, %d %b %Y %H:%M:%S GMT";
  constexpr size_t kDayBytes = 3;
  std::tm parts{};
  if (strptime(text.c_str(), kForm, &parts) == nullptr) return std::nullopt;
  const sys_seconds time{seconds(timegm(&parts))};
  // strptime takes more than HTTP allows, such as 31 Feb, which timegm has made another date.
  std::array<char, 64> exact{};
  const size_t size = std::strftime(exact.data(), exact.size(), kForm, &parts);
  if (std::string_view(exact.data(), size).substr(kDayBytes) != std::string_view(text).substr(kDayBytes)) {
    return std::nullopt;
  }
  return time;
}

}  // namespace

std::optional<seconds> ParseRetryAfter(std::string_view text, sys_seconds now) {
  constexpr int64_t kMost = std::chrono::seconds(std::chrono::years(100)).count();  // no sum with it overflows
  if (const auto number = Number(text)) return seconds(std::min(*number, kMost));
  const auto date = Date(std::string(text));
  if (!date) return std::nullopt;
  return std::max(*date - now, seconds(0));
}

Delivered VerdictOf(const Answer& answer, bool retry_4xx, sys_seconds now) {
  const int status = answer.status;
  if (status / 100 == 2) return {};
  Delivered delivered = Retry(fmt::format("the receiver answered {}", status));
  if (!answer.phrase.empty()) delivered.reason += " " + answer.phrase;
  // Not refused for good: a proxy may redirect to an error page while the receiver is down.
  if (status / 100 == 3) delivered.reason += ": redirects are not followed";
  const bool passing = status == kTimeout || status == kTooEarly || status == kTooMany;
  if (status / 100 == 4 && !passing && !retry_4xx) delivered.outcome = DeliverOutcome::kRefused;
  if (delivered.outcome != DeliverOutcome::kRetry) return delivered;
  // A delay of 0 leaves the back-off in force: retries without a pause would use up all attempts in a moment.
  if (const auto after = ParseRetryAfter(answer.retry_after, now); after && *after > seconds(0)) {
    delivered.delay = std::min(std::chrono::duration_cast<Millis>(*after), kRetryDelayMax);
  }
  return delivered;
}

}  // namespace tocsin::webhook
