#include "base/clock.h"

#include <gmock/gmock.h>
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

TEST(VirtualClock, AStepBackMovesUtcAlone) {
  VirtualClock clock(kStart);
  clock.Step(-hours(1));
  EXPECT_EQ(clock.Now(), (Moment{kStart - hours(1), kStart}));
  clock.Advance(hours(1));
  EXPECT_EQ(clock.Now(), (Moment{kStart, kStart + hours(1)}));
}

TEST(VirtualClock, RestoreInTheSameBootIsExactWhateverTheWallClockShows) {
  for (const Millis step : {-hours(5), hours(0), hours(5)}) {
    VirtualClock clock(kStart, 7);
    const ClockPast past{clock.Now(), clock.Mark()};
    clock.Advance(hours(1));
    clock.Step(step);
    clock.Restore(past);
    EXPECT_EQ(clock.Now(), (Moment{kStart + hours(1) + step, kStart + hours(1)}));
  }
}

TEST(VirtualClock, AfterARebootTheWallClockSaysHowLongTheServerWasDown) {
  VirtualClock clock(kStart, 7);
  const ClockPast past{clock.Now(), clock.Mark()};
  clock.Reboot(hours(1));
  clock.Step(hours(2));
  clock.Restore(past);
  EXPECT_EQ(clock.Now(), (Moment{kStart + hours(3), kStart + hours(3)}));
}

TEST(VirtualClock, AfterARebootAWallClockThatWentBackCountsAsNoTime) {
  VirtualClock clock(kStart, 7);
  const ClockPast past{clock.Now(), clock.Mark()};
  clock.Reboot(hours(1));
  clock.Step(-hours(2));
  clock.Restore(past);
  EXPECT_EQ(clock.Now(), (Moment{kStart - hours(1), kStart}));
}

TEST(VirtualClock, ASteadyTimeBeforeTheLastOneIsNotOfThisBoot) {
  VirtualClock clock(kStart, 7);
  clock.Restore({{kStart - hours(1), kStart + hours(9)}, clock.Mark()});
  EXPECT_EQ(clock.Now(), (Moment{kStart, kStart + hours(10)}));
}

TEST(VirtualClock, WithoutAMachineItGoesOnWhereTheStoreWas) {
  VirtualClock clock(kStart);
  clock.Restore({{kStart + hours(2), kStart + hours(3)}, clock.Mark()});
  EXPECT_EQ(clock.Now(), (Moment{kStart + hours(2), kStart + hours(3)}));
  clock.Advance(hours(1));
  EXPECT_EQ(clock.Now(), (Moment{kStart + hours(3), kStart + hours(4)}));
}

TEST(VirtualClock, DrivesSocketDeadlinesOnlyWhereAsked) {
  VirtualClock clock(kStart);
  clock.DriveIo(true);
  const auto before = clock.IoNow();
  clock.Advance(hours(1));
  EXPECT_EQ(clock.IoNow() - before, hours(1));
}

TEST(RealClock, SteadyNeverGoesBack) {
  const RealClock clock;
  Moment before = clock.Now();
  EXPECT_LT(std::chrono::abs(before.utc - before.steady), hours(1)) << "equal at first";
  for (int i = 0; i < 10'000; ++i) {
    const Moment now = clock.Now();
    EXPECT_GE(now.steady, before.steady);
    before = now;
  }
}

TEST(RealClock, RestoreOfAPastMomentCountsTheTimeDown) {
  RealClock clock;
  const Time utc = clock.Now().utc;
  clock.Restore({{utc - hours(2), utc - hours(5)}, {}});
  const Moment now = clock.Now();
  EXPECT_GE(now.steady, utc - hours(3));
  EXPECT_LT(now.steady, utc - hours(2));
}

TEST(RealClock, RestoreOfAFutureMomentCountsNoTimeDown) {
  RealClock clock;
  const Time utc = clock.Now().utc;
  const Moment last{utc + hours(2), utc + hours(5)};
  clock.Restore({last, {}});
  const Moment now = clock.Now();
  EXPECT_LT(now.utc, last.utc) << "the wall clock as it is";
  EXPECT_GE(now.steady, last.steady);
  EXPECT_LT(now.steady, last.steady + hours(1));
}

TEST(RealClock, ADowntimeThatIsHardToBelieveIsLogged) {
  const Time utc = RealClock().Now().utc;
  const auto logged = [&](Millis down) {
    testing::internal::CaptureStderr();
    RealClock().Restore({{utc - down, utc}, {}});
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(logged(-hours(1)), testing::HasSubstr("before the last record"));
  EXPECT_THAT(logged(hours(49)), testing::HasSubstr("was down for 1764"));
  EXPECT_EQ(logged(hours(1)), "");
}

TEST(RealClock, RestoreInTheSameBootGoesOnExactly) {
  const RealClock before;
  const Moment now = before.Now();
  // By the wall clock two hours more have passed than really have.
  RealClock clock;
  clock.Restore({{now.utc - hours(2), now.steady}, before.Mark()});
  EXPECT_NE(clock.Mark().boot, 0U);
  EXPECT_EQ(clock.Mark().at_boot, before.Mark().at_boot);
  EXPECT_LT(clock.Now().steady, now.steady + hours(1));
}

}  // namespace
}  // namespace tocsin
