#include "base/clock.h"

#include <random>

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

/// A machine whose thread is delayed between two readings when a test says so.
struct Machine {
  static inline int64_t now_us;
  static inline int64_t wall_ahead_us;
  static inline int64_t delay_us;  // once
  static inline int64_t step_us;   // of the wall clock, after its next reading

  static void Reset() {
    now_us = 5'000'000'000;
    wall_ahead_us = 1'800'000'000'000'000;
    delay_us = step_us = 0;
  }
  static int64_t Read(clockid_t id) {
    const int64_t read_us = id == CLOCK_BOOTTIME ? now_us : now_us + wall_ahead_us;
    now_us += std::exchange(delay_us, 0);
    if (id == CLOCK_REALTIME) wall_ahead_us += std::exchange(step_us, 0);
    return read_us;
  }
};

TEST(RealClock, AStepBetweenTwoReadingsMovesNoDelay) {
  constexpr int64_t kHour = 3'600'000'000;
  for (const int64_t step_us : {-kHour, kHour}) {
    Machine::Reset();
    const RealClock clock(Machine::Read);
    const Time before = clock.Now().steady;
    Machine::delay_us = 50;  // so that the clock looks again, after the step
    Machine::step_us = step_us;
    EXPECT_LE(clock.Now().steady - before, Millis(1)) << step_us;
    Machine::now_us += 5'000;
    EXPECT_NEAR(static_cast<double>((clock.Now().steady - before).count()), 5, 1) << step_us;
  }
}

TEST(RealClock, NoDelayIsShorterWhateverHappensToTheClocksFractions) {
  std::mt19937_64 random(11);
  for (const int64_t step_us : {0, 100, -100, 99, -99, 60, -60, 20, -20, 3, -3, 1, -1, 500, 999}) {
    Machine::Reset();
    const RealClock clock(Machine::Read);
    int64_t most_us = INT64_MIN;  // by which the machine was before steady, when a delay began
    for (int i = 0; i < 40'000; ++i) {
      if (i == 10'000 || i == 20'000) Machine::wall_ahead_us += i == 10'000 ? step_us : -step_us;
      Machine::now_us += static_cast<int64_t>(random() % 1'500);
      Machine::delay_us = random() % 3 == 0 ? static_cast<int64_t>(random() % 900) : 0;
      const int64_t began_us = Machine::now_us;
      const int64_t steady_us = ToMs(clock.Now().steady) * 1'000;
      most_us = std::max(most_us, began_us - steady_us);
      // A delay of n ms ends when steady has gained n + 1. Steps of 2 us are not seen.
      ASSERT_GE(Machine::now_us - steady_us + 1'000 + 2, most_us) << step_us << " us, reading " << i;
    }
  }
}

TEST(RealClock, TheTimelinesTurnTogetherWhateverPassesBetweenTheReadings) {
  std::mt19937_64 random(12);
  // The last one makes steady turn 60 us before the wall clock.
  for (const int64_t step_us : {int64_t{0}, int64_t{3'600'000'000}, int64_t{-5'000}, int64_t{-60}}) {
    Machine::Reset();
    const RealClock clock(Machine::Read);
    Machine::wall_ahead_us += step_us;
    const Moment first = clock.Now();
    for (int i = 0; i < 20'000; ++i) {
      Machine::now_us += static_cast<int64_t>(random() % 1'500);
      Machine::delay_us = random() % 3 == 0 ? static_cast<int64_t>(random() % 900) : 0;
      const Moment now = clock.Now();
      ASSERT_EQ(now.utc - now.steady, first.utc - first.steady) << step_us << " us, reading " << i;
    }
  }
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
