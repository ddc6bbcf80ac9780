#include "base/line_limit.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using std::chrono::milliseconds;

TEST(LineLimit, CountsWhatGetsNoLine) {
  const std::chrono::steady_clock::time_point start{std::chrono::hours(1)};
  LineLimit limit(2);
  EXPECT_EQ(limit.Take(start), 0);
  EXPECT_EQ(limit.Take(start), 0);
  EXPECT_EQ(limit.Take(start + milliseconds(500)), std::nullopt);
  EXPECT_EQ(limit.Take(start + milliseconds(999)), std::nullopt);
  EXPECT_EQ(limit.Take(start + milliseconds(1000)), 2);
  EXPECT_EQ(limit.Take(start + milliseconds(1001)), 0);
  EXPECT_EQ(limit.Take(start + milliseconds(1002)), std::nullopt);
}

}  // namespace
}  // namespace tocsin
