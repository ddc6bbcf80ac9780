#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log_event.h"

namespace tocsin {
namespace {

TEST(Log, WritesOnlyTheLevelsThatAreOn) {
  SetLogLevel(LogLevel::kWarn);
  testing::internal::CaptureStderr();
  LogInfo("not {}", "this");
  LogWarn("but {}", "this {}");
  const std::string out = testing::internal::GetCapturedStderr();
  EXPECT_THAT(out, testing::HasSubstr("warning but this {}\n"));
  EXPECT_THAT(out, testing::Not(testing::HasSubstr("not")));
  SetLogLevel(LogLevel::kInfo);
}

TEST(Log, AnEventHasTheSameFieldsInBothFormats) {
  const std::string topic = "a \"b\"\n\xff=";
  const LogField fields[] = {{"who", "ann"}, {"topic", topic}, {"purged", 12}, {"none", ""}, {"clean", true}};
  const auto write = [&fields](LogFormat format) {
    SetLogFormat(format);
    testing::internal::CaptureStderr();
    LogEvent(LogLevel::kWarn, "purge", fields);
    LogInfo("{} \"quoted\"", "plain");
    return testing::internal::GetCapturedStderr();
  };
  const std::string json = write(LogFormat::kJson);
  const std::string text = write(LogFormat::kText);
  EXPECT_THAT(
      text,
      testing::MatchesRegex(
          "[^ ]+ warning purge who=ann topic=\"a \\\\\"b\\\\\"\\\\u000a\\\\ufffd=\" purged=12 none=\"\" clean=true\n"
          "[^ ]+ info plain \"quoted\"\n"));
  EXPECT_THAT(json,
              testing::MatchesRegex(
                  "\\{\"time\":\"[^ ]+\",\"level\":\"warning\",\"event\":\"purge\",\"who\":\"ann\","
                  "\"topic\":\"a \\\\\"b\\\\\"\\\\u000a\\\\ufffd=\",\"purged\":12,\"none\":\"\",\"clean\":true\\}\n"
                  "\\{\"time\":\"[^ ]+\",\"level\":\"info\",\"event\":\"note\","
                  "\"message\":\"plain \\\\\"quoted\\\\\"\"\\}\n"));
}

TEST(Log, SomeEventsAreWrittenAtEveryLevelExceptOff) {
  const auto write = [](LogLevel level) {
    SetLogLevel(level);
    testing::internal::CaptureStderr();
    LogEvent(LogLevel::kInfo, "start", {});
    LogEventAlways("ready", {});
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(write(LogLevel::kError), testing::MatchesRegex("[^ ]+ info ready\n"));
  EXPECT_EQ(write(LogLevel::kOff), "");
  SetLogLevel(LogLevel::kInfo);
}

}  // namespace
}  // namespace tocsin
