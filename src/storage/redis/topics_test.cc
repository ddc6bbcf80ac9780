// Topics that several nodes share on one real Redis: dropped, made again, changed while a server is away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/redis/allowances.h"
#include "storage/redis/topics_test_fixture.h"

namespace tocsin::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(RedisTopics, ThereAreSoManyOverAllNodes) {
  const auto a = Node("a", ClockSource::kCaller, 3);
  const auto b = Node("b", ClockSource::kCaller, 3);
  topic_.version = 1;
  const auto put = [&](TestNode& node, std::string name) {
    topic_.name = std::move(name);
    return Put(node, topic_);
  };
  EXPECT_TRUE(put(*a, "one"));
  EXPECT_TRUE(put(*b, "two"));
  EXPECT_TRUE(put(*a, "orders"));
  const auto refused = put(*b, "four");  // this node has not heard of the others
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOverCapacity);
  EXPECT_EQ(Server().Ask({"HLEN", "{tocsin}topics"})->integer, 3);
  EXPECT_TRUE(put(*b, "one")) << "one that is there is taken";
  ASSERT_TRUE(Drop(*a));
  EXPECT_TRUE(put(*b, "four"));
}

TEST_F(RedisTopics, ABoundedTopicThatIsMadeAgainTakesJobs) {
  const auto a = Node("a");
  topic_.capacity_jobs = 8;
  Fill(*a, 3, 4);
  ASSERT_TRUE(Drop(*a));
  EXPECT_EQ(Server().Ask({"EXISTS", KeysOf(0).Of(Part::kRoom)})->integer, 0);
  topic_.version = 1;
  ASSERT_TRUE(Put(*a, topic_));
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(Submit(*a, Job({}, 1h, i % 4)), SubmitOutcome::kAccepted);
  EXPECT_EQ(Submit(*a, Job({}, 1h, 0)), SubmitOutcome::kOverCapacity);
}

TEST_F(RedisTopics, RoomThatIsAskedForInAnEarlierLifeDoesNotHarmTheLaterOne) {
  const auto a = Node("a");
  topic_.capacity_jobs = 8;
  Fill(*a, 9, 4);
  const auto stored = Server().Ask({"HGET", "{tocsin}topics", "orders"});
  const auto old = DecodeTopic("orders", stored->text);
  ASSERT_TRUE(old);
  ASSERT_TRUE(Drop(*a));
  topic_.version = 1;
  ASSERT_TRUE(Put(*a, topic_));
  const GroupTags tags("tocsin", {});
  Allowances late(tags, clock_,
                  [&](Command command, auto answer) { a->client().Call(std::move(command), std::move(answer)); });
  const auto room = Await<bool>(*a, [&](auto done) { late.Ask(*old, 2, 1, 10, std::move(done)); });
  ASSERT_TRUE(room);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(Submit(*a, Job({}, 1h, i % 4)), SubmitOutcome::kAccepted);
}

TEST_F(RedisTopics, OneThatIsDroppedAndMadeAgainIsSeenAsBothByANodeThatHeardOfNeither) {
  const auto a = Node("a");
  const auto b = Node("b");
  Fill(*a, 7, 64);
  ASSERT_TRUE(Put(*b, topic_));
  Advance(*b);
  ASSERT_TRUE(Drop(*a));
  const Topic old = topic_;
  Topic again = topic_;
  again.version = 1;
  again.slots = 2;
  ASSERT_TRUE(Put(*a, again));
  clock_.Advance(1s);
  const TopicChanges changes = ChangesSeenBy(*b);
  EXPECT_THAT(changes.dropped, ElementsAre("orders"));
  EXPECT_THAT(changes.changed, ElementsAre(again));
  EXPECT_THAT(b->store().Topics(), IsEmpty());
  ASSERT_TRUE(Put(*b, again));
  EXPECT_EQ(Submit(*b, Job("x", 0ms, 1)), SubmitOutcome::kAccepted);
  EXPECT_EQ(b->store().Topics()[0].accepted, 1U) << "the counts of the earlier one are over";
  clock_.Advance(1s);
  EXPECT_THAT(ChangesSeenBy(*b).dropped, IsEmpty());
}

TEST_F(RedisTopics, TheSameSettingsMadeAgainAreAnotherTopicToo) {
  const auto a = Node("a");
  const auto b = Node("b");
  Fill(*a, 1, 4);
  ASSERT_TRUE(Put(*b, topic_));
  Advance(*b);
  ASSERT_TRUE(Drop(*a));
  ASSERT_TRUE(Put(*a, topic_));
  clock_.Advance(1s);
  EXPECT_THAT(ChangesSeenBy(*b).dropped, ElementsAre("orders"));
}

