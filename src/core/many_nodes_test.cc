// Topics of a store that several nodes share. The other node is played by the test: it changes the shared topics, and
// has the store of shard 0 tell of it.
#include <gtest/gtest.h>

#include "core/figures.h"
#include "core/test_node.h"

namespace tocsin {
namespace {

class ManyNodesTest : public testing::TestWithParam<std::tuple<size_t, bool>> {
 protected:
  ManyNodesTest() {
    for (auto& store : node.stores) store->shared = &shared;
  }

  /// The other node stores a topic; this one hears of it where `told`.
  void OtherPuts(Topic topic, uint64_t version, bool told = true) {
    topic.version = version;
    shared[topic.name] = topic;
    if (!told) return;
    node.memory[0]->PutTopic(topic, [](Result<void>) {});
    node.stores[0]->topic_changes.changed.push_back(HeardTopic{topic});
    Tell();
  }
  void OtherDrops(const std::string& name) {
    shared.erase(name);
    node.stores[0]->ForgetTopic(name);
    node.stores[0]->topic_changes.dropped.push_back(name);
    Tell();
  }
  void Tell() {
    node.Run();
    node.stores[0]->changed();
    node.Run();
  }
  static Topic WithLease(int64_t lease_ms, std::string name = "t") {
    Topic topic = DefaultTopic(std::move(name));
    topic.lease = Millis(lease_ms);
    return topic;
  }
  Result<ChangedTopic> Change(TopicChange change, IfUnknown if_unknown = IfUnknown::kCreate) {
    TestNode::Reply<ChangedTopic> reply;
    node.service->ChangeTopic(node.at(1), {"t", change, if_unknown}, reply.Catch());
    node.Run();
    return *std::move(reply.got);
  }
  bool EveryShardKnows(const std::string& name) {
    bool all = true;
    for (size_t i = 0; i < node.loops.size(); ++i) all = all && node.service->Knows(node.at(i), name);
    return all;
  }

