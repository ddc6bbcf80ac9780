#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tocsin
