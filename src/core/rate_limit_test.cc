#include "core/rate_limit.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using std::chrono::milliseconds;

constexpr RateLimit::TimePoint kStart{std::chrono::hours(1)};

/// Takes all there is, whenever it is worth asking; how many went within the time.
size_t TakeFor(RateLimit& limit, milliseconds time) {
  size_t taken = 0;
  for (RateLimit::TimePoint now = kStart; now <= kStart + time;) {
    const size_t room = limit.Room(now);
    limit.Take(room);
    taken += room;
    now = std::max(limit.NextAt(), now + milliseconds(1));
  }
  return taken;
}

TEST(RateLimit, ZeroIsNoLimit) {
  RateLimit limit(0, kStart);
  EXPECT_EQ(limit.Room(kStart), SIZE_MAX);
}

TEST(RateLimit, BeginsWithATenthOfASecondsWorth) {
  EXPECT_EQ(RateLimit(1000, kStart).Room(kStart), 100U);
  EXPECT_EQ(RateLimit(5, kStart).Room(kStart), 1U);
}

TEST(RateLimit, FillsNoFurtherThanThat) {
  RateLimit limit(1000, kStart);
  limit.Take(100);
  EXPECT_EQ(limit.Room(kStart), 0U);
  EXPECT_EQ(limit.Room(kStart + milliseconds(50)), 50U);
  EXPECT_EQ(limit.Room(kStart + std::chrono::hours(1)), 100U);
}

TEST(RateLimit, KeepsTheRate) {
  for (const uint64_t rate : {1, 3, 7, 100, 999, 50'000, 1'000'000}) {
    RateLimit limit(rate, kStart);
    const auto expected = static_cast<double>(rate * 10);
    const auto taken = static_cast<double>(TakeFor(limit, std::chrono::seconds(10)));
    EXPECT_GE(taken, expected * 0.99 - 1) << rate;
    EXPECT_LE(taken, expected * 1.02 + 1) << rate;
  }
}

TEST(RateLimit, IsWorthAskingWhenAFewMayGo) {
  RateLimit limit(1000, kStart);
  limit.Take(100);
  EXPECT_EQ(limit.NextAt(), kStart + milliseconds(10));
  EXPECT_EQ(limit.Room(limit.NextAt()), 10U);
  RateLimit slow(2, kStart);
  slow.Take(1);
  EXPECT_EQ(slow.NextAt(), kStart + milliseconds(500));
  EXPECT_EQ(slow.Room(slow.NextAt()), 1U);
}

}  // namespace
}  // namespace tocsin