TEST_F(RedisTopics, AChangeOfATopicThatWasMadeAgainIsAConflict) {
  const auto a = Node("a");
  const auto b = Node("b");
  Fill(*a, 7, 64);
  ASSERT_TRUE(Put(*b, topic_));
  ASSERT_TRUE(Drop(*a));
  Topic again = topic_;
  again.version = 1;
  again.slots = 2;
  ASSERT_TRUE(Put(*a, again));
  topic_.version = 8;
  const auto changed = Put(*b, topic_);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, Code::kConflict);
  EXPECT_EQ(b->store().Topics()[0].topic, again) << "what it lost to";
  // The tables of the node may still have the 64 slots.
  const auto submitted = TrySubmit(*b, Job("x", 0ms, 40));
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, Code::kTopicNotFound);
}

TEST_F(RedisTopics, ADropOfATopicThatWasMadeAgainIsAConflict) {
  const auto a = Node("a");
  const auto b = Node("b");
  Fill(*a, 1, 4);
  ASSERT_TRUE(Put(*b, topic_));
  ASSERT_TRUE(Drop(*a));
  ASSERT_TRUE(Put(*a, topic_));
  EXPECT_EQ(Submit(*a, Job("new")), SubmitOutcome::kAccepted);
  const auto dropped = Drop(*b);
  ASSERT_FALSE(dropped);
  EXPECT_EQ(dropped.error().code, Code::kConflict);
  EXPECT_EQ(Stored(), 1U);
  EXPECT_TRUE(Drop(*b)) << "it knows that one now";
  EXPECT_EQ(Stored(), 0U);
}

TEST_F(RedisTopics, ANodeThatHasNotHeardOfTheDropStoresNothing) {
  const auto a = Node("a");
  const auto b = Node("b");
  Fill(*a, 1, 4);
  ASSERT_TRUE(Put(*b, topic_));
  ASSERT_TRUE(Drop(*a));
  for (const std::string_view id : {"", "own"}) {
    const auto late = TrySubmit(*b, Job(id));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::kUnavailable) << "it may be sent again";
  }
  topic_.slots = 2;
  ASSERT_TRUE(Put(*a, topic_));
  EXPECT_FALSE(TrySubmit(*b, Job({}, 0ms, 3)));
  EXPECT_FALSE(TrySubmit(*b, Job({}, 0ms, 1)));
  EXPECT_EQ(Stored(), 0U);
}

TEST_F(RedisTopics, ADropThatFailsHalfwayCanBeRepeated) {
  const auto a = Node("a");
  Fill(*a, 1, 8);
  a->client().fails = Calls("drop_slot", 3);
  EXPECT_FALSE(Drop(*a));
  EXPECT_THAT(a->store().Topics(), IsEmpty());
  EXPECT_FALSE(Drop(*a)) << "the job is still there";
  EXPECT_EQ(Stored(), 1U);
  a->client().fails = nullptr;
  EXPECT_TRUE(Drop(*a));
  EXPECT_EQ(Stored(), 0U);
  EXPECT_TRUE(Drop(*a));
}

TEST_F(RedisTopics, WhatAFailedDropLeftIsNotDeliveredByATopicOfTheSameName) {
  const auto a = Node("a");
  const auto b = Node("b");
  Fill(*a, 1, 8);
  a->client().fails = Calls("drop_slot", 3);
  EXPECT_FALSE(Drop(*a));
  ASSERT_TRUE(Put(*b, topic_));
  Advance(*b);
  EXPECT_THAT(Claim(*b), IsEmpty());
  EXPECT_EQ(b->store().Topics()[0].scheduled, 0U);
  EXPECT_EQ(Submit(*b, Job("x", 0ms, 3)), SubmitOutcome::kAccepted);
  // What the failed drop sent may arrive now.
  Command late =
      KeysOf(3).Call(Lua<"drop_slot">(), {Part::kTopics, Part::kNext, Part::kChore, Part::kMeta, Part::kJob});
  late.Add("orders/3").Add(int64_t{1}).Add("");
  ASSERT_TRUE(Await<Reply>(*a, [&](auto done) { b->client().Call(std::move(late), std::move(done)); }));
  EXPECT_EQ(Claim(*b).size(), 1U);
}

TEST_F(RedisTopics, ADropThatDidNotBeginLeavesTheTopic) {
  const auto a = Node("a");
  Fill(*a, 1, 4);
  a->client().fails = [](const Command& command) { return command.script() == &Lua<"drop_topic">(); };
  EXPECT_FALSE(Drop(*a));
  EXPECT_EQ(a->store().Topics().size(), 1U);
  EXPECT_EQ(Submit(*a, Job({}, 0ms, 3)), SubmitOutcome::kAccepted);
}

