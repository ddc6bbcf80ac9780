// Long polls: who waits, who is served, what is given back; lost wake-ups.
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "core/figures.h"
#include "core/test_node.h"
#include "core/test_sinks.h"

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
  std::set<std::string> Holders() const {
    std::set<std::string> holders;
    for (const auto& store : node.stores) holders.insert(store->holders.begin(), store->holders.end());
    return holders;
  }
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

// Each claim hands over one job of a MiB, so that a reserve ends at 16 of them.
TEST_P(LongPollTest, AReserveCutShortBySizeLeavesMoreToClaim) {
  (void)node.PutTopic(DefaultTopic("t"));
  for (auto& store : node.stores) store->cut_claims = true;
  const std::string payload(1 << 20, 'x');
  for (size_t i = 0; i < 40; ++i) ASSERT_TRUE(node.Submit("t", {NewJob{.payload = payload}}, i));
  size_t got = 0;
  while (got < 40) {
    Reply reply;
    Wait(reply, 100, Millis(10'000), 0);
    ASSERT_TRUE(reply.got.has_value()) << "no time has passed: only a wake-up or the mark of more can serve it, "
                                       << got;
    ASSERT_GE((*reply.got)->jobs.size(), 1U);
    EXPECT_LE((*reply.got)->jobs.size(), 16U);
    got += (*reply.got)->jobs.size();
  }
  EXPECT_EQ(got, 40U);
}

TEST_P(LongPollTest, AReserveGetsAllThatItAskedForHoweverManyClaimsThatTakes) {
  Topic topic = DefaultTopic("t");
  topic.slots = 1;  // all jobs are on one shard
  (void)node.PutTopic(topic);
  for (auto& store : node.stores) store->cut_claims = true;
  Submit(20);
  Reply reply;
  Wait(reply, 15);
  ASSERT_TRUE(reply.got);
  EXPECT_EQ((*reply.got)->jobs.size(), 15U);
  std::set<Uid> seen;
  for (const JobView& job : (*reply.got)->jobs) seen.insert(job.uid);
  EXPECT_EQ(seen.size(), 15U);
  EXPECT_EQ(Leased(), 15U);
  Reply rest;
  Wait(rest, 15);
  ASSERT_TRUE(rest.got);
  EXPECT_EQ((*rest.got)->jobs.size(), 5U) << "all that there are: it does not wait for more";
}

// A parked reserve is claimed for later, from other shards, and in several parts.
TEST_P(LongPollTest, EveryClaimOfAReserveSaysWhoTakesTheJobs) {
  for (auto& store : node.stores) store->cut_claims = true;
  Reply reply;
  node.service->Reserve(node.at(1), {.topic = "t", .max = 5, .wait = Millis(10'000), .consumer = "worker-3"},
                        reply.Catch());
  node.Run();
  Submit(20);
  ASSERT_TRUE(reply.got);
  EXPECT_FALSE((*reply.got)->jobs.empty());
  EXPECT_GE(Claims(), (*reply.got)->jobs.size());
  EXPECT_EQ(Holders(), std::set<std::string>{"worker-3"});
}

TEST_P(LongPollTest, AnotherTaskHasItsTurnBetweenThePartsOfALargeReserve) {
  Topic topic = DefaultTopic("t");
  topic.slots = 1;
  (void)node.PutTopic(topic);
  Submit(10'000);
  std::vector<size_t> seen;  // jobs that were leased when others had their turn
  const auto look = [&](auto&& self, size_t turns) -> void {
    seen.push_back(Claims());
    if (turns > 0) node.at(0).Post([&, turns] { self(self, turns - 1); });
  };
  Reply reply;
  const size_t before = Claims();
  node.service->Reserve(node.at(0), {"t", 10'000, Millis(10'000), Millis(0)}, reply.Catch());
  look(look, 100);
  node.Run();
  ASSERT_TRUE(reply.got);
  EXPECT_EQ((*reply.got)->jobs.size(), 10'000U);
  EXPECT_EQ(Claims() - before, 5U) << "of 2,000 jobs each";
  EXPECT_GE(std::set<size_t>(seen.begin(), seen.end()).size(), 5U);
}

TEST_P(LongPollTest, WhatACancelledReserveGetsInSeveralTurnsIsReleased) {
  Topic topic = DefaultTopic("t");
  topic.slots = 1;
  (void)node.PutTopic(topic);
  Submit(6'000);
  std::vector<Task> held;
  for (auto& store : node.stores) store->held = &held;
  Reply reply;
  const ReserveId id = Wait(reply, 6'000);
  ASSERT_EQ(held.size(), 1U);
  std::exchange(held, {}).front()();  // its first part
  node.Run();
  ASSERT_EQ(held.size(), 1U);
  node.service->CancelReserve(id);
  node.Run();
  EXPECT_TRUE((*reply.got)->jobs.empty());
  for (auto& store : node.stores) store->held = nullptr;
  std::exchange(held, {}).front()();
  node.Run();
  EXPECT_EQ(Leased(), 0U);
  EXPECT_EQ(node.Topics()[0].ready, 6'000U);
}

TEST_P(LongPollTest, AFailureInTheMiddleDoesNotHideWhatWasClaimed) {
  Topic topic = DefaultTopic("t");
  topic.slots = 1;
  (void)node.PutTopic(topic);
  Submit(6'000);
  std::vector<Task> held;
  for (auto& store : node.stores) store->held = &held;
  Reply reply;
  Wait(reply, 6'000);
  ASSERT_EQ(held.size(), 1U);
  for (auto& store : node.stores) store->fail_claims = Code::kUnavailable;
  std::exchange(held, {}).front()();
  node.Run();
  ASSERT_TRUE(reply.got);
  ASSERT_TRUE(*reply.got);
  EXPECT_EQ((*reply.got)->jobs.size(), 2'000U);
  EXPECT_EQ(Leased(), 2'000U);
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

/// Many reserves that wait on one shard, whose claims and answers need no message.
class ManyLongPolls : public testing::Test {
 protected:
  static constexpr size_t kReserves = 300;
  static constexpr size_t kTurnMax = 128;  // answers

  void Park(const std::string& topic, Millis wait = Millis(10'000)) {
    node.service->Reserve(node.at(0), {topic, 1, wait, Millis(0)}, [this, reserve = reserves_++](Result<JobBatch> got) {
      ASSERT_TRUE(got);
      (got->jobs.empty() ? empty : served).push_back(reserve);
    });
  }
  void ParkAll(Millis wait = Millis(10'000)) {
    for (size_t i = 0; i < kReserves; ++i) Park("t", wait);
    node.Run();
    ASSERT_TRUE(served.empty() && empty.empty());
  }
  /// Runs the loop until it has nothing to do. The most reserves that one task of it has answered.
  size_t LongestTurn() {
    size_t longest = 0;
    for (bool ran = true; ran;) {
      const size_t before = served.size() + empty.size();
      ran = node.loops[0]->RunOne();
      longest = std::max(longest, served.size() + empty.size() - before);
    }
    return longest;
  }
  static std::vector<size_t> Numbers(size_t from, size_t to) {
    std::vector<size_t> numbers(to - from);
    std::iota(numbers.begin(), numbers.end(), from);
    return numbers;
  }

  TestSinks sinks;
  TestNode node{1, false, {}, &sinks};
  std::vector<size_t> served;
  std::vector<size_t> empty;

 private:
  size_t reserves_ = 0;
};

TEST_F(ManyLongPolls, ThatWakeTogetherAreServedInShortTurnsInTheOrderOfArrival) {
  ASSERT_TRUE(node.Submit("t", std::vector<NewJob>(kReserves, NewJob{.delay = Millis(700)})));
  ASSERT_NO_FATAL_FAILURE(ParkAll());
  node.clock.Advance(Millis(700));
  EXPECT_LE(LongestTurn(), kTurnMax);
  EXPECT_EQ(served, Numbers(0, kReserves)) << "no time has passed: none waits for the next scan";
  EXPECT_TRUE(empty.empty());
}

TEST_F(ManyLongPolls, OfManyTopicsThatWakeTogetherAreServedInShortTurns) {
  for (size_t i = 0; i < kReserves; ++i) {
    ASSERT_TRUE(node.Submit(fmt::format("t{}", i), {NewJob{.delay = Millis(20'000)}}));
  }
  for (size_t i = 0; i < kReserves; ++i) Park(fmt::format("t{}", i), Millis(30'000));
  node.Run();
  node.clock.Advance(Millis(20'000));
  EXPECT_LE(LongestTurn(), kTurnMax);
  EXPECT_EQ(served.size(), kReserves);
}

TEST_F(ManyLongPolls, ThatExpireTogetherAreAnsweredInShortTurns) {
  (void)node.PutTopic(DefaultTopic("t"));
  ASSERT_NO_FATAL_FAILURE(ParkAll(Millis(700)));
  node.clock.Advance(Millis(700));
  EXPECT_LE(LongestTurn(), kTurnMax);
  EXPECT_EQ(empty, Numbers(0, kReserves));
}

TEST_F(ManyLongPolls, GetTheJobsThatAreDueAtTheirDeadline) {
  ASSERT_TRUE(node.Submit("t", std::vector<NewJob>(kReserves / 2, NewJob{.delay = Millis(700)})));
  ASSERT_NO_FATAL_FAILURE(ParkAll(Millis(700)));
  node.clock.Advance(Millis(700));
  EXPECT_LE(LongestTurn(), 2 * kTurnMax) << "some get a job, others nothing";
  EXPECT_EQ(served, Numbers(0, kReserves / 2));
  EXPECT_EQ(empty, Numbers(kReserves / 2, kReserves));
}

TEST_F(ManyLongPolls, OfATopicThatIsPushedFromNowOnAreAnsweredInShortTurns) {
  ASSERT_TRUE(node.Submit("t", std::vector<NewJob>(kReserves, NewJob{.delay = Millis(700)})));
  ASSERT_NO_FATAL_FAILURE(ParkAll());
  Topic topic = DefaultTopic("t");
  topic.delivery = {.sink = "webhook", .settings = {{"url", "http://receiver/"}}};
  TestNode::Reply<ChangedTopic> changed;
  node.service->ChangeTopic(node.at(0), {"t", TestNode::EverySetting(topic)}, changed.Catch());
  EXPECT_LE(LongestTurn(), kTurnMax);
  ASSERT_TRUE(changed.got && *changed.got) << changed.got->error().message;
  EXPECT_EQ(empty, Numbers(0, kReserves));
}

TEST_F(ManyLongPolls, AStopAnswersThoseWhoseTurnHasNotCome) {
  ASSERT_TRUE(node.Submit("t", std::vector<NewJob>(kReserves, NewJob{.delay = Millis(700)})));
  ASSERT_NO_FATAL_FAILURE(ParkAll());
  node.clock.Advance(Millis(700));
  while (served.empty()) ASSERT_TRUE(node.loops[0]->RunOne());
  EXPECT_LT(served.size(), kReserves);
  EXPECT_TRUE(node.Stop());
  EXPECT_EQ(served.size() + empty.size(), kReserves);
}

}  // namespace
}  // namespace tocsin