  TestNode node{std::get<0>(GetParam()), std::get<1>(GetParam())};
  SharedTopics shared;
};

INSTANTIATE_TEST_SUITE_P(Shards, ManyNodesTest, testing::Combine(testing::Values(1, 2, 4), testing::Bool()),
                         [](const auto& info) {
                           return fmt::format("{}{}", std::get<0>(info.param),
                                              std::get<1>(info.param) ? "late" : "at_once");
                         });

TEST_P(ManyNodesTest, ATopicOfAnotherNodeIsKnownOnEveryShard) {
  OtherPuts(WithLease(1234), 3);
  EXPECT_TRUE(EveryShardKnows("t"));
  ASSERT_EQ(node.Topics().size(), 1U);
  EXPECT_EQ(node.Topics()[0].topic.lease, Millis(1234));
  EXPECT_EQ(node.Topics()[0].topic.version, 3U);
  for (auto& store : node.memory) EXPECT_EQ(store->Topics().size(), 1U) << "every shard's store takes calls for it";
}

TEST_P(ManyNodesTest, ATopicThatAppearsServesThoseWhoWaitForIt) {
  TestNode::Reply<JobBatch> waiting;
  node.service->Reserve(node.at(1), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  node.Run();
  OtherPuts(WithLease(1234), 1);
  ASSERT_TRUE(node.Submit("t", {NewJob{}}));
  ASSERT_TRUE(waiting.got);
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
}

TEST_P(ManyNodesTest, NewSettingsOfAnotherNodeTakeEffectAndOldOnesDoNot) {
  ASSERT_TRUE(node.PutTopic(WithLease(1000)));
  OtherPuts(WithLease(2000), 2);
  EXPECT_EQ(node.Topics()[0].topic.lease, Millis(2000));
  node.stores[0]->topic_changes.changed.push_back(HeardTopic{WithLease(1000)});
  node.stores[0]->topic_changes.changed.back().version = 1;  // an old word that comes late
  node.stores[0]->before_put = [](const Topic&) { ADD_FAILURE() << "an old word is not even worth asking the store"; };
  Tell();
  EXPECT_EQ(node.Topics()[0].topic.lease, Millis(2000));
}

TEST_P(ManyNodesTest, AnotherNodeMayPauseAndResume) {
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  Topic paused = DefaultTopic("t");
  paused.paused = true;
  OtherPuts(paused, 2);
  TestNode::Reply<JobBatch> waiting;
  node.service->Reserve(node.at(0), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  ASSERT_TRUE(node.Submit("t", {NewJob{}}));
  EXPECT_FALSE(waiting.got);
  OtherPuts(DefaultTopic("t"), 3);
  ASSERT_TRUE(waiting.got);
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
}

TEST_P(ManyNodesTest, ATopicThatAnotherNodeDropsIsForgottenButNotWhoWaits) {
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  TestNode::Reply<JobBatch> waiting;
  node.service->Reserve(node.at(1), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  node.Run();
  OtherDrops("t");
  for (size_t i = 0; i < node.loops.size(); ++i) EXPECT_FALSE(node.service->Knows(node.at(i), "t"));
  EXPECT_TRUE(node.Topics().empty());
  EXPECT_FALSE(waiting.got);
  ASSERT_TRUE(node.Submit("t", {NewJob{}}, 1));
  ASSERT_TRUE(waiting.got);
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
}

TEST_P(ManyNodesTest, ADropThatIsHeardOfAfterTheTopicWasMadeAgainHereChangesNothing) {
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  node.stores[0]->topic_changes.dropped.push_back("t");
  Tell();
  EXPECT_TRUE(EveryShardKnows("t"));
}

TEST_P(ManyNodesTest, ATopicThatAnotherNodeDropsAndMakesAgainHasItsNewSettings) {
  ASSERT_TRUE(node.PutTopic(WithLease(1000)));
  ASSERT_TRUE(node.PutTopic(WithLease(2000)));
  Topic again = WithLease(3000);
  again.slots = 1;
  node.stores[0]->topic_changes.dropped.push_back("t");
  OtherPuts(again, 1);
  EXPECT_TRUE(EveryShardKnows("t"));
  EXPECT_EQ(node.Topics()[0].topic.lease, Millis(3000));
  EXPECT_EQ(node.Topics()[0].topic.slots, 1U);
  EXPECT_TRUE(node.Submit("t", {NewJob{.id = "x"}}));
}

TEST_P(ManyNodesTest, ADropThatMeetsATopicMadeAgainDropsThatOne) {
  ASSERT_TRUE(node.PutTopic(WithLease(1000)));
  Topic again = WithLease(3000);
  again.version = 1;
  again.slots = 1;
  bool met = false;
  node.stores[0]->before_drop = [&](const std::string& name) -> Status {
    if (std::exchange(met, true)) return {};
    shared[name] = again;
    node.memory[0]->PutTopic(again, [](Result<void>) {});
    return Fail(Code::kConflict, "another node has made it again");
  };
  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(1), "t", dropped.Catch());
  node.Run();
  ASSERT_TRUE(dropped.got);
  EXPECT_TRUE(*dropped.got);
  EXPECT_TRUE(shared.empty());
  EXPECT_TRUE(node.Topics().empty());
}

TEST_P(ManyNodesTest, AChangeThatMeetsANewerVersionIsMadeAnewOnThatOne) {
  ASSERT_TRUE(node.PutTopic(WithLease(1000)));
  Topic other = WithLease(1000);
  other.max_attempts = 3;
  OtherPuts(other, 2, false);
  const auto changed = Change(TopicChange().Set("lease_ms", 5000));
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(changed->topic.lease, Millis(5000));
  EXPECT_EQ(changed->topic.max_attempts, 3U) << "the other node's change is not undone";
  EXPECT_EQ(changed->topic.version, 3U);
  EXPECT_FALSE(changed->created);
  EXPECT_EQ(shared["t"], changed->topic);
}

// The first store has taken the change when the last one meets the other node's.
TEST_P(ManyNodesTest, AChangeThatIsOvertakenBetweenTwoStoresIsMadeAnewToo) {
  if (node.stores.size() == 1) return;
  ASSERT_TRUE(node.PutTopic(WithLease(1000)));
  node.stores.back()->before_put = [&](const Topic& topic) {
    if (topic.version != 2) return;
    Topic other = topic;
    other.max_attempts = 3;
    OtherPuts(other, 3, false);
  };
  const auto changed = Change(TopicChange().Set("lease_ms", 5000));
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(changed->topic.max_attempts, 3U);
  EXPECT_EQ(changed->topic.version, 3U) << "it has the wanted lease already";
  EXPECT_EQ(node.Topics()[0].topic, shared["t"]);
}

TEST_P(ManyNodesTest, AChangeThatAltersNothingHereStillWinsOverOneThatWasNotHeardOf) {
  ASSERT_TRUE(node.PutTopic(WithLease(1000)));
  OtherPuts(WithLease(2000), 2, false);
  const auto changed = Change(TopicChange().Set("lease_ms", 1000));
  ASSERT_TRUE(changed);
  EXPECT_EQ(shared["t"].lease, Millis(1000));
  EXPECT_EQ(shared["t"].version, 3U);
}

TEST_P(ManyNodesTest, ASubmitUsesTheSettingsOfTheNodeThatMadeTheTopic) {
  Topic other = DefaultTopic("t");
  other.slots = 2;
  other.capacity_jobs = 1;
  OtherPuts(other, 4, false);
  const auto submitted = node.Submit("t", {NewJob{.id = "a"}, NewJob{.id = "a"}, NewJob{.id = "b"}}, 1);
  ASSERT_TRUE(submitted) << submitted.error().message;
  EXPECT_EQ(node.Topics()[0].topic, shared["t"]);
  EXPECT_EQ(shared["t"].version, 4U) << "nothing was stored over it";
  EXPECT_TRUE(EveryShardKnows("t"));
}

TEST_P(ManyNodesTest, SlotsThatDifferFromAnotherNodesAreAConflict) {
  Topic other = DefaultTopic("t");
  other.slots = 2;
  OtherPuts(other, 1, false);
  const auto changed = Change(TopicChange().Set("slots", 4));
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, Code::kConflict);
  EXPECT_EQ(changed.error().field, "slots");
}

TEST_P(ManyNodesTest, AfterFiveLostRacesAChangeIsGivenUp) {
  ASSERT_TRUE(node.PutTopic(WithLease(1000)));
  int races = 0;
  node.stores[0]->before_put = [&](const Topic& topic) {
    if (topic.lease != Millis(5000)) return;  // adopting what the other node stored is no race
    ++races;
    Topic other = WithLease(6000 + races);
    other.version = topic.version;
    shared["t"] = other;
  };
  const auto changed = Change(TopicChange().Set("lease_ms", 5000));
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, Code::kConflict);
  EXPECT_EQ(races, 5);
  node.stores[0]->before_put = nullptr;
  EXPECT_TRUE(Change(TopicChange().Set("lease_ms", 5000))) << "and the next one works";
}

TEST_P(ManyNodesTest, WhatAnotherNodeDidIsNotStoredAgain) {
  size_t puts = 0;
  for (auto& store : node.stores) store->before_put = [&](const Topic&) { ++puts; };
  OtherPuts(WithLease(1234), 1);
  OtherPuts(WithLease(2345), 2);
  EXPECT_TRUE(EveryShardKnows("t"));
  EXPECT_EQ(node.Topics()[0].topic.lease, Millis(2345));
  EXPECT_EQ(puts, 0U);
}

TEST_P(ManyNodesTest, ATopicThatAStoreCannotTakeNowIsTakenWhenItCan) {
  // That store knows a later version, and cannot be asked for it now.
  Topic later = WithLease(1234);
  later.version = 2;
  shared["t"] = later;
  node.memory.back()->PutTopic(later, [](Result<void>) {});
  node.stores.back()->fail = Code::kUnavailable;
  node.stores[0]->topic_changes.changed.push_back(HeardTopic{WithLease(1000)});
  node.stores[0]->topic_changes.changed.back().version = 1;
  Tell();
  EXPECT_FALSE(node.service->Knows(node.at(0), "t"));
  node.stores.back()->fail.reset();
  node.Pass(Millis(2000));
  EXPECT_TRUE(EveryShardKnows("t"));
}

TEST_P(ManyNodesTest, StopWaitsForWhatIsTaken) {
  ASSERT_TRUE(node.PutTopic(DefaultTopic("u")));
  node.stores[0]->ForgetTopic("u");
  node.stores[0]->topic_changes.dropped.push_back("u");
  shared["t"] = WithLease(1234);
  node.stores[0]->topic_changes.changed.push_back(HeardTopic{WithLease(1234)});
  node.stores[0]->topic_changes.changed.back().version = 1;
  node.stores[0]->changed();
  while (!node.stores[0]->topic_changes.changed.empty()) ASSERT_TRUE(node.loops[0]->RunOne());
  EXPECT_TRUE(node.Stop());
  node.service.reset();
  node.Run();
}

TEST_P(ManyNodesTest, EveryStoreOfATopicIsToldWhileReservesWaitForIt) {
  const auto told = [&] {
    return std::ranges::count_if(node.stores, [](const auto& store) { return store->hungry.contains("t"); });
  };
  const auto all = std::ssize(node.stores);
  const auto wait = [&](TestNode::Reply<JobBatch>& reply) {
    node.service->Reserve(node.at(1), {"t", 1, Millis(10'000), Millis(0)}, reply.Catch());
    node.Run();
  };
  TestNode::Reply<JobBatch> first;
  wait(first);
  EXPECT_EQ(told(), 0) << "nobody knows the topic";
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  EXPECT_EQ(told(), all);
  ASSERT_TRUE(node.Submit("t", {NewJob{}}));
  ASSERT_TRUE(first.got);
  EXPECT_EQ(told(), all) << "most consumers come back at once";
  TestNode::Reply<JobBatch> second;
  wait(second);
  node.Pass(Millis(100));
  EXPECT_EQ(told(), all);
  const size_t calls = node.stores[0]->hungry_calls;
  EXPECT_EQ(calls, 1U);
  ASSERT_TRUE(node.Submit("t", {NewJob{}}));
  ASSERT_TRUE(second.got);
  node.Pass(Millis(20));
  EXPECT_EQ(told(), 0);
}

TEST_P(ManyNodesTest, AReserveWithoutAWaitIsNotTakenForOneThatWaits) {
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  TestNode::Reply<JobBatch> waiting;
  const auto id = node.service->Reserve(node.at(0), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  node.Run();
  node.service->CancelReserve(id);
  node.Run();
  ASSERT_TRUE(node.Reserve("t"));
  for (const auto& store : node.stores) EXPECT_FALSE(store->hungry.contains("t")) << "it has to look for itself";
}

TEST_P(ManyNodesTest, ATopicThatIsDroppedWhileReservesWaitIsToldToTheStoresThatKnewIt) {
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  TestNode::Reply<JobBatch> waiting;
  const auto id = node.service->Reserve(node.at(0), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  node.Run();
  OtherDrops("t");
  node.service->CancelReserve(id);
  node.Pass(Millis(20));
  for (const auto& store : node.stores) EXPECT_FALSE(store->hungry.contains("t"));
}

// The scan would look a second later.
TEST_P(ManyNodesTest, NewsOfTheStoreAreLookedAtAtOnce) {
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  TestNode::Reply<JobBatch> waiting;
  node.service->Reserve(node.at(0), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  node.Run();
  // Through another node, for all that this service knows.
  for (size_t i = 0; i < node.memory.size(); ++i) {
    const NewJob job{};
    node.memory[i]->Submit("t", std::span(&job, 1), node.clock.Now(), [](auto) {});
  }
  node.Run();
  EXPECT_FALSE(waiting.got);
  for (auto& store : node.stores) store->changed();
  node.Run();
  ASSERT_TRUE(waiting.got);
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
}

}  // namespace
}  // namespace tocsin