TEST_F(RedisTopics, ALateOpeningOfASlotThatWasDroppedIsRefused) {
  const auto a = Node("a");
  const auto b = Node("b");
  Fill(*a, 1, 4);
  b->client().hangs = Calls("open_slot", 2);
  bool answered = false;
  b->store().PutTopic(topic_, [&](const Result<void>&) { answered = true; });
  while (b->client().held() == 0) ASSERT_GT(io_.run_one(), 0U);
  ASSERT_TRUE(Drop(*a));
  b->client().GoOn();
  while (!answered) ASSERT_GT(io_.run_one(), 0U);
  EXPECT_FALSE(TrySubmit(*b, Job({}, 0ms, 2)));
  EXPECT_EQ(Stored(), 0U);
}

TEST_F(RedisTopics, WhatOthersDidIsToldAlsoWhereAScanFails) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  Advance(*b);
  topic_.version = 1;
  topic_.paused = true;
  ASSERT_TRUE(Put(*a, topic_));
  b->client().fails = Calls("scan", 0);
  clock_.Advance(1s);
  const Advanced told = Advance(*b);
  EXPECT_THAT(b->store().TakeTopicChanges().changed, ElementsAre(topic_));
  ASSERT_TRUE(told.trouble);
  EXPECT_EQ(told.trouble->code, Code::kUnavailable);
  b->client().fails = nullptr;
  clock_.Advance(1s);
  Advance(*b);  // it is looked at without waiting for it
  EXPECT_FALSE(Advance(*b).trouble);
}

TEST_F(RedisTopics, ADropIsADropToANodeThatKnewTheTopic) {
  const auto a = Node("a");
  const auto b = Node("b");
  Fill(*a, 1, 4);
  ASSERT_TRUE(Put(*b, topic_));
  b->OwnAll();
  Advance(*b);
  ASSERT_TRUE(Drop(*a));
  clock_.Advance(10s);
  EXPECT_THAT(ChangesSeenBy(*b).dropped, ElementsAre("orders"));
  EXPECT_EQ(Server().Ask({"HLEN", "{tocsin}topics"})->integer, 0);
  EXPECT_GT(Server().Ask({"TTL", "{tocsin}dropped:orders"})->integer, 3600);
}

TEST_F(RedisTopics, WhatAFailedDropLeftIsRemovedByTheOwnerOfItsGroup) {
  const auto a = Node("a");
  const auto b = Node("b");
  Fill(*a, 1, 8);
  a->client().fails = Calls("drop_slot", 3);
  EXPECT_FALSE(Drop(*a));
  EXPECT_EQ(Stored(), 1U);
  b->OwnAll();
  Advance(*b);
  EXPECT_EQ(Stored(), 0U);
}

TEST_F(RedisTopics, ANodeStartsAlthoughATopicHasSettingsOfALaterVersion) {
  Fill(*Node("a"), 1, 4);
  ASSERT_TRUE(Server().Ask({"HSET", "{tocsin}topics", "later", "settings that this version does not know"}));
  const auto b = Node("b");
  EXPECT_EQ(b->store().Topics().size(), 1U);
  EXPECT_EQ(Submit(*b, Job({}, 0ms, 3)), SubmitOutcome::kAccepted);
  Topic later = DefaultTopic("later");
  later.version = 1;
  const auto made = Put(*b, later);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kUnsupportedFormat);
}

TEST_F(RedisTopics, ChangesAreReadWithoutAllOtherTopics) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  Quiet();
  ASSERT_THAT(ChangesSeenBy(*b).changed, ElementsAre(topic_));
  ASSERT_TRUE(Put(*b, topic_));
  ASSERT_TRUE(Server().Ask({"CONFIG", "RESETSTAT"}));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Put(*a, DefaultTopic(fmt::format("t{}", i))));
  Quiet();
  EXPECT_EQ(ChangesSeenBy(*b).changed.size(), 200U);
  ASSERT_TRUE(Drop(*a));
  Quiet();
  EXPECT_THAT(ChangesSeenBy(*b).dropped, ElementsAre("orders"));
  const auto stats = Server().Ask({"INFO", "commandstats"});
  EXPECT_FALSE(stats->text.contains("cmdstat_hgetall"));
  // One message is missing: it reads all.
  ASSERT_TRUE(Server().Ask({"INCR", "{tocsin}topics:version"}));
  topic_.version = 1;
  ASSERT_TRUE(Put(*a, topic_));
  Quiet();
  const TopicChanges changes = ChangesSeenBy(*b);
  EXPECT_THAT(changes.changed, testing::Contains(topic_));
  const auto after = Server().Ask({"INFO", "commandstats"});
  EXPECT_TRUE(after->text.contains("cmdstat_hgetall"));
}

