#include "net/budget.h"

#include <gtest/gtest.h>

namespace tocsin::net {
namespace {

constexpr size_t kSmall = Budget::kSmallBytes;

TEST(Budget, RefusesWhatIsLargeAndNeverWhatIsSmall) {
  metrics::Registry metrics;
  Budget budget(16 * kSmall, metrics);
  Charge first(budget, Charge::For::kAnswer);
  EXPECT_TRUE(first.Reach(14 * kSmall));
  Charge second(budget, Charge::For::kAnswer);
  EXPECT_FALSE(second.Reach(2 * kSmall + 1));
  EXPECT_EQ(budget.bytes(), 14 * kSmall);
  EXPECT_TRUE(second.Reach(2 * kSmall));
  Charge third(budget, Charge::For::kAnswer);
  EXPECT_TRUE(third.Reach(kSmall));
  EXPECT_FALSE(third.Reach(kSmall + 1));
  EXPECT_EQ(budget.bytes(), 17 * kSmall);
}

TEST(Budget, OfWhatWaitsForAClientOnlyLittleIsSmall) {
  constexpr size_t kHeld = Budget::kHeldBytes;
  metrics::Registry metrics;
  Budget budget(16 * kSmall, metrics);
  Charge first(budget, Charge::For::kAnswer);
  Charge second(budget, Charge::For::kAnswer);
  ASSERT_TRUE(first.Reach(8 * kSmall));
  ASSERT_TRUE(second.Reach(8 * kSmall));
  Charge held(budget, Charge::For::kAnswer);
  EXPECT_TRUE(held.Hold(kHeld));
  EXPECT_FALSE(held.Hold(kHeld + 1));
  EXPECT_TRUE(held.Reach(kSmall)) << "while the server works on it";
  EXPECT_FALSE(held.Hold(kHeld + 1)) << "it was small then, and is not now";
  EXPECT_EQ(budget.bytes(), 17 * kSmall);
  first.Lower(6 * kSmall);
  EXPECT_TRUE(held.Hold(kHeld + 1));
  EXPECT_TRUE(held.Hold(kSmall));
  EXPECT_EQ(budget.bytes(), 15 * kSmall);
  Charge last(budget, Charge::For::kAnswer);
  EXPECT_TRUE(last.Reach(kSmall));
  EXPECT_TRUE(held.Hold(kSmall)) << "there was room for it";
  EXPECT_FALSE(held.Hold(kSmall + 1));
  held.Lower(kHeld);
  EXPECT_TRUE(held.Reach(kSmall));
  EXPECT_TRUE(held.Hold(kSmall));
  held.Clear();
  EXPECT_EQ(budget.bytes(), 15 * kSmall);
}

TEST(Budget, SmallChargesDoNotAddUpToMuchMoreThanAll) {
  metrics::Registry metrics;
  Budget budget(16 * kSmall, metrics);
  std::vector<std::unique_ptr<Charge>> charges;
  const auto reach = [&](size_t bytes) {
    return charges.emplace_back(std::make_unique<Charge>(budget, Charge::For::kRequest))->Reach(bytes);
  };
  for (size_t i = 0; i < 20; ++i) EXPECT_TRUE(reach(kSmall)) << i;
  EXPECT_FALSE(reach(kSmall));
  EXPECT_TRUE(reach(Budget::kHeldBytes));
  EXPECT_EQ(budget.bytes(), 20 * kSmall + Budget::kHeldBytes);
}

TEST(Budget, ALargeAnswerLeavesHalfToTheOthers) {
  metrics::Registry metrics;
  Budget budget(64 * kSmall, metrics);
  Charge slow[5] = {{budget, Charge::For::kAnswer},
                    {budget, Charge::For::kAnswer},
                    {budget, Charge::For::kAnswer},
                    {budget, Charge::For::kAnswer},
                    {budget, Charge::For::kAnswer}};
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(slow[i].Reach(16 * kSmall));
  EXPECT_FALSE(slow[3].Reach(16 * kSmall));
  EXPECT_FALSE(slow[4].Reach(8 * kSmall + 1));
  EXPECT_TRUE(slow[4].Reach(8 * kSmall));
  Charge request(budget, Charge::For::kRequest);
  EXPECT_FALSE(request.Reach(2 * kSmall)) << "answers may take what is for requests";
  slow[0].Clear();
  EXPECT_TRUE(request.Reach(8 * kSmall));
}

TEST(Budget, AnAccessTokenLeavesAQuarterToTheOthers) {
  metrics::Registry metrics;
  Budget budget(64 * kSmall, metrics);
  const Account greedy = std::make_shared<std::atomic<size_t>>(0);
  const Account other = std::make_shared<std::atomic<size_t>>(0);
  {
    std::vector<std::unique_ptr<Charge>> charges;
    const auto reach = [&](const Account& account) {
      return charges.emplace_back(std::make_unique<Charge>(budget, Charge::For::kAnswer))->Reach(4 * kSmall, account);
    };
    for (size_t i = 0; i < 12; ++i) EXPECT_TRUE(reach(greedy));
    EXPECT_FALSE(reach(greedy));
    for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(reach(other)) << "its share is a quarter";
    EXPECT_FALSE(reach(other));
    EXPECT_EQ(greedy->load(), 48 * kSmall);
    EXPECT_EQ(other->load(), 16 * kSmall);
    charges.front()->Lower(3 * kSmall);
    EXPECT_EQ(greedy->load(), 47 * kSmall);
    Charge small(budget, Charge::For::kAnswer);
    EXPECT_TRUE(small.Reach(kSmall, greedy));
    EXPECT_EQ(greedy->load(), 47 * kSmall);
  }
  EXPECT_EQ(greedy->load(), 0U);
  EXPECT_EQ(other->load(), 0U);
  EXPECT_EQ(budget.bytes(), 0U);
}

TEST(Budget, IsTightWhileOthersTakeMoreThanAQuarter) {
  metrics::Registry metrics;
  Budget budget(16 * kSmall, metrics);
  Charge one(budget, Charge::For::kAnswer);
  ASSERT_TRUE(one.Reach(12 * kSmall));
  EXPECT_FALSE(budget.IsTight(one.bytes()));
  EXPECT_TRUE(budget.IsTight(0));
  one.Lower(4 * kSmall);
  EXPECT_FALSE(budget.IsTight(0));
}

TEST(Budget, RequestsLeaveAQuarterToTheAnswers) {
  metrics::Registry metrics;
  Budget budget(16 * kSmall, metrics);
  Charge first(budget, Charge::For::kRequest);
  EXPECT_FALSE(first.Reach(12 * kSmall + 1));
  EXPECT_TRUE(first.Reach(12 * kSmall));
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

TEST(Budget, AChargeTakesOverAnother) {
  metrics::Registry metrics;
  Budget budget(64 * kSmall, metrics);
  const Account one = std::make_shared<std::atomic<size_t>>(0);
  const Account two = std::make_shared<std::atomic<size_t>>(0);
  {
    Charge answer(budget, Charge::For::kAnswer);
    {
      Charge room(budget, Charge::For::kAnswer);
      ASSERT_TRUE(answer.Reach(2 * kSmall, one));
      ASSERT_TRUE(room.Reach(3 * kSmall, two));
      answer.Absorb(room);
      EXPECT_EQ(room.bytes(), 0U);
    }
    EXPECT_EQ(answer.bytes(), 5 * kSmall);
    EXPECT_EQ(budget.bytes(), 5 * kSmall);
    EXPECT_EQ(one->load(), 5 * kSmall);
    EXPECT_EQ(two->load(), 0U);
    Charge small(budget, Charge::For::kAnswer);
    ASSERT_TRUE(small.Reach(100));
    answer.Absorb(small);
    EXPECT_EQ(one->load(), 5 * kSmall) << "small ones are not billed";
    answer.Lower(kSmall);
    EXPECT_EQ(one->load(), kSmall);
    answer.Force(80 * kSmall);
    EXPECT_EQ(budget.bytes(), 80 * kSmall);
  }
  EXPECT_EQ(budget.bytes(), 0U);
  EXPECT_EQ(one->load(), 0U);
}

TEST(Budget, AChargeTakesOverOneThatIsLargerThanAll) {
  metrics::Registry metrics;
  Budget budget(4 * kSmall, metrics);
  {
    Charge answer(budget, Charge::For::kAnswer);
    Charge room(budget, Charge::For::kAnswer);
    ASSERT_TRUE(answer.Reach(kSmall));
    ASSERT_TRUE(room.Reach(9 * kSmall));
    answer.Absorb(room);
    EXPECT_EQ(budget.bytes(), 10 * kSmall);
    EXPECT_FALSE(room.Reach(9 * kSmall)) << "there is one already";
    ASSERT_TRUE(room.Reach(2 * kSmall));
    answer.Absorb(room);
    EXPECT_EQ(budget.bytes(), 12 * kSmall);
    answer.Lower(kSmall);
    EXPECT_EQ(budget.bytes(), kSmall);
  }
  EXPECT_EQ(budget.bytes(), 0U);
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
