#include "net/budget.h"

#include <gtest/gtest.h>

namespace tocsin::net {
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

TEST(Budget, LetsOneAnswerPassThatIsLargerThanAll) {
  metrics::Registry metrics;
  Budget budget(10 * kSmall, metrics);
  Charge request(budget, Charge::For::kRequest);
  EXPECT_FALSE(request.Reach(11 * kSmall));
  EXPECT_TRUE(request.Reach(2 * kSmall));
  {
    Charge first(budget, Charge::For::kAnswer);
    EXPECT_TRUE(first.Reach(kSmall));
    EXPECT_TRUE(first.Reach(20 * kSmall));
    EXPECT_TRUE(first.Reach(21 * kSmall));
    EXPECT_EQ(budget.bytes(), 23 * kSmall);
    Charge second(budget, Charge::For::kAnswer);
    EXPECT_FALSE(second.Reach(11 * kSmall));
    EXPECT_TRUE(second.Reach(8 * kSmall)) << "the large one takes nothing from the others";
    first.Lower(15 * kSmall);
    EXPECT_FALSE(request.Reach(3 * kSmall));
    EXPECT_EQ(budget.bytes(), 25 * kSmall);
    second.Clear();
    first.Lower(3 * kSmall);
    EXPECT_EQ(budget.bytes(), 5 * kSmall);
    EXPECT_TRUE(second.Reach(11 * kSmall));
    EXPECT_FALSE(first.Reach(9 * kSmall));
  }
  EXPECT_EQ(budget.bytes(), 2 * kSmall);
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
    EXPECT_NE(metrics.RenderPrometheus().find("\ntocsin_transfer_memory_bytes 300\n"), std::string::npos);
    charge.Clear();
    EXPECT_EQ(budget.bytes(), 0U);
    EXPECT_TRUE(charge.Reach(10 * kSmall));
  }
  EXPECT_EQ(budget.bytes(), 0U);
}

}  // namespace
}  // namespace tocsin::net
