#include "base/clock.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using std::chrono::hours;

constexpr Time kStart = FromMs(1'800'000'000'000);

TEST(VirtualClock, AdvanceMovesBothTimelines) {
  VirtualClock clock(kStart);
  EXPECT_EQ(clock.Now(), (Moment{kStart, kStart}));
  clock.Advance(Millis(5));
  EXPECT_EQ(clock.Now(), (Moment{kStart + Millis(5), kStart + Millis(5)}));
}

TEST(VirtualClock, AStepForwardMovesUtcAlone) {
  VirtualClock clock(kStart);
  clock.Step(hours(1));
  EXPECT_EQ(clock.Now(), (Moment{kStart + hours(1), kStart}));
}

TEST(VirtualClock, AStepBackStopsUtcUntilTheWallClockIsThereAgain) {
  VirtualClock clock(kStart);
  clock.Step(-hours(1));
  EXPECT_EQ(clock.Now(), (Moment{kStart, kStart}));
  clock.Advance(hours(1));
  EXPECT_EQ(clock.Now(), (Moment{kStart, kStart + hours(1)}));
  clock.Advance(Millis(1));
  EXPECT_EQ(clock.Now(), (Moment{kStart + Millis(1), kStart + hours(1) + Millis(1)}));
}

TEST(VirtualClock, RestoreCountsTheTimeThatTheServerWasDown) {
  VirtualClock clock(kStart);
  clock.Restore({kStart - hours(2), kStart - hours(3)});
  EXPECT_EQ(clock.Now(), (Moment{kStart, kStart - hours(1)}));
}

TEST(VirtualClock, RestoreOfAFutureMomentHoldsUtcThere) {
  VirtualClock clock(kStart);
  clock.Restore({kStart + hours(2), kStart + hours(3)});
  EXPECT_EQ(clock.Now(), (Moment{kStart + hours(2), kStart + hours(3)}));
  clock.Advance(hours(1));
  EXPECT_EQ(clock.Now(), (Moment{kStart + hours(2), kStart + hours(4)}));
}

TEST(VirtualClock, DrivesSocketDeadlinesOnlyWhereAsked) {
  VirtualClock clock(kStart);
  clock.DriveIo(true);
  const auto before = clock.IoNow();
  clock.Advance(hours(1));
  EXPECT_EQ(clock.IoNow() - before, hours(1));
}

TEST(RealClock, NeitherTimelineGoesBack) {
  const RealClock clock;
  Moment before = clock.Now();
  EXPECT_LT(std::chrono::abs(before.utc - before.steady), hours(1)) << "equal at first";
  for (int i = 0; i < 10'000; ++i) {
    const Moment now = clock.Now();
    EXPECT_GE(now.utc, before.utc);
    EXPECT_GE(now.steady, before.steady);
    before = now;
  }
}

TEST(RealClock, RestoreOfAPastMomentCountsTheTimeDown) {
  RealClock clock;
  const Time utc = clock.Now().utc;
  clock.Restore({utc - hours(2), utc - hours(5)});
  const Moment now = clock.Now();
  EXPECT_GE(now.utc, utc);
  EXPECT_GE(now.steady, utc - hours(3));
  EXPECT_LT(now.steady, utc - hours(2));
}

TEST(RealClock, RestoreOfAFutureMomentNeverGoesBackAndCountsNoTimeDown) {
  RealClock clock;
  const Time utc = clock.Now().utc;
  const Moment last{utc + hours(2), utc + hours(5)};
  clock.Restore(last);
  const Moment now = clock.Now();
  EXPECT_EQ(now.utc, last.utc) << "it stands until the wall clock is there";
  EXPECT_GE(now.steady, last.steady);
  EXPECT_LT(now.steady, last.steady + hours(1));
}

}  // namespace
}  // namespace tocsin
