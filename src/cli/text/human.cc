#include "cli/text/human.h"

#include <array>
#include <charconv>
#include <ctime>
#include <optional>

namespace tocsin::cli {
namespace {

struct Unit {
  std::string_view name;
  int64_t ms;
};
constexpr std::array kUnits{Unit{"w", 604'800'000}, Unit{"d", 86'400'000}, Unit{"h", 3'600'000},
                            Unit{"m", 60'000},      Unit{"s", 1'000},      Unit{"ms", 1}};
constexpr Millis kDurationMax = std::chrono::days(3653);  // so that adding one to a moment does not overflow
constexpr std::string_view kDurationHint = "write whole numbers with units, such as 500ms, 30s, 30m, 2h, 7d or 1h30m";
constexpr std::string_view kMomentHint =
    "write 2026-12-01T09:00+08:00, 2026-12-01T09:00:00.250Z, \"2026-12-01 09:00\" (local time), \"tomorrow 09:00\" or "
    "@1796000000000 (ms since 1970)";

template <class... Args>
std::unexpected<Error> Bad(std::string_view text, fmt::format_string<Args...> format, Args&&... args) {
  return Fail(Code::kInvalidArgument, "\"{}\" {}", text, fmt::format(format, std::forward<Args>(args)...));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// A cursor over a text; each Take removes what it accepts from the front.
struct Cursor {
  std::string_view left;

  bool Take(std::string_view text) {
    if (!left.starts_with(text)) return false;
    left.remove_prefix(text.size());
    return true;
  }

  /// Exactly `digits` digits.
  std::optional<int> TakeNumber(size_t digits) {
    if (left.size() < digits) return std::nullopt;
    int number = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (!IsDigit(left[i])) return std::nullopt;
      number = number * 10 + (left[i] - '0');
    }
    left.remove_prefix(digits);
    return number;
  }
};

struct TimeOfDay {
  int hour = 0;
  int minute = 0;
  int second = 0;
  int millisecond = 0;

  Millis SinceMidnight() const {
    return std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second) + Millis(millisecond);
  }
};

/// A fraction of one to three digits, in ms.
std::optional<int> TakeFraction(Cursor& cursor) {
  size_t digits = 0;
  while (digits < cursor.left.size() && IsDigit(cursor.left[digits])) ++digits;
  if (digits == 0 || digits > 3) return std::nullopt;
  int number = *cursor.TakeNumber(digits);
  for (; digits < 3; ++digits) number *= 10;
  return number;
}

Result<TimeOfDay> TakeTimeOfDay(Cursor& cursor, std::string_view text) {
  const auto hour = cursor.TakeNumber(2);
  const auto minute = hour && cursor.Take(":") ? cursor.TakeNumber(2) : std::nullopt;
  if (!minute) return Bad(text, "has no time of day such as 09:00: {}", kMomentHint);
  TimeOfDay time{.hour = *hour, .minute = *minute};
  if (cursor.Take(":")) {
    const auto second = cursor.TakeNumber(2);
    if (!second) return Bad(text, "has no two digits of seconds: {}", kMomentHint);
    time.second = *second;
    if (cursor.Take(".")) {
      const auto fraction = TakeFraction(cursor);
      if (!fraction) return Bad(text, "has a fraction that is not of one to three digits: milliseconds are the finest");
      time.millisecond = *fraction;
    }
  }
  if (time.hour > 23) return Bad(text, "has hour {}: hours are 00 to 23", time.hour);
  if (time.minute > 59) return Bad(text, "has minute {}: minutes are 00 to 59", time.minute);
  if (time.second > 59) return Bad(text, "has second {}: seconds are 00 to 59", time.second);
  return time;
}

Result<std::chrono::year_month_day> TakeDate(Cursor& cursor, std::string_view text) {
  const auto year = cursor.TakeNumber(4);
  const auto month = year && cursor.Take("-") ? cursor.TakeNumber(2) : std::nullopt;
  const auto day = month && cursor.Take("-") ? cursor.TakeNumber(2) : std::nullopt;
  if (!day) return Bad(text, "is not a moment: {}", kMomentHint);
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (*year < 1970) return Bad(text, "is before 1970");
  if (!date.ok()) return Bad(text, "is not in the calendar: there is no such month or day");
  return date;
}

/// The offset from UTC at the end of a moment; nothing if there is none.
Result<std::optional<std::chrono::minutes>> TakeZone(Cursor& cursor, std::string_view text) {
  using Zone = std::optional<std::chrono::minutes>;
  if (cursor.left.empty()) return Zone{};
  if (cursor.Take("Z") || cursor.Take("z")) return Zone{std::chrono::minutes(0)};
  const int sign = cursor.Take("+") ? 1 : cursor.Take("-") ? -1 : 0;
  const auto hours = sign != 0 ? cursor.TakeNumber(2) : std::nullopt;
  if (!hours) return Bad(text, "ends with \"{}\", which is no zone: use Z or an offset such as +08:00", cursor.left);
  std::optional<int> minutes = 0;
  if (cursor.Take(":") || !cursor.left.empty()) minutes = cursor.TakeNumber(2);
  if (!minutes || *hours > 14 || *minutes > 59) return Bad(text, "has no offset such as +08:00 at its end");
  return Zone{sign * (std::chrono::hours(*hours) + std::chrono::minutes(*minutes))};
}

std::tm LocalTime(Time moment) {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(moment).time_since_epoch().count();
  std::tm local{};
  localtime_r(&seconds, &local);
  return local;
}

/// Refuses hours that a change of the clocks leaves out.
Result<Time> FromLocal(std::chrono::year_month_day date, const TimeOfDay& time, std::string_view text) {
  const std::tm asked{.tm_sec = time.second,
                      .tm_min = time.minute,
                      .tm_hour = time.hour,
                      .tm_mday = static_cast<int>(static_cast<unsigned>(date.day())),
                      .tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1,
                      .tm_year = static_cast<int>(date.year()) - 1900,
                      .tm_isdst = -1};
  std::tm local = asked;
  const std::time_t seconds = std::mktime(&local);
  if (local.tm_hour != asked.tm_hour || local.tm_min != asked.tm_min || local.tm_mday != asked.tm_mday) {
    return Bad(text, "does not exist in the local time zone: the clocks are set forward then");
  }
  if (seconds < 0) return Bad(text, "is before 1970");
  return Time(std::chrono::seconds(seconds)) + Millis(time.millisecond);
}

Result<Time> ParseEpoch(std::string_view text) {
  int64_t ms = 0;
  const std::string_view digits = text.substr(1);
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), ms);
  if (problem == std::errc::result_out_of_range) return Bad(text, "is too large");
  if (problem != std::errc{} || end != digits.data() + digits.size() || digits[0] == '-') {
    return Bad(text, "is not @ and milliseconds since 1970, such as @1796000000000");
  }
  return FromMs(ms);
}