TEST_F(RedisTopics, AChangeThatIsHeardOfCostsOneRead) {
  const auto a = Node("a");
  const auto b = Node("b");
  b->OwnAll();
  Advance(*b);
  topic_.slots = 64;
  // The subscriptions of b may have come up just now, and then it looks at all.
  ASSERT_TRUE(Put(*a, DefaultTopic("first")));
  Quiet();
  Hear(*b);
  Advance(*b);
  for (const bool paused : {false, true}) {
    ++topic_.version;
    topic_.paused = paused;
    ASSERT_TRUE(Put(*a, topic_));
    Quiet();
    const auto scans = Counted(*b, "scan");
    const size_t before = b->client().calls();
    Hear(*b);
    Advance(*b);
    EXPECT_EQ(b->client().calls() - before - *scans, 1U) << "HMGET";
    EXPECT_LE(*scans, paused ? 0U : kGroups) << "of groups, once, for the slots that are new to it";
  }
  EXPECT_EQ(b->store().FindFigures("orders")->topic, topic_);
  EXPECT_EQ(Submit(*b, Job("x", 0ms, 63)), SubmitOutcome::kAccepted);
  EXPECT_EQ(b->store().FindFigures("orders")->accepted, 1U);
}

TEST_F(RedisTopics, ASlotThatItsMakerHasNotOpenedYetTakesJobsOfOthers) {
  const auto a = Node("a");
  const auto b = Node("b");
  topic_.slots = 4;
  a->client().hangs = Calls("open_slot", 2);
  bool answered = false;
  a->store().PutTopic(topic_, [&](const Result<void>&) { answered = true; });
  while (a->client().held() == 0) ASSERT_GT(io_.run_one(), 0U);
  Quiet();
  Advance(*b);
  Hear(*b);
  EXPECT_EQ(Submit(*b, Job("x", 0ms, 2)), SubmitOutcome::kAccepted);
  EXPECT_EQ(Submit(*b, Job({}, 0ms, 2)), SubmitOutcome::kAccepted);
  a->client().GoOn();
  while (!answered) ASSERT_GT(io_.run_one(), 0U);
  EXPECT_EQ(Claim(*b).size(), 2U);
}

TEST_F(RedisTopics, SlotsThatADeadNodeDidNotOpenAreOpenedByTheOwnerOfTheirGroup) {
  const auto b = Node("b");
  topic_.slots = 4;
  b->OwnAll();
  Advance(*b);
  {
    const auto a = Node("a");
    a->client().fails = [](const Command& command) { return command.script() == &Lua<"open_slot">(); };
    EXPECT_FALSE(Put(*a, topic_));
  }
  Quiet();
  Hear(*b);
  for (int second = 0; second < 10; ++second) {
    clock_.Advance(1s);
    Advance(*b);
  }
  for (uint32_t slot = 0; slot < 4; ++slot) {
    EXPECT_EQ(Server().Ask({"HEXISTS", KeysOf(slot).Of(Part::kMeta), "birth"})->integer, 1) << slot;
    EXPECT_EQ(Server().Ask({"HEXISTS", KeysOf(slot).Of(Part::kTopics), "orders"})->integer, 1) << slot;
  }
}

TEST_F(RedisTopics, ACopyOfAGroupThatMissedAChangeIsMendedByItsNextOwner) {
  const auto a = Node("a");
  Fill(*a, 1, 4);
  a->client().fails = [](const Command& command) { return command.script() == &Lua<"open_slot">(); };
  topic_.version = 2;
  topic_.paused = true;
  EXPECT_FALSE(Put(*a, topic_));
  const auto b = Node("b");
  b->OwnAll();
  Advance(*b);
  const auto stored = Server().Ask({"HGET", "{tocsin}topics", "orders"});
  EXPECT_EQ(Server().Ask({"HGET", KeysOf(2).Of(Part::kTopics), "orders"})->text, stored->text);
}

TEST_F(RedisTopics, ATopicOfAThousandIdleSlotsCostsFewCommands) {
  const auto a = Node("a");
  topic_.slots = 1024;
  ASSERT_TRUE(Put(*a, topic_));
  a->OwnAll();
  Advance(*a);
  const size_t before = a->client().calls();
  for (int second = 0; second < 10; ++second) {
    clock_.Advance(1s);
    Advance(*a);
  }
  EXPECT_LE(a->client().calls() - before, 10 * 100U);
}

TEST_F(RedisTopics, FiguresThatOtherNodesChangeAreReadIfNobodyOwnsTheGroup) {
  const auto a = Node("a");
  const auto b = Node("b");
  topic_.slots = 64;
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  for (uint32_t slot = 0; slot < 64; ++slot) Submit(*a, Job({}, 1h, slot));
  clock_.Advance(1s);
  Advance(*b);
  EXPECT_EQ(b->store().Topics()[0].scheduled, 64U);
}

}  // namespace
}  // namespace tocsin::redis
