#include "frontend/http/budget.h"

#include <gtest/gtest.h>

namespace tocsin::http {
namespace {

constexpr size_t kSmall = Budget::kSmallBytes;

TEST(Budget, RefusesWhatIsLargeAndNeverWhatIsSmall) {
  metrics::Registry metrics;
  Budget budget(10 * kSmall, metrics);
  Charge first(budget, Charge::For::kAnswer);
  EXPECT_TRUE(first.Reach(8 * kSmall));
  Charge second(budget, Charge::For::kAnswer);
  EXPECT_FALSE(second.Reach(2 * kSmall + 1));
  EXPECT_EQ(budget.bytes(), 8 * kSmall);
  EXPECT_TRUE(second.Reach(2 * kSmall));
  Charge third(budget, Charge::For::kAnswer);
  EXPECT_TRUE(third.Reach(kSmall));
  EXPECT_FALSE(third.Reach(kSmall + 1));
  EXPECT_EQ(budget.bytes(), 11 * kSmall);
}

TEST(Budget, RequestsLeaveAQuarterToTheAnswers) {
  metrics::Registry metrics;
  Budget budget(8 * kSmall, metrics);
  Charge first(budget, Charge::For::kRequest);
  EXPECT_FALSE(first.Reach(6 * kSmall + 1));
  EXPECT_TRUE(first.Reach(6 * kSmall));
  Charge second(budget, Charge::For::kRequest);
  EXPECT_TRUE(second.Reach(kSmall));
  EXPECT_FALSE(second.Reach(kSmall + 1));
  second.Clear();
  Charge answer(budget, Charge::For::kAnswer);
  EXPECT_TRUE(answer.Reach(2 * kSmall));
}

TEST(Budget, GetsBackWhatWasCharged) {
  metrics::Registry metrics;
  Budget budget(10 * kSmall, metrics);
  {
    Charge charge(budget, Charge::For::kAnswer);
    EXPECT_TRUE(charge.Reach(100));
    EXPECT_TRUE(charge.Reach(300));
    EXPECT_TRUE(charge.Reach(200));
    EXPECT_EQ(budget.bytes(), 300U);
    EXPECT_NE(metrics.RenderPrometheus().find("\ntocsin_http_memory_bytes 300\n"), std::string::npos);
    charge.Clear();
    EXPECT_EQ(budget.bytes(), 0U);
    EXPECT_TRUE(charge.Reach(10 * kSmall));
  }
  EXPECT_EQ(budget.bytes(), 0U);
}

}  // namespace
}  // namespace tocsin::http