/// "today 09:00", "tomorrow 09:00": `day` is their date.
Result<Time> ParseOnDay(Cursor cursor, std::chrono::sys_days day, std::string_view text) {
  if (!cursor.Take(" ")) return Bad(text, "needs a time of day, such as \"tomorrow 09:00\"");
  TOCSIN_ASSIGN(const TimeOfDay time, TakeTimeOfDay(cursor, text));
  if (!cursor.left.empty()) return Bad(text, "has \"{}\" at its end, which is too much", cursor.left);
  return FromLocal(day, time, text);
}

constexpr std::array<std::string_view, 5> kSizeUnits{"B", "KiB", "MiB", "GiB", "TiB"};

}  // namespace

Result<Millis> ParseDuration(std::string_view text) {
  std::string_view left = text;
  int64_t total = 0;
  int64_t largest_next = INT64_MAX;
  if (left.empty()) return Bad(text, "is not a duration: {}", kDurationHint);
  while (!left.empty()) {
    int64_t number = 0;
    const auto [end, problem] = std::from_chars(left.data(), left.data() + left.size(), number);
    if (problem == std::errc::result_out_of_range) return Bad(text, "is too large: a duration is at most 3653d");
    if (problem != std::errc{} || left[0] == '-') return Bad(text, "is not a duration: {}", kDurationHint);
    left.remove_prefix(static_cast<size_t>(end - left.data()));
    const std::string_view name = left.substr(0, left.find_first_of("0123456789"));
    if (name.empty()) return Bad(text, "needs a unit: {}s for seconds, {}m for minutes", number, number);
    const auto unit = std::ranges::find(kUnits, name, &Unit::name);
    if (unit == kUnits.end()) return Bad(text, "has the unit \"{}\": {}", name, kDurationHint);
    if (unit->ms >= largest_next) return Bad(text, "has its units out of order: the larger first, each once");
    largest_next = unit->ms;
    left.remove_prefix(name.size());
    int64_t part = 0;
    if (__builtin_mul_overflow(number, unit->ms, &part) || __builtin_add_overflow(total, part, &total) ||
        total > kDurationMax.count()) {
      return Bad(text, "is too large: a duration is at most 3653d, ten years");
    }
  }
  return Millis(total);
}

