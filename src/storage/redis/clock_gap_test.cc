#include <gtest/gtest.h>

#include "storage/redis/slots.h"

namespace tocsin::redis {
namespace {

using namespace std::chrono_literals;

TEST(ClockGap, TheQuickestAnswerCounts) {
  ClockGap gap;
  EXPECT_EQ(gap.ahead_ms(), 0);
  gap.Add(-700, FromMs(1000));
  EXPECT_EQ(gap.ahead_ms(), -700) << "a clock that is behind";
  gap.Add(-500, FromMs(1001));
  gap.Add(-900, FromMs(1002));
  EXPECT_EQ(gap.ahead_ms(), -500);
}

TEST(ClockGap, WhatIsOldIsForgotten) {
  ClockGap gap;
  Time now = FromMs(1'000'000);
  gap.Add(300, now);
  gap.Add(-200, now += 6s);
  EXPECT_EQ(gap.ahead_ms(), 300) << "not at once: one slow answer means nothing";
  gap.Add(-210, now += 6s);
  EXPECT_EQ(gap.ahead_ms(), -200);
}

TEST(ClockGap, AfterAFailoverToAClockThatIsFarBehindItIsFollowedAtOnce) {
  ClockGap gap;
  gap.Add(300, FromMs(1000));
  gap.Add(-600, FromMs(1001));
  EXPECT_EQ(gap.ahead_ms(), 300) << "a slow answer";
  gap.Add(-60'000, FromMs(1002));
  EXPECT_EQ(gap.ahead_ms(), -60'000);
  gap.Add(290, FromMs(1003));
  EXPECT_EQ(gap.ahead_ms(), 290) << "it was a very slow answer after all";
}

}  // namespace
}  // namespace tocsin::redis
