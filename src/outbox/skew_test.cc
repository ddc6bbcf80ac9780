#include "outbox/skew.h"

#include <gtest/gtest.h>

namespace tocsin::outbox {
namespace {

constexpr ClockSample Sample(int64_t ahead_ms, int64_t round_trip_ms = 1) {
  return {.ahead = Millis(ahead_ms), .round_trip = Millis(round_trip_ms)};
}

TEST(SkewTest, SmallDifferencesAreNotCorrected) {
  Skew skew;
  for (const int64_t ahead : {0, 499, -499}) {
    EXPECT_TRUE(skew.Take(Sample(ahead)));
    EXPECT_EQ(skew.measured(), Millis(ahead));
    EXPECT_EQ(skew.correction(), Millis(0));
  }
}

TEST(SkewTest, ACorrectionStaysAsLongAsItIsAboutRight) {
  Skew skew;
  skew.Take(Sample(700));
  for (const int64_t ahead : {710, 1'199, 201}) {
    skew.Take(Sample(ahead));
    EXPECT_EQ(skew.correction(), Millis(700));
  }
  skew.Take(Sample(1'200));
  EXPECT_EQ(skew.correction(), Millis(1'200));
  skew.Take(Sample(3));
  EXPECT_EQ(skew.correction(), Millis(0));
}

TEST(SkewTest, AQuestionThatTakesLongTellsNothing) {
  Skew skew;
  skew.Take(Sample(1));
  for (const int64_t round_trip : {4'000, 500, -1}) {
    EXPECT_FALSE(skew.Take(Sample(4'000, round_trip)));
    EXPECT_EQ(skew.measured(), Millis(1));
    EXPECT_EQ(skew.correction(), Millis(0));
  }
}

TEST(SkewTest, TheFirstCountsUntilThereIsABetterOne) {
  Skew skew;
  EXPECT_FALSE(skew.Take(Sample(510, 510)));
  EXPECT_EQ(skew.correction(), Millis(510));
  EXPECT_TRUE(skew.Take(Sample(20)));
  EXPECT_EQ(skew.correction(), Millis(0));
}

}  // namespace
}  // namespace tocsin::outbox