Result<Time> ParseMoment(std::string_view text, Time now) {
  if (text.starts_with('@')) return ParseEpoch(text);
  Cursor cursor{text};
  const bool tomorrow = cursor.Take("tomorrow");
  if (tomorrow || cursor.Take("today")) {
    const std::tm local = LocalTime(now);
    const std::chrono::sys_days today = std::chrono::year(local.tm_year + 1900) /
                                        std::chrono::month(static_cast<unsigned>(local.tm_mon + 1)) /
                                        std::chrono::day(static_cast<unsigned>(local.tm_mday));
    return ParseOnDay(cursor, today + std::chrono::days(tomorrow ? 1 : 0), text);
  }
  TOCSIN_ASSIGN(const std::chrono::year_month_day date, TakeDate(cursor, text));
  if (cursor.left.empty()) return FromLocal(date, {}, text);
  if (!cursor.Take("T") && !cursor.Take("t") && !cursor.Take(" ")) return Bad(text, "is not a moment: {}", kMomentHint);
  TOCSIN_ASSIGN(const TimeOfDay time, TakeTimeOfDay(cursor, text));
  TOCSIN_ASSIGN(const auto zone, TakeZone(cursor, text));
  if (!cursor.left.empty()) return Bad(text, "has \"{}\" at its end, which is too much", cursor.left);
  if (!zone) return FromLocal(date, time, text);
  const Time moment = Time(std::chrono::sys_days(date)) + time.SinceMidnight() - *zone;
  if (moment < Time{}) return Bad(text, "is before 1970");
  return moment;
}

std::string ExactDuration(Millis duration) {
  std::string text;
  int64_t left = duration.count();
  for (const Unit& unit : kUnits) {
    if (unit.name == "w" || left < unit.ms) continue;
    text += fmt::format("{}{}", left / unit.ms, unit.name);
    left %= unit.ms;
  }
  return text.empty() ? "0s" : text;
}

std::string ShowDuration(Millis duration) {
  const int64_t ms = duration.count();
  if (ms < 1'000) return fmt::format("{}ms", ms);
  if (ms < 10'000) return fmt::format("{}.{}s", ms / 1'000, ms % 1'000 / 100);
  for (size_t i = 1; i + 2 < kUnits.size(); ++i) {  // without weeks: people count in days
    const Unit& unit = kUnits[i];
    if (ms < unit.ms) continue;
    const Unit& next = kUnits[i + 1];
    const int64_t rest = ms % unit.ms / next.ms;
    return rest == 0 ? fmt::format("{}{}", ms / unit.ms, unit.name)
                     : fmt::format("{}{} {}{}", ms / unit.ms, unit.name, rest, next.name);
  }
  return fmt::format("{}s", ms / 1'000);
}

std::string ShowDistance(Time moment, Time now) {
  if (moment == now) return "now";
  return moment > now ? fmt::format("in {}", ShowDuration(moment - now))
                      : fmt::format("{} ago", ShowDuration(now - moment));
}

std::string ShowMoment(Time moment) {
  const std::tm local = LocalTime(moment);
  const int64_t ms = (moment - std::chrono::floor<std::chrono::seconds>(moment)).count();
  const long offset = local.tm_gmtoff / 60;
  const long distance = offset < 0 ? -offset : offset;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}{}{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec, ms == 0 ? "" : fmt::format(".{:03}", ms),
                     offset < 0 ? '-' : '+', distance / 60, distance % 60);
}

Result<int64_t> ParseSize(std::string_view text) {
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc::result_out_of_range) return Fail(Code::kInvalidArgument, "\"{}\" is too large", text);
  const std::string_view name = text.substr(static_cast<size_t>(end - text.data()));
  const auto unit = name.empty() ? kSizeUnits.begin() : std::ranges::find(kSizeUnits, name);
  if (problem != std::errc{} || number < 0 || unit == kSizeUnits.end()) {
    return Fail(Code::kInvalidArgument,
                "\"{}\" is not a size: write a whole number with B, KiB, MiB, GiB or TiB, such as 64MiB", text);
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(number, int64_t{1} << (10 * (unit - kSizeUnits.begin())), &bytes)) {
    return Fail(Code::kInvalidArgument, "\"{}\" is too large", text);
  }
  return bytes;
}

std::string ShowSize(int64_t bytes) {
  size_t unit = 0;
  int64_t divisor = 1;
  while (unit + 1 < kSizeUnits.size() && bytes / divisor >= 1024) {
    divisor *= 1024;
    ++unit;
  }
  const int64_t tenths = bytes % divisor * 10 / divisor;
  return tenths == 0 ? fmt::format("{} {}", bytes / divisor, kSizeUnits[unit])
                     : fmt::format("{}.{} {}", bytes / divisor, tenths, kSizeUnits[unit]);
}

std::string Counted(int64_t number, std::string_view one, std::string_view many) {
  if (number == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", number, one) : fmt::format("{} {}", number, many);
}

}  // namespace tocsin::cli
