// Who looks after which of many groups, what that costs, and how figures reach nodes that own nothing.
#include <set>

#include <gmock/gmock.h>

#include "storage/redis/nodes_test_fixture.h"

namespace tocsin::redis {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;

class RedisBeats : public RedisNodes {
 protected:
  /// Every sixteenth group, as a node of sixteen has them.
  static std::vector<uint32_t> SixteenthOf(uint32_t groups) {
    std::vector<uint32_t> part;
    for (uint32_t group = 0; group < groups; group += 16) part.push_back(group);
    return part;
  }
  /// The next second of a node, and until others have heard of it.
  void Second(TestNode& node) {
    clock_.Advance(std::chrono::seconds(1));
    Advance(node);
    Quiet();
  }
  static std::vector<GroupState> GroupsOf(TestNode& node) { return node.store().Groups(); }
};

TEST_F(RedisBeats, OneBeatTellsOfAllGroups) {
  const auto a = Node("a", ClockSource::kCaller, 0, kGroupsMax);
  const auto b = Node("b", ClockSource::kCaller, 0, kGroupsMax);
  a->OwnAll();
  Second(*a);
  EXPECT_THAT(GroupsOf(*b), Each(Field(&GroupState::owner, "a")));
  EXPECT_THAT(GroupsOf(*b), Each(Field(&GroupState::epoch, 1U)));
  // One that starts later asks.
  const auto c = Node("c", ClockSource::kCaller, 0, kGroupsMax);
  Quiet();
  Second(*a);
  EXPECT_THAT(GroupsOf(*c), Each(Field(&GroupState::owner, "a")));
}

TEST_F(RedisBeats, TheOwnerKnowsSinceWhenJobsWaitBeforeItsTurnToReadFigures) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  const auto fails = [](const Command& command) { return command.script() == &Lua<"figures">(); };
  a->client().fails = b->client().fails = fails;
  const auto oldest = [](TestNode& node) { return node.store().FindFigures("orders")->oldest_due; };
  a->OwnAll();
  Second(*a);
  const Time first = clock_.Now().utc;
  ASSERT_EQ(Submit(*a, Job("through the owner")), SubmitOutcome::kAccepted);
  EXPECT_EQ(oldest(*a), first);
  EXPECT_EQ(Claim(*a).size(), 1U);
  EXPECT_EQ(oldest(*a), kNever);
  ASSERT_EQ(Submit(*b, Job("through another node", std::chrono::seconds(5))), SubmitOutcome::kAccepted);
  EXPECT_EQ(oldest(*b), kNever);
  Second(*a);
  EXPECT_EQ(oldest(*a), kNever) << "it is not due";
  for (int i = 0; i < 5; ++i) Second(*a);
  EXPECT_EQ(oldest(*a), first + std::chrono::seconds(5));
  EXPECT_EQ(Claim(*b).size(), 1U);
  EXPECT_EQ(oldest(*b), kNever) << "the owner shows it";
  for (int i = 0; i < 10; ++i) Second(*a);
  EXPECT_EQ(oldest(*a), kNever) << "another node has taken it";
}

TEST_F(RedisBeats, AnIdleNodeOfSixteenSendsFewCommandsHoweverManyGroupsThereAre) {
  for (const uint32_t groups : {kGroups, kGroupsMax}) {
    ASSERT_TRUE(Server().Ask({"FLUSHALL"}));
    const auto a = Node("a", ClockSource::kCaller, 0, groups);
    for (const std::string name : {"t1", "t2", "t3", "t4", "t5", "t6"}) {
      Topic topic = DefaultTopic(name);
      topic.slots = 1024;
      ASSERT_TRUE(Put(*a, topic));
    }
    a->store().OwnGroups(SixteenthOf(groups));
    a->Pump();
    // Others look after the rest.
    const auto b = Node("b", ClockSource::kCaller, 0, groups);
    std::vector<uint32_t> rest;
    for (uint32_t group = 0; group < groups; ++group) {
      if (group % 16 != 0) rest.push_back(group);
    }
    b->store().OwnGroups(rest);
    b->Pump();
    Second(*b);
    Advance(*a);
    const size_t before = a->client().calls();
    for (int second = 0; second < 10; ++second) {
      Second(*b);
      Advance(*a);
      Quiet();
    }
    EXPECT_LE(a->client().calls() - before, 10 * 16U) << groups << ": scans, figures, topics";
  }
}

TEST_F(RedisBeats, EveryGroupOfAnOwnerHasItsTurn) {
  const auto a = Node("a", ClockSource::kCaller, 0, 256);
  topic_.slots = 256;
  ASSERT_TRUE(Put(*a, topic_));
  a->OwnAll();
  for (int second = 0; second < 2; ++second) Second(*a);
  std::set<int> scanned;
  a->client().fails = [&](const Command& command) {
    if (command.script() == &Lua<"scan">()) scanned.insert(command.hash_slot());
    return false;
  };
  for (size_t second = 1; second <= 4; ++second) {
    Second(*a);
    EXPECT_EQ(scanned.size(), 64 * second);
  }
}

TEST_F(RedisBeats, AnOwnerTellsOthersTheFigures) {
  const auto a = Node("a");
  const auto b = Node("b");
  const auto c = Node("c");
  topic_.slots = 64;
  for (TestNode* node : {a.get(), b.get(), c.get()}) ASSERT_TRUE(Put(*node, topic_));
  a->OwnAll();
  Second(*a);
  Advance(*b);  // heard of the owner: it looks for nothing itself
  for (uint32_t slot = 0; slot < 64; ++slot) Submit(*c, Job({}, std::chrono::hours(1), slot));
  for (int second = 0; second < 3; ++second) Second(*a);
  const size_t calls = b->client().calls();
  EXPECT_EQ(b->store().Topics()[0].scheduled, 64U);
  EXPECT_EQ(b->store().Topics()[0].accepted, 64U);
  EXPECT_EQ(b->client().calls(), calls);
  Second(*a);
  EXPECT_EQ(b->store().Topics()[0].scheduled, 64U);
}

TEST_F(RedisBeats, AnOwnerTellsOthersWhatItGivesUp) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  a->OwnAll();
  Second(*a);
  Advance(*b);
  Submit(*a, Job("x", std::chrono::milliseconds(100)));
  const uint32_t group = GroupOf("orders", 0, kGroups);
  a->store().OwnGroups({(group + 1) % kGroups});
  a->Pump();
  Second(*a);
  EXPECT_THAT(Advance(*b).ready, ElementsAre("orders")) << "nobody owns the group, and b knows";
}

TEST_F(RedisBeats, AnOwnerThatWasReplacedIsNotBelieved) {
  const auto a = Node("a");
  const auto b = Node("b");
  const auto c = Node("c");
  for (TestNode* node : {a.get(), b.get(), c.get()}) ASSERT_TRUE(Put(*node, topic_));
  a->OwnAll();
  Second(*a);
  b->OwnAll();
  Second(*b);
  EXPECT_THAT(GroupsOf(*c), Each(Field(&GroupState::owner, "b")));
  EXPECT_THAT(GroupsOf(*a), Each(Field(&GroupState::mine, false)));
  // What the first one sent before it knew.
  ASSERT_TRUE(Server().Ask({"PUBLISH", "tocsin:beats", "beat 1234 0 a all 0 1 0 -1 1 1 0 -1"}));
  Quiet();
  EXPECT_THAT(GroupsOf(*c), Each(Field(&GroupState::owner, "b")));
}

}  // namespace
}  // namespace tocsin::redis
