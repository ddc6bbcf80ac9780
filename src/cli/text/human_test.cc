#include "cli/text/human.h"

#include <cstdlib>
#include <ctime>

#include <gmock/gmock.h>

namespace tocsin::cli {
namespace {

using testing::HasSubstr;

/// The local zone of a test. POSIX rules, so that no zone files are needed.
class InZone {
 public:
  explicit InZone(const char* rule) {
    setenv("TZ", rule, 1);
    tzset();
  }
  ~InZone() {
    unsetenv("TZ");
    tzset();
  }
};

constexpr const char* kBerlin = "CET-1CEST,M3.5.0,M10.5.0/3";
constexpr Time kNow = FromMs(1'795'995'000'000);  // 2026-11-29T23:30Z

int64_t Duration(std::string_view text) {
  const auto duration = ParseDuration(text);
  EXPECT_TRUE(duration) << text;
  return duration ? duration->count() : -1;
}

std::string DurationError(std::string_view text) {
  const auto duration = ParseDuration(text);
  return duration ? "accepted" : duration.error().message;
}

std::string Moment(std::string_view text, Time now = kNow) {
  const auto moment = ParseMoment(text, now);
  return moment ? std::to_string(ToMs(*moment)) : moment.error().message;
}

TEST(ParseDuration, TakesWholeNumbersWithUnits) {
  EXPECT_EQ(Duration("500ms"), 500);
  EXPECT_EQ(Duration("30s"), 30'000);
  EXPECT_EQ(Duration("30m"), 1'800'000);
  EXPECT_EQ(Duration("2h"), 7'200'000);
  EXPECT_EQ(Duration("7d"), 604'800'000);
  EXPECT_EQ(Duration("1w"), 604'800'000);
  EXPECT_EQ(Duration("1h30m"), 5'400'000);
  EXPECT_EQ(Duration("1d2h3m4s5ms"), 93'784'005);
  EXPECT_EQ(Duration("0s"), 0);
  EXPECT_EQ(Duration("90m"), 5'400'000);
  EXPECT_EQ(Duration("3653d"), 315'619'200'000);
}

TEST(ParseDuration, RefusesWhatIsNotCertain) {
  EXPECT_THAT(DurationError("30"), HasSubstr("needs a unit: 30s for seconds, 30m for minutes"));
  EXPECT_THAT(DurationError("1h30"), HasSubstr("needs a unit"));
  EXPECT_THAT(DurationError("30M"), HasSubstr("the unit \"M\""));
  EXPECT_THAT(DurationError("30 s"), HasSubstr("the unit \" s\""));
  EXPECT_THAT(DurationError("1h-5m"), HasSubstr("the unit \"h-\""));
  EXPECT_THAT(DurationError("1.5h"), HasSubstr("whole numbers"));
  EXPECT_THAT(DurationError("30m1h"), HasSubstr("out of order"));
  EXPECT_THAT(DurationError("1m1m"), HasSubstr("out of order"));
  for (const char* text : {"", "s", "-5s", "+5s", "soon"}) {
    EXPECT_THAT(DurationError(text), HasSubstr("not a duration")) << text;
  }
}

TEST(ParseDuration, RefusesWhatIsTooLarge) {
  EXPECT_THAT(DurationError("3653d1ms"), HasSubstr("at most 3653d"));
  EXPECT_THAT(DurationError("9223372036854775807ms"), HasSubstr("at most 3653d"));
  EXPECT_THAT(DurationError("9223372036854775808ms"), HasSubstr("too large"));
  EXPECT_THAT(DurationError("9223372036854775807s"), HasSubstr("too large"));
  EXPECT_THAT(DurationError("9223372036854775s900ms"), HasSubstr("too large"));
}

TEST(ParseMoment, TakesOffsetsFromUtc) {
  EXPECT_EQ(Moment("2026-12-01T09:00+08:00"), "1796086800000");
  EXPECT_EQ(Moment("2026-12-01T09:00+0800"), "1796086800000");
  EXPECT_EQ(Moment("2026-12-01T09:00+08"), "1796086800000");
  EXPECT_EQ(Moment("2026-12-01T01:00Z"), "1796086800000");
  EXPECT_EQ(Moment("2026-12-01t01:00:00z"), "1796086800000");
  EXPECT_EQ(Moment("2026-12-01T01:00:00.250Z"), "1796086800250");
  EXPECT_EQ(Moment("2026-12-01T01:00:00.5Z"), "1796086800500");
  EXPECT_EQ(Moment("2026-11-30T19:30:00-05:30"), "1796086800000");
  EXPECT_EQ(Moment("2028-02-29T00:00Z"), "1835395200000");
  EXPECT_EQ(Moment("1970-01-01T00:00Z"), "0");
}

TEST(ParseMoment, TakesLocalTime) {
  const InZone zone(kBerlin);
  EXPECT_EQ(Moment("2026-12-01 09:00"), "1796112000000");
  EXPECT_EQ(Moment("2026-12-01T09:00"), "1796112000000");
  EXPECT_EQ(Moment("2026-12-01"), "1796079600000");
  EXPECT_EQ(Moment("2026-07-01 09:00"), "1782889200000");  // summer time
  EXPECT_EQ(Moment("tomorrow 09:00"), "1796112000000");    // it is the 30th there already
  EXPECT_EQ(Moment("today 23:30"), "1796077800000");
  EXPECT_EQ(Moment("tomorrow 00:00:00.001", kNow - std::chrono::hours(1)), "1795993200001");
}

TEST(ParseMoment, RefusesTheHourThatTheClocksLeaveOut) {
  const InZone zone(kBerlin);
  EXPECT_THAT(Moment("2026-03-29 02:30"), HasSubstr("does not exist in the local time zone"));
  EXPECT_EQ(Moment("2026-03-29T02:30+01:00"), "1774747800000");
}

TEST(ParseMoment, TakesMillisecondsSince1970) {
  EXPECT_EQ(Moment("@1796000000000"), "1796000000000");
  EXPECT_EQ(Moment("@0"), "0");
  for (const char* text : {"@", "@-1", "@x", "@1s", "@ 1"})
    EXPECT_THAT(Moment(text), HasSubstr("milliseconds since 1970"));
  EXPECT_THAT(Moment("@9223372036854775808"), HasSubstr("too large"));
}

TEST(ParseMoment, RefusesWhatIsNotInCalendarOrClock) {
  for (const char* text :
       {"2026-02-30", "2026-02-29T00:00Z", "2026-13-01", "2026-00-01", "2026-04-31 09:00", "2026-01-00"}) {
    EXPECT_THAT(Moment(text), HasSubstr("not in the calendar")) << text;
  }
  EXPECT_THAT(Moment("2026-12-01T25:00Z"), HasSubstr("hour 25: hours are 00 to 23"));
  EXPECT_THAT(Moment("2026-12-01T24:00Z"), HasSubstr("hour 24"));
  EXPECT_THAT(Moment("2026-12-01T09:60Z"), HasSubstr("minute 60"));
  EXPECT_THAT(Moment("2026-12-01T09:00:60Z"), HasSubstr("second 60"));
  EXPECT_THAT(Moment("1969-12-31T23:59Z"), HasSubstr("before 1970"));
  EXPECT_THAT(Moment("1970-01-01T00:00+01:00"), HasSubstr("before 1970"));
}

TEST(ParseMoment, RefusesOtherSpellings) {
  for (const char* text :
       {"", "now", "2026", "2026-12", "2026-12-1", "26-12-01", "01.12.2026", "2026-12-01x", "1796000000000"}) {
    EXPECT_THAT(Moment(text), HasSubstr("2026-12-01T09:00+08:00")) << text;  // how to write it
  }
  EXPECT_THAT(Moment("2026-12-01 9:00"), HasSubstr("no time of day"));
  EXPECT_THAT(Moment("2026-12-01 09"), HasSubstr("no time of day"));
  EXPECT_THAT(Moment("2026-12-01 09:00:5"), HasSubstr("seconds"));
  EXPECT_THAT(Moment("2026-12-01T09:00:00.1234Z"), HasSubstr("milliseconds are the finest"));
  EXPECT_THAT(Moment("2026-12-01T09:00:00.Z"), HasSubstr("milliseconds are the finest"));
  EXPECT_THAT(Moment("2026-12-01T09:00 CET"), HasSubstr("no zone"));
  EXPECT_THAT(Moment("2026-12-01T09:00+15:00"), HasSubstr("+08:00"));
  EXPECT_THAT(Moment("2026-12-01T09:00+08:0"), HasSubstr("+08:00"));
  EXPECT_THAT(Moment("2026-12-01T09:00Zz"), HasSubstr("too much"));
  EXPECT_THAT(Moment("tomorrow"), HasSubstr("time of day"));
  EXPECT_THAT(Moment("tomorrow 09:00Z"), HasSubstr("too much"));
}

TEST(ExactDuration, IsWhatParseDurationTakes) {
  EXPECT_EQ(ExactDuration(Millis(0)), "0s");
  EXPECT_EQ(ExactDuration(Millis(500)), "500ms");
  EXPECT_EQ(ExactDuration(Millis(30'000)), "30s");
  EXPECT_EQ(ExactDuration(Millis(5'400'000)), "1h30m");
  EXPECT_EQ(ExactDuration(Millis(604'800'000)), "7d");
  for (const int64_t ms : {1L, 999L, 1'001L, 86'399'999L, 315'619'200'000L}) {
    EXPECT_EQ(Duration(ExactDuration(Millis(ms))), ms);
  }
}

TEST(ShowDuration, ShowsTwoUnits) {
  EXPECT_EQ(ShowDuration(Millis(0)), "0ms");
  EXPECT_EQ(ShowDuration(Millis(999)), "999ms");
  EXPECT_EQ(ShowDuration(Millis(4'950)), "4.9s");
  EXPECT_EQ(ShowDuration(Millis(10'000)), "10s");
  EXPECT_EQ(ShowDuration(Millis(59'999)), "59s");
  EXPECT_EQ(ShowDuration(Millis(60'000)), "1m");
  EXPECT_EQ(ShowDuration(Millis(1'798'500)), "29m 58s");
  EXPECT_EQ(ShowDuration(Millis(3'600'000)), "1h");
  EXPECT_EQ(ShowDuration(Millis(90'000'000)), "1d 1h");
  EXPECT_EQ(ShowDuration(Millis(864'000'000)), "10d");
}

TEST(ShowDistance, LooksBothWays) {
  EXPECT_EQ(ShowDistance(kNow, kNow), "now");
  EXPECT_EQ(ShowDistance(kNow + Millis(1'798'000), kNow), "in 29m 58s");
  EXPECT_EQ(ShowDistance(kNow - Millis(3'000), kNow), "3.0s ago");
}

TEST(ShowMoment, IsLocalAndIsWhatParseMomentTakes) {
  const InZone zone(kBerlin);
  EXPECT_EQ(ShowMoment(FromMs(1'796'112'000'000)), "2026-12-01T09:00:00+01:00");
  EXPECT_EQ(ShowMoment(FromMs(1'782'889'200'250)), "2026-07-01T09:00:00.250+02:00");
  EXPECT_EQ(Moment(ShowMoment(FromMs(1'782'889'200'250))), "1782889200250");
  const InZone west("NST3:30");
  EXPECT_EQ(ShowMoment(FromMs(1'796'112'000'000)), "2026-12-01T04:30:00-03:30");
}

TEST(Size, IsParsedAndShown) {
  EXPECT_EQ(ParseSize("17").value(), 17);
  EXPECT_EQ(ParseSize("64MiB").value(), 64 << 20);
  EXPECT_EQ(ParseSize("0").value(), 0);
  for (const char* text : {"", "MiB", "-1", "1.5GiB", "1MB", "1 MiB"}) {
    EXPECT_FALSE(ParseSize(text)) << text;
  }
  EXPECT_THAT(ParseSize("8388608TiB").error().message, HasSubstr("too large"));
  EXPECT_EQ(ShowSize(0), "0 B");
  EXPECT_EQ(ShowSize(1023), "1023 B");
  EXPECT_EQ(ShowSize(1536), "1.5 KiB");
  EXPECT_EQ(ShowSize(64 << 20), "64 MiB");
  EXPECT_EQ(ShowSize(INT64_MAX), "8388607.9 TiB");
}

TEST(Counted, OneIsNotMany) {
  EXPECT_EQ(Counted(0, "job"), "0 jobs");
  EXPECT_EQ(Counted(1, "job"), "1 job");
  EXPECT_EQ(Counted(2, "job is", "jobs are"), "2 jobs are");
}

}  // namespace
}  // namespace tocsin::cli
