// Long polls: who waits, who is served, what is given back; lost wake-ups.
#include <gtest/gtest.h>

#include "core/figures.h"
#include "core/test_node.h"

namespace tocsin {
namespace {

class LongPollTest : public testing::TestWithParam<std::tuple<size_t, bool>> {
 protected:
  using Reply = TestNode::Reply<JobBatch>;

  TestNode node{std::get<0>(GetParam()), std::get<1>(GetParam())};

  ReserveId Wait(Reply& reply, size_t max = 1, Millis wait = Millis(10'000), size_t shard = 0) {
    const ReserveId id = node.service->Reserve(node.at(shard), {"t", max, wait, Millis(0)}, reply.Catch());
    node.Run();
    return id;
  }
  void Submit(size_t count, Millis delay = Millis(0), size_t shard = 0) {
    std::vector<NewJob> jobs(count);
    for (NewJob& job : jobs) job.delay = delay;
    ASSERT_TRUE(node.Submit("t", jobs, shard));
  }
  void LoseWakeUps() {
    for (auto& store : node.stores) store->lose_ready = true;
  }
  size_t Claims() const {
    size_t claims = 0;
    for (const auto& store : node.stores) claims += store->claims;
    return claims;
  }
  uint64_t Leased() { return node.Topics()[0].leased; }
};

INSTANTIATE_TEST_SUITE_P(Shards, LongPollTest, testing::Combine(testing::Values(1, 2, 4), testing::Bool()),
                         [](const auto& info) {
                           return fmt::format("{}{}", std::get<0>(info.param),
                                              std::get<1>(info.param) ? "late" : "at_once");
                         });

TEST_P(LongPollTest, AnswersEmptyAtItsDeadlineAndNotBefore) {
  (void)node.PutTopic(DefaultTopic("t"));
  Reply reply;
  Wait(reply, 1, Millis(1500));
  node.Pass(Millis(1499));
  EXPECT_FALSE(reply.got);
  node.Pass(Millis(1));
  ASSERT_TRUE(reply.got);
  EXPECT_TRUE((*reply.got)->jobs.empty());
}

TEST_P(LongPollTest, IsServedTheMomentAJobIsDue) {
  Submit(1, Millis(2345), 1);
  Reply reply;
  Wait(reply);
  node.Pass(Millis(2344));
  EXPECT_FALSE(reply.got);
  node.Pass(Millis(1));
  ASSERT_TRUE(reply.got);
  EXPECT_EQ((*reply.got)->jobs.size(), 1U);
}

TEST(LongPollOnTwoShards, AnAnswerThatCrossesTheCancelIsReleased) {
  TestNode node(2);
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  TestNode::Reply<JobBatch> where;
  const uint32_t home = node.service->Reserve(node.at(0), {"t", 1, Millis(0), Millis(0)}, where.Catch()).shard;
  node.Run();
  ASSERT_TRUE(node.Submit("t", {NewJob{}}, home));
  TestNode::Reply<JobBatch> reply;
  const ReserveId id = node.service->Reserve(node.at(home + 1), {"t", 1, Millis(1000), Millis(0)}, reply.Catch());
  while (node.loops[home]->RunOne()) {
  }
  ASSERT_EQ(node.stores[home]->Topics()[0].leased, 1U);  // the answer is on its way
  ASSERT_FALSE(reply.got);
  node.service->CancelReserve(id);
  node.Run();
  EXPECT_TRUE((*reply.got)->jobs.empty());
  EXPECT_EQ(node.Topics()[0].leased, 0U);
  EXPECT_EQ(node.Reserve("t")->jobs.size(), 1U);
}

// Where the answer takes no message: the deadline does not wait for one.
TEST(LongPollOnOneShard, AJobDueAtTheDeadlineIsStillDelivered) {
  TestNode node(1);
  ASSERT_TRUE(node.Submit("t", {NewJob{.delay = Millis(700)}}));
  TestNode::Reply<JobBatch> reply;
  node.service->Reserve(node.at(0), {"t", 1, Millis(700), Millis(0)}, reply.Catch());
  node.Pass(Millis(700));
  ASSERT_TRUE(reply.got);
  EXPECT_EQ((*reply.got)->jobs.size(), 1U);
}

TEST_P(LongPollTest, WaitersAreServedInTheOrderOfArrival) {
  (void)node.PutTopic(DefaultTopic("t"));
  std::vector<Reply> replies(20);
  for (size_t i = 0; i < 20; ++i) Wait(replies[i], 1, Millis(10'000), i);
  for (size_t served = 1; served <= 20; ++served) {
    Submit(1, Millis(0), served);
    for (size_t i = 0; i < 20; ++i) EXPECT_EQ(replies[i].got.has_value(), i < served) << i << " " << served;
  }
}

TEST_P(LongPollTest, AsManyWaitersAsJobsAreServed) {
  (void)node.PutTopic(DefaultTopic("t"));
  std::vector<Reply> replies(50);
  for (size_t i = 0; i < 50; ++i) Wait(replies[i], 1, Millis(10'000), i);
  for (size_t i = 0; i < 4; ++i) Submit(10, Millis(0), i);
  size_t served = 0;
  for (Reply& reply : replies) served += reply.got.has_value();
  EXPECT_EQ(served, 40U);
}

TEST_P(LongPollTest, AClaimCutShortBySizeLeavesMoreToClaim) {
  (void)node.PutTopic(DefaultTopic("t"));
  for (auto& store : node.stores) store->cut_claims = true;
  Submit(10);
  for (int i = 0; i < 10; ++i) {
    Reply reply;
    Wait(reply, 100, Millis(10'000), 0);
    EXPECT_TRUE(reply.got.has_value()) << "no time has passed: only a wake-up or the mark of more can serve it, " << i;
  }
}

TEST_P(LongPollTest, OneJobDoesNotCauseAClaimForEveryWaiter) {
  (void)node.PutTopic(DefaultTopic("t"));
  std::vector<Reply> replies(200);
  for (size_t i = 0; i < 200; ++i) Wait(replies[i], 1, Millis(10'000), i);
  const size_t before = Claims();
  Submit(1);
  EXPECT_LE(Claims() - before, 4U);
}

TEST_P(LongPollTest, ConsumersMayComeBeforeTheTopic) {
  Reply reply;
  Reply late;
  Wait(late, 1, Millis(100), 1);
  Wait(reply, 5);
  node.Pass(Millis(100));
  EXPECT_TRUE((*late.got)->jobs.empty());
  EXPECT_FALSE(reply.got);
  Submit(3);
  ASSERT_TRUE(reply.got);
  EXPECT_GE((*reply.got)->jobs.size(), 1U);
}

TEST_P(LongPollTest, PausedTopicsDeliverNothingUntilTheyResume) {
  Topic topic = DefaultTopic("t");
  topic.paused = true;
  (void)node.PutTopic(topic);
  Submit(1);
  Reply reply;
  Wait(reply);
  EXPECT_TRUE(node.Reserve("t")->jobs.empty());
  node.Pass(Millis(3000));
  EXPECT_FALSE(reply.got);
  topic.paused = false;
  (void)node.PutTopic(topic, 1);
  ASSERT_TRUE(reply.got);
  EXPECT_EQ((*reply.got)->jobs.size(), 1U);
}

TEST_P(LongPollTest, ADroppedTopicKeepsItsWaiters) {
  (void)node.PutTopic(DefaultTopic("t"));
  Reply reply;
  Wait(reply);
  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(0), "t", dropped.Catch());
  node.Run();
  EXPECT_FALSE(reply.got);
  Submit(1);
  EXPECT_EQ((*reply.got)->jobs.size(), 1U);
}

TEST_P(LongPollTest, ALostWakeUpCostsASecondAtMost) {
  LoseWakeUps();
  Submit(1, Millis(500), 1);
  Reply reply;
  Wait(reply);
  node.Pass(Millis(1500));
  ASSERT_TRUE(reply.got);
  EXPECT_EQ((*reply.got)->jobs.size(), 1U);
}

TEST_P(LongPollTest, WithoutAnyWakeUpEveryWaiterIsStillServed) {
  LoseWakeUps();
  (void)node.PutTopic(DefaultTopic("t"));
  std::vector<Reply> replies(30);
  for (size_t i = 0; i < 30; ++i) Wait(replies[i], 1, Millis(10'000), i);
  for (size_t i = 0; i < 3; ++i) Submit(10, Millis(0), i);
  node.Pass(Millis(1000));
  for (Reply& reply : replies) EXPECT_TRUE(reply.got);
}

TEST_P(LongPollTest, WhoHasGoneGetsNothing) {
  (void)node.PutTopic(DefaultTopic("t"));
  Reply gone;
  Reply next;
  const ReserveId id = Wait(gone);
  Wait(next);
  node.service->CancelReserve(id);
  node.Run();
  EXPECT_TRUE((*gone.got)->jobs.empty());
  Submit(1);
  EXPECT_EQ((*next.got)->jobs.size(), 1U);
}

TEST_P(LongPollTest, WhatWasClaimedForAClientThatHasGoneIsReleased) {
  (void)node.PutTopic(DefaultTopic("t"));
  std::vector<Task> held;
  for (auto& store : node.stores) store->held = &held;
  Reply gone;
  const ReserveId id = Wait(gone);
  for (Task& task : std::exchange(held, {})) task();
  Submit(1, Millis(0), 1);
  node.Run();
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(Leased(), 1U);
  node.service->CancelReserve(id);
  node.Run();
  for (auto& store : node.stores) store->held = nullptr;
  held[0]();
  node.Run();
  EXPECT_TRUE((*gone.got)->jobs.empty());
  EXPECT_EQ(Leased(), 0U);
  const auto batch = node.Reserve("t");
  ASSERT_EQ(batch->jobs.size(), 1U);
  EXPECT_EQ(batch->jobs[0].attempt, 1U);
}

TEST_P(LongPollTest, WhatComesBackAfterTheDeadlineIsReleased) {
  (void)node.PutTopic(DefaultTopic("t"));
  std::vector<Task> held;
  for (auto& store : node.stores) store->held = &held;
  Reply reply;
  Wait(reply, 1, Millis(300));
  for (Task& task : std::exchange(held, {})) task();
  Submit(1, Millis(100));
  node.Pass(Millis(300));
  ASSERT_EQ(held.size(), 1U);
  EXPECT_FALSE(reply.got) << "its claim may come soon";
  node.Pass(Millis(500));
  ASSERT_TRUE(reply.got);
  EXPECT_TRUE((*reply.got)->jobs.empty());
  for (auto& store : node.stores) store->held = nullptr;
  held[0]();
  node.Run();
  EXPECT_EQ(Leased(), 0U);
}

TEST_P(LongPollTest, AClaimThatIsUnderWayAtTheDeadlineStillCounts) {
  (void)node.PutTopic(DefaultTopic("t"));
  std::vector<Task> held;
  for (auto& store : node.stores) store->held = &held;
  Reply reply;
  Wait(reply, 1, Millis(300));
  while (!held.empty()) {  // every shard is asked once
    for (Task& task : std::exchange(held, {})) task();
    node.Run();
  }
  Submit(1, Millis(100));
  node.Pass(Millis(400));
  ASSERT_EQ(held.size(), 1U);
  for (auto& store : node.stores) store->held = nullptr;
  held[0]();
  node.Run();
  ASSERT_TRUE(reply.got);
  EXPECT_EQ((*reply.got)->jobs.size(), 1U);
  EXPECT_EQ(Leased(), 1U);
}

TEST_P(LongPollTest, AnEmptyClaimThatIsUnderWayAtTheDeadlineEndsTheReserve) {
  (void)node.PutTopic(DefaultTopic("t"));
  std::vector<Task> held;
  for (auto& store : node.stores) store->held = &held;
  Reply reply;
  Wait(reply, 1, Millis(300));
  node.Pass(Millis(400));
  EXPECT_FALSE(reply.got);
  for (auto& store : node.stores) store->held = nullptr;
  for (Task& task : std::exchange(held, {})) task();
  node.Run();
  ASSERT_TRUE(reply.got);
  EXPECT_TRUE((*reply.got)->jobs.empty());
}

TEST_P(LongPollTest, AnAnnouncementThatCrossesAShortClaimIsNotForgotten) {
  (void)node.PutTopic(DefaultTopic("t"));
  std::vector<Task> held;
  for (auto& store : node.stores) store->held = &held;
  Reply first;
  Wait(first);  // its claims have looked and found nothing, but the answers are not back yet
  Submit(1, Millis(0), 1);
  for (auto& store : node.stores) store->held = nullptr;
  while (!held.empty()) {
    for (Task& task : std::exchange(held, {})) task();
    node.Run();
  }
  ASSERT_TRUE(first.got);
  EXPECT_EQ((*first.got)->jobs.size(), 1U);
}

TEST_P(LongPollTest, MoreWaitersThanAllowedAreRefused) {
  TestNode small(std::get<0>(GetParam()), std::get<1>(GetParam()), {.waiters = 2});
  std::vector<Reply> replies(3);
  for (Reply& reply : replies) {
    small.service->Reserve(small.at(0), {"t", 1, Millis(1000), Millis(0)}, reply.Catch());
  }
  small.Run();
  EXPECT_EQ(replies[2].got->error().code, Code::kOverloaded);
  small.Pass(Millis(1000));
  EXPECT_TRUE(*replies[0].got);
}

TEST_P(LongPollTest, ABusyTopicDoesNotHoldUpAnother) {
  Submit(500);
  ASSERT_TRUE(node.Submit("quiet", {NewJob{.delay = Millis(100)}}));
  Reply quiet;
  node.service->Reserve(node.at(0), {"quiet", 1, Millis(10'000), Millis(0)}, quiet.Catch());
  for (int i = 0; i < 5; ++i) (void)node.Reserve("t", 10);
  node.Pass(Millis(100));
  ASSERT_TRUE(quiet.got);
  EXPECT_EQ((*quiet.got)->jobs.size(), 1U);
}

}  // namespace
}  // namespace tocsin
