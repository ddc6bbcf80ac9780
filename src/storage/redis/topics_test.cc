// Topics that several nodes share on one real Redis: dropped, made again, changed while a server is away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/redis/allowances.h"
#include "storage/redis/nodes_test_fixture.h"
#include "storage/redis/scripts.h"

namespace tocsin::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RedisTopics : public RedisNodes {
 protected:
  Result<void> Drop(TestNode& node) {
    return Await<void>(node, [&](Done<void> done) { node.store().DropTopic("orders", std::move(done)); });
  }
  Result<std::vector<Submitted>> TrySubmit(TestNode& node, const NewJob& job) {
    return Await<std::vector<Submitted>>(
        node, [&](auto done) { node.store().Submit("orders", {&job, 1}, clock_.Now(), std::move(done)); });
  }
  /// A topic of this version and so many slots, where all have a job but for the last.
  void Fill(TestNode& node, uint64_t version, uint32_t slots) {
    topic_.version = version;
    topic_.slots = slots;
    ASSERT_TRUE(Put(node, topic_));
    for (uint32_t slot = 0; slot + 1 < slots; ++slot) {
      ASSERT_EQ(Submit(node, Job(fmt::format("old{}", slot), 0ms, slot)), SubmitOutcome::kAccepted);
    }
  }
  static SlotKeys KeysOf(uint32_t slot) { return {"tocsin", GroupOf("orders", slot), fmt::format("orders/{}", slot)}; }
  /// Jobs that are stored anywhere.
  size_t Stored() {
    size_t jobs = 0;
    for (uint32_t slot = 0; slot < 64; ++slot) {
      jobs += static_cast<size_t>(Server().Ask({"HLEN", KeysOf(slot).Of(Part::kJob)})->integer);
    }
    return jobs;
  }
  static std::function<bool(const Command&)> Calls(std::string_view script, uint32_t slot) {
    return [script, hash_slot = HashSlot(KeysOf(slot).Of(Part::kMeta))](const Command& command) {
      return command.script() != nullptr && command.script()->name() == script && command.hash_slot() == hash_slot;
    };
  }
};

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
  Allowances late("tocsin", clock_,
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

TEST_F(RedisTopics, ASlotWhoseOpeningAFailoverLostIsOpenedAgain) {
  const auto a = Node("a");
  Fill(*a, 1, 4);
  ASSERT_TRUE(Server().Ask({"DEL", KeysOf(1).Of(Part::kMeta), KeysOf(1).Of(Part::kStore), KeysOf(1).Of(Part::kJob)}));
  EXPECT_FALSE(TrySubmit(*a, Job({}, 0ms, 1)));
  a->Pump();
  EXPECT_EQ(Submit(*a, Job({}, 0ms, 1)), SubmitOutcome::kAccepted);
  EXPECT_EQ(Submit(*a, Job({}, 0ms, 2)), SubmitOutcome::kAccepted);
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
  Command late = KeysOf(3).Call(Lua<"drop_slot">(), {Part::kNext, Part::kChore, Part::kMeta, Part::kStore, Part::kJob});
  late.Add("orders/3").Add(int64_t{1});
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

TEST_F(RedisTopics, AfterAFailoverThatLostAChangeTheTopicIsAsRedisHasIt) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  const auto before = Server().Ask({"HGET", "{tocsin}topics", "orders"});
  Topic lost = topic_;
  lost.version = 1;
  lost.paused = true;
  ASSERT_TRUE(Put(*b, lost));
  Advance(*b);
  // The new master does not have it; and its number is the one that b has seen, for all that b knows.
  ASSERT_TRUE(Server().Ask({"HSET", "{tocsin}topics", "orders", before->text}));
  int news = 0;
  b->store().OnChanged([&] { ++news; });
  ASSERT_TRUE(Server().Ask({"CLIENT", "KILL", "TYPE", "pubsub"}));
  while (news == 0) ASSERT_GT(io_.run_one_for(10s), 0U);
  const TopicChanges changes = ChangesSeenBy(*b);
  EXPECT_THAT(changes.dropped, ElementsAre("orders"));
  EXPECT_THAT(changes.changed, ElementsAre(topic_));
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
  EXPECT_LE(a->client().calls() - before, 10 * 95U);
}

TEST_F(RedisTopics, FiguresThatOtherNodesChangeAreReadInTurn) {
  const auto a = Node("a");
  const auto b = Node("b");
  topic_.slots = 64;
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  for (uint32_t slot = 0; slot < 64; ++slot) Submit(*a, Job({}, 1h, slot));
  for (int second = 0; second < 4; ++second) {
    clock_.Advance(1s);
    Advance(*b);
  }
  EXPECT_EQ(b->store().Topics()[0].scheduled, 64U);
}

TEST_F(RedisTopics, ASlotWhoseRoomAFailoverLostIsRegisteredAgain) {
  const auto a = Node("a");
  topic_.capacity_jobs = 4;
  Fill(*a, 1, 2);
  const std::string room = KeysOf(0).Of(Part::kRoom);
  const auto era = Server().Ask({"HGET", room, "era"});
  ASSERT_TRUE(Server().Ask({"HDEL", room, "j1", "b1", "s1"}));
  Command mark = KeysOf(0).Call(Lua<"next_serial">(), {Part::kRoom});
  mark.Add(era->text).Add(int64_t{1});
  const auto marked = Await<Reply>(*a, [&](auto done) { a->client().Call(std::move(mark), std::move(done)); });
  ASSERT_TRUE(marked);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(Submit(*a, Job({}, 1h, 1)), SubmitOutcome::kAccepted);
}

}  // namespace
}  // namespace tocsin::redis
