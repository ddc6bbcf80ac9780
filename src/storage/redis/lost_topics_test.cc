// Topics, or parts of them, that a real Redis has lost: who puts them back, and as what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/redis/topics_test_fixture.h"

namespace tocsin::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(RedisTopics, ASlotWhoseOpeningAFailoverLostIsOpenedAgain) {
  const auto a = Node("a");
  Fill(*a, 1, 4);
  ASSERT_TRUE(Server().Ask({"DEL", KeysOf(1).Of(Part::kMeta), KeysOf(1).Of(Part::kStore), KeysOf(1).Of(Part::kJob)}));
  EXPECT_FALSE(TrySubmit(*a, Job({}, 0ms, 1)));
  a->Pump();
  EXPECT_EQ(Submit(*a, Job({}, 0ms, 1)), SubmitOutcome::kAccepted);
  EXPECT_EQ(Submit(*a, Job({}, 0ms, 2)), SubmitOutcome::kAccepted);
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

TEST_F(RedisTopics, ATopicThatRedisHasLostIsMadeAgainWithItsJobs) {
  Fill(*Node("a"), 3, 16);
  ASSERT_EQ(Stored(), 15U);
  ASSERT_TRUE(Server().Ask({"DEL", "{tocsin}topics"}));
  const auto b = Node("b");
  Topic again = DefaultTopic("orders");
  again.version = 1;
  const auto made = Put(*b, again);
  EXPECT_EQ(Stored(), 15U);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kConflict);
  EXPECT_EQ(b->store().Topics()[0].topic, topic_) << "as its slots know it";
  ASSERT_TRUE(Put(*b, topic_));
  EXPECT_EQ(Claim(*b).size(), 15U);
}

TEST_F(RedisTopics, ATopicThatNeitherTheHashNorItsFirstGroupKnowsIsNotMadeAgainWithFewerSlots) {
  Fill(*Node("a"), 3, 16);
  ASSERT_TRUE(Server().Ask({"DEL", "{tocsin}topics", "{tocsin}topics:version", KeysOf(0).Of(Part::kTopics)}));
  const auto b = Node("b");
  Topic again = topic_;
  again.version = 1;
  again.slots = 1;
  EXPECT_FALSE(Put(*b, again));
  EXPECT_EQ(b->store().Topics()[0].topic, topic_) << "as its other slots know it";
  ASSERT_TRUE(Put(*b, topic_));
  EXPECT_EQ(Claim(*b).size(), 15U);
}

TEST_F(RedisTopics, JobsOfATopicThatNeitherTheHashNorItsFirstGroupsKnowAreTakenOver) {
  Fill(*Node("a"), 3, 4);
  ASSERT_TRUE(Server().Ask({"DEL", "{tocsin}topics", "{tocsin}topics:version"}));
  for (uint32_t slot = 0; slot < 4; ++slot) ASSERT_TRUE(Server().Ask({"DEL", KeysOf(slot).Of(Part::kTopics)}));
  const auto b = Node("b");
  topic_.version = 1;
  topic_.slots = 8;
  ASSERT_TRUE(Put(*b, topic_));
  EXPECT_EQ(b->store().Topics()[0].scheduled, 3U);
  EXPECT_EQ(Claim(*b).size(), 3U);
}

TEST_F(RedisTopics, ANodePutsATopicThatRedisHasLostBackWithItsBirth) {
  const auto a = Node("a");
  Fill(*a, 3, 4);
  a->OwnAll();
  const auto before = Server().Ask({"HGET", "{tocsin}topics", "orders"});
  ASSERT_TRUE(Server().Ask({"DEL", "{tocsin}topics", "{tocsin}topics:version"}));
  clock_.Advance(1s);
  EXPECT_THAT(ChangesSeenBy(*a).dropped, IsEmpty());
  EXPECT_EQ(Server().Ask({"HGET", "{tocsin}topics", "orders"})->text, before->text);
  EXPECT_EQ(Submit(*a, Job({}, 0ms, 3)), SubmitOutcome::kAccepted);
  EXPECT_EQ(Claim(*a).size(), 4U);
}

