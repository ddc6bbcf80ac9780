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

TEST(Budget, AnAccountLeavesAQuarterToTheOthers) {
  metrics::Registry metrics;
  Budget budget(64 * kSmall, metrics);
  const Account greedy = std::make_shared<std::atomic<size_t>>(0);
  const Account other = std::make_shared<std::atomic<size_t>>(0);
  const Account third = std::make_shared<std::atomic<size_t>>(0);
  {
    std::vector<std::unique_ptr<Charge>> charges;
    const auto reach = [&](const Account& account) {
      return charges.emplace_back(std::make_unique<Charge>(budget, Charge::For::kAnswer))->Reach(4 * kSmall, account);
    };
    for (size_t i = 0; i < 12; ++i) EXPECT_TRUE(reach(greedy));
    EXPECT_FALSE(reach(greedy));
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(reach(other)) << "it leaves as much as it takes";
    EXPECT_FALSE(reach(other));
    EXPECT_EQ(greedy->load(), 48 * kSmall);
    EXPECT_EQ(other->load(), 8 * kSmall);
    EXPECT_TRUE(reach(third)) << "there is always room for the next one";
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

TEST(Budget, TheConnectionsOfAClientShareAnAccount) {
  metrics::Registry metrics;
  Budget budget(64 * kSmall, metrics);
  const Account account = budget.AccountOf("10.0.0.1");
  std::vector<std::unique_ptr<Charge>> slow;
  while (slow.emplace_back(std::make_unique<Charge>(budget, Charge::For::kAnswer))
             ->Reach(8 * kSmall, budget.AccountOf("10.0.0.1"))) {
    ASSERT_LE(slow.size(), 6U) << "readers without a token take all that there is";
  }
  EXPECT_EQ(account->load(), 48 * kSmall);
  Charge other(budget, Charge::For::kAnswer);
  EXPECT_TRUE(other.Reach(8 * kSmall, budget.AccountOf("10.0.0.2")));
}

TEST(Budget, ForgetsTheAccountsOfClientsThatAreGone) {
  metrics::Registry metrics;
  Budget budget(64 * kSmall, metrics);
  const Account kept = budget.AccountOf("kept");
  std::weak_ptr<std::atomic<size_t>> gone;
  for (int i = 0; i < 1'000; ++i) {
    gone = budget.AccountOf(std::to_string(i));
    EXPECT_TRUE(gone.expired());
  }
  EXPECT_LE(budget.clients(), 20U);
  EXPECT_EQ(budget.AccountOf("kept"), kept);
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

TEST(Budget, AnAnswerInOnePieceIsNeverRefusedByAnIdleBudget) {
  metrics::Registry metrics;
  Budget budget(64 * kSmall, metrics);
  const Account account = std::make_shared<std::atomic<size_t>>(0);
  Charge others(budget, Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kSmall + 1));
  for (size_t size = kSmall; size < 80 * kSmall; size += kSmall) {
    Charge whole(budget, Charge::For::kAnswer);
    EXPECT_TRUE(whole.ReachWhole(size / 2, account)) << size;
    EXPECT_TRUE(whole.ReachWhole(size, account)) << size;
    EXPECT_EQ(budget.bytes(), size + kSmall + 1);
    EXPECT_EQ(whole.bytes(), size);
    Charge second(budget, Charge::For::kAnswer);
    EXPECT_EQ(second.ReachWhole(70 * kSmall, account), size < 47 * kSmall) << "one at a time " << size;
    second.Clear();
    whole.Lower(size - kSmall / 2);
    EXPECT_EQ(budget.bytes(), size + kSmall - kSmall / 2 + 1);
    whole.Clear();
    EXPECT_EQ(budget.bytes(), kSmall + 1);
    EXPECT_EQ(account->load(), 0U);
  }
  Charge filling(budget, Charge::For::kAnswer);
  ASSERT_TRUE(filling.Reach(60 * kSmall));
  Charge whole(budget, Charge::For::kAnswer);
  EXPECT_FALSE(whole.ReachWhole(32 * kSmall)) << "one that is not so large waits for its turn";
  EXPECT_TRUE(whole.ReachWhole(33 * kSmall));
  EXPECT_TRUE(whole.Reach(34 * kSmall)) << "it goes on beside the budget";
  EXPECT_EQ(budget.bytes(), 95 * kSmall + 1);
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

TEST(Budget, WhatWasForcedIsNotGranted) {
  metrics::Registry metrics;
  Budget budget(64 * kSmall, metrics);
  Charge others(budget, Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(64 * kSmall));
  Charge answer(budget, Charge::For::kAnswer);
  answer.Force(2 * Budget::kHeldBytes);
  EXPECT_EQ(budget.bytes(), 64 * kSmall + 2 * Budget::kHeldBytes);
  EXPECT_FALSE(answer.Hold(2 * Budget::kHeldBytes)) << "nobody has checked whether there is room";
  others.Lower(0);
  EXPECT_TRUE(answer.Hold(2 * Budget::kHeldBytes));
  answer.Force(3 * Budget::kHeldBytes);
  ASSERT_TRUE(others.Reach(63 * kSmall));
  EXPECT_TRUE(answer.Hold(3 * Budget::kHeldBytes)) << "there was room for nearly as much";
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
