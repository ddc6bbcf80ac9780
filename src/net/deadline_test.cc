#include <gtest/gtest.h>

#include "net/connection.h"

namespace tocsin::net {
namespace {

using std::chrono::seconds;

constexpr size_t kHeld = 8 << 20;

class DeadlineTest : public testing::Test {
 protected:
  /// A transfer that moves so many bytes each second. After how many seconds it is late; 0 if it never is.
  int SecondsUntilLate(size_t bytes, size_t held, bool hurried) {
    Deadline deadline;
    Deadline::TimePoint now{};
    deadline.Set(now + Deadline::kMovedTime);
    for (int second = 1; second * bytes < held; ++second) {
      now += seconds(1);
      if (hurried ? deadline.HasPassedHurried(now) : deadline.HasPassed(now)) return second;
      deadline.Moved(bytes);
      deadline.Extend(now + Deadline::kMovedTime, held);
    }
    return 0;
  }
};

TEST_F(DeadlineTest, ATransferThatMovesMayTakeLong) {
  EXPECT_EQ(SecondsUntilLate(2'000, kHeld, false), 0);
  EXPECT_EQ(SecondsUntilLate(1'000, kHeld, false), 60);
}

TEST_F(DeadlineTest, AHurriedTransferMovesAnEighthOfWhatItHolds) {
  EXPECT_EQ(SecondsUntilLate(14'000, kHeld, true), 5) << "64 KiB in 5 s are too little for so much memory";
  EXPECT_EQ(SecondsUntilLate(kHeld / 50, kHeld, true), 5);
  EXPECT_EQ(SecondsUntilLate(kHeld / 30, kHeld, true), 0);
}

TEST_F(DeadlineTest, AHurriedTransferOfLittleMoves64KiB) {
  EXPECT_EQ(SecondsUntilLate(20'000, 300'000, true), 0);
  EXPECT_EQ(SecondsUntilLate(10'000, 300'000, true), 5);
}

TEST_F(DeadlineTest, TimeDoesNotRunWhileTheClientWaitsForTheServer) {
  Deadline deadline;
  Deadline::TimePoint now{};
  deadline.Set(now + Deadline::kMovedTime);
  now += seconds(4);
  deadline.Pause(now);
  now += seconds(100);
  EXPECT_FALSE(deadline.HasPassedHurried(now));
  deadline.Resume(now);
  EXPECT_FALSE(deadline.HasPassedHurried(now));
  now += seconds(1);
  EXPECT_TRUE(deadline.HasPassedHurried(now));
  EXPECT_FALSE(deadline.HasPassed(now));
  deadline.Clear();
  EXPECT_FALSE(deadline.HasPassedHurried(now + seconds(1'000)));
}

}  // namespace
}  // namespace tocsin::net