TEST_F(RedisTopics, ATopicThatRedisHasLostThoughNotTheVersionIsPutBackForNodesThatDoNotKnowIt) {
  const auto a = Node("a");
  Fill(*a, 3, 4);
  ASSERT_TRUE(Put(*a, DefaultTopic("other")));
  a->OwnAll();
  Advance(*a);
  const auto before = Server().Ask({"HGET", "{tocsin}topics", "orders"});
  for (const bool one : {false, true}) {
    std::vector<std::string> loss = {"DEL", "{tocsin}topics"};
    if (one) loss = {"HDEL", "{tocsin}topics", "orders"};
    ASSERT_TRUE(Server().Ask(loss));
    const auto c = Node("c");
    for (int second = 0; second < 12; ++second) {
      clock_.Advance(1s);
      EXPECT_THAT(ChangesSeenBy(*a).dropped, IsEmpty());
    }
    EXPECT_EQ(Server().Ask({"HGET", "{tocsin}topics", "orders"})->text, before->text);
    EXPECT_EQ(Server().Ask({"HLEN", "{tocsin}topics"})->integer, 2);
    Quiet();
    EXPECT_THAT(ChangesSeenBy(*c).changed, Contains(topic_));
  }
}

TEST_F(RedisTopics, ATopicThatIsMissingForAMomentCausesNoReadOfAll) {
  const auto a = Node("a");
  Fill(*a, 1, 4);
  Advance(*a);
  const auto entry = Server().Ask({"HGET", "{tocsin}topics", "orders"});
  const auto reads = ReadsOfAllTopics(*a);
  for (int second = 0; second < 30; ++second) {
    // A node counts every five seconds.
    std::vector<std::string> change = {"HSET", "{tocsin}topics", "orders", entry->text};
    if (second % 10 < 5) change = {"HDEL", "{tocsin}topics", "orders"};
    ASSERT_TRUE(Server().Ask(change));
    clock_.Advance(1s);
    Advance(*a);
  }
  EXPECT_EQ(*reads, 0U);
}

TEST_F(RedisTopics, ATopicThatOnlyALaterProgramCanReadIsNotTakenForALostOne) {
  const auto a = Node("a");
  Fill(*a, 1, 4);
  Advance(*a);
  std::string entry = Server().Ask({"HGET", "{tocsin}topics", "orders"})->text;
  entry.insert(entry.size() - kTopicNumberBytes, "\x07");
  const auto reads = ReadsOfAllTopics(*a);
  const auto reads_after = [&](const std::vector<std::string>& change, bool told) {
    EXPECT_TRUE(Server().Ask(change));
    if (told) EXPECT_TRUE(Server().Ask({"INCR", "{tocsin}topics:version"}));
    const size_t first = *reads;
    for (int second = 0; second < 40; ++second) {
      clock_.Advance(1s);
      Advance(*a);
    }
    return *reads - first;
  };
  EXPECT_EQ(reads_after({"HSET", "{tocsin}topics", "later", entry}, true), 1U);
  EXPECT_EQ(reads_after({"HDEL", "{tocsin}topics", "later"}, true), 1U) << "it is forgotten";
  EXPECT_EQ(reads_after({"HSET", "{tocsin}topics", "later", entry}, true), 1U);
  EXPECT_EQ(reads_after({"HDEL", "{tocsin}topics", "later"}, false), 1U) << "once, to find out that it is lost";
  EXPECT_EQ(reads_after({"HSET", "{tocsin}topics", "orders", entry}, true), 1U) << "it counts once";
}

TEST_F(RedisTopics, TheDropOfATopicThatRedisHadLostIsTold) {
  const auto a = Node("a");
  const auto b = Node("b");
  Fill(*a, 1, 4);
  ASSERT_TRUE(Put(*b, topic_));
  Advance(*b);
  ASSERT_TRUE(Server().Ask({"HDEL", "{tocsin}topics", "orders"}));
  ASSERT_TRUE(Drop(*a));
  Quiet();
  EXPECT_THAT(ChangesSeenBy(*b).dropped, ElementsAre("orders"));
}

TEST_F(RedisTopics, ATopicThatNobodyKnowsIsFoundFromItsSlots) {
  Fill(*Node("a"), 3, 16);
  ASSERT_TRUE(Server().Ask({"DEL", "{tocsin}topics", "{tocsin}topics:version"}));
  const auto b = Node("b");
  EXPECT_THAT(b->store().Topics(), IsEmpty());
  b->OwnAll();
  Advance(*b);
  clock_.Advance(1s);
  EXPECT_THAT(ChangesSeenBy(*b).changed, ElementsAre(topic_));
  ASSERT_TRUE(Put(*b, topic_));
  EXPECT_EQ(Claim(*b).size(), 15U);
}

TEST_F(RedisTopics, AnOldCopyOfTheTopicsDoesNotBringAnEarlierLifeBack) {
  const auto a = Node("a");
  a->OwnAll();
  Fill(*a, 1, 4);
  const auto old = Server().Ask({"HGET", "{tocsin}topics", "orders"});
  ASSERT_TRUE(Drop(*a));
  ASSERT_TRUE(Put(*a, topic_));
  const auto present = Server().Ask({"HGET", "{tocsin}topics", "orders"});
  ASSERT_EQ(Submit(*a, Job("new")), SubmitOutcome::kAccepted);
  ASSERT_TRUE(Server().Ask({"DEL", "{tocsin}dropped:orders"}));
  ASSERT_TRUE(Server().Ask({"HSET", "{tocsin}topics", "orders", old->text}));
  ASSERT_TRUE(Server().Ask({"SET", "{tocsin}topics:version", "1"}));
  clock_.Advance(1s);
  EXPECT_THAT(ChangesSeenBy(*a).dropped, IsEmpty());
  EXPECT_EQ(Server().Ask({"HGET", "{tocsin}topics", "orders"})->text, present->text);
  EXPECT_EQ(Stored(), 1U);
}

TEST_F(RedisTopics, SlotsThatAFailoverLostAreOpenedByTheOwnerOfTheirGroup) {
  const auto a = Node("a");
  Fill(*a, 1, 4);
  a->OwnAll();
  Advance(*a);
  const SlotKeys keys = KeysOf(1);
  ASSERT_TRUE(Server().Ask({"DEL", keys.Of(Part::kMeta), keys.Of(Part::kStore), keys.Of(Part::kJob),
                            keys.Of(Part::kTopics), keys.Of(Part::kNext)}));
  for (int second = 0; second < 10; ++second) {
    clock_.Advance(1s);
    Advance(*a);
  }
  EXPECT_EQ(Submit(*a, Job({}, 0ms, 1)), SubmitOutcome::kAccepted);
}

TEST_F(RedisTopics, WhatRedisHasLostOneNodePutsBackAtOnce) {
  const auto nodes = ThreeNodes();
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Put(*nodes[0], DefaultTopic(fmt::format("t{}", i))));
  Quiet();
  for (const auto& node : nodes) Hear(*node);
  std::vector<std::shared_ptr<size_t>> puts;
  for (const auto& node : nodes) puts.push_back(Counted(*node, "put_topic"));
  ASSERT_TRUE(Server().Ask({"DEL", "{tocsin}topics", "{tocsin}topics:version"}));
  clock_.Advance(900ms);
  for (int round = 0; round < 2; ++round) {
    clock_.Advance(100ms);
    for (const auto& node : nodes) EXPECT_THAT(ChangesSeenBy(*node).dropped, IsEmpty());
    Quiet();
  }
  EXPECT_EQ(Server().Ask({"HLEN", "{tocsin}topics"})->integer, 30);
  EXPECT_EQ(*puts[0] + *puts[1] + *puts[2], 30U);
  for (const auto& each : puts) EXPECT_GT(*each, 0U);
  for (int second = 0; second < 5; ++second) {
    clock_.Advance(1s);
    for (const auto& node : nodes) Hear(*node);
  }
  EXPECT_EQ(*puts[0] + *puts[1] + *puts[2], 30U) << "the others have found them";
}

TEST_F(RedisTopics, WhatItsFirstNodeDoesNotPutBackAnotherDoesLater) {
  const auto nodes = ThreeNodes();
  ASSERT_TRUE(Put(*nodes[0], topic_));
  Quiet();
  for (const auto& node : nodes) Hear(*node);
  std::vector<TestNode*> others;
  for (uint32_t i = 0; i < 3; ++i) {
    if (GroupTags("tocsin", {}).GroupOf("orders", 0) % 3 != i) others.push_back(nodes[i].get());
  }
  ASSERT_TRUE(Server().Ask({"DEL", "{tocsin}topics", "{tocsin}topics:version"}));
  clock_.Advance(1s);
  for (TestNode* const node : others) Hear(*node);
  EXPECT_EQ(Server().Ask({"HLEN", "{tocsin}topics"})->integer, 0);
  for (int second = 0; second < 3; ++second) {
    clock_.Advance(1s);
    for (TestNode* const node : others) Hear(*node);
  }
  EXPECT_EQ(Server().Ask({"HLEN", "{tocsin}topics"})->integer, 1);
}

TEST_F(RedisTopics, ADropThatIsHeardOfCostsNoScript) {
  const auto nodes = ThreeNodes();
  ASSERT_TRUE(Put(*nodes[0], topic_));
  Quiet();
  for (const auto& node : nodes) Hear(*node);
  std::vector<std::shared_ptr<size_t>> puts;
  for (const auto& node : nodes) puts.push_back(Counted(*node, "put_topic"));
  ASSERT_TRUE(Drop(*nodes[0]));
  Quiet();
  for (size_t i : {1, 2}) EXPECT_THAT(ChangesSeenBy(*nodes[i]).dropped, ElementsAre("orders"));
  EXPECT_EQ(*puts[0] + *puts[1] + *puts[2], 0U);
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
