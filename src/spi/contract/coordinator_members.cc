// What holds where nodes see each other: who is there, who has gone, and who is told when.
#include "spi/contract/coordinator_contract.h"

namespace tocsin {

// Not every coordinator has other nodes.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SharedCoordinatorContract);

namespace {

TEST_P(SharedCoordinatorContract, ASecondJoinIsSeenByBoth) {
  Node& b = Join("b");
  ASSERT_TRUE(Sees(b, {"b"}));
  Node& a = Join("a");
  EXPECT_TRUE(Sees(a, {"a", "b"}));
  const std::optional<Report> seen = Sees(b, {"a", "b"}, session() / 2);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->members.members[0].http, "http-of-a");
  EXPECT_EQ(seen->members.members[0].resp, "resp-of-a");
}

TEST_P(SharedCoordinatorContract, ManyThatJoinAtOnceSeeTheSame) {
  const Ids ids = {"a", "b", "c", "d", "e"};
  const std::vector<Node*> nodes = JoinAll(ids);
  for (Node* node : nodes) {
    const std::optional<Report> answer = Refreshed(*node);
    ASSERT_TRUE(answer);
    EXPECT_EQ(IdsOf(answer->members), ids);
  }
}

TEST_P(SharedCoordinatorContract, IdsMayHoldWhatPathsAndListsCannot) {
  const Ids ids = {"a/b%2F{x}", "ä-1"};
  for (Node* node : JoinAll(ids)) EXPECT_TRUE(Refreshed(*node));
}

TEST_P(SharedCoordinatorContract, ALeaveIsSeenAtOnce) {
  const std::vector<Node*> nodes = JoinAll({"a", "b", "c"});
  const std::optional<Report> left = Left(*nodes[1]);
  ASSERT_TRUE(left);
  EXPECT_TRUE(left->ok) << left->text;
  for (Node* node : {nodes[0], nodes[2]}) {
    const std::optional<Report> seen = Sees(*node, {"a", "c"});
    ASSERT_TRUE(seen);
    EXPECT_LT(seen->at - left->at, session() / 4);
  }
  // Whoever looks after it has left does not find it.
  EXPECT_TRUE(Sees(Join("d"), {"a", "c", "d"}));
}

// Not before: the last sign of life may be a third of a session old when a node dies, and a busy machine adds to that.
TEST_P(SharedCoordinatorContract, ACrashIsSeenAfterTheSessionAndNotBefore) {
  const std::vector<Node*> nodes = JoinAll({"a", "b", "c"});
  const TimePoint killed = Now();
  (*nodes[0])->Kill();
  for (Node* node : {nodes[1], nodes[2]}) {
    const std::optional<Report> seen = Sees(*node, {"b", "c"}, session() + kSoon);
    ASSERT_TRUE(seen);
    EXPECT_GE(seen->at - killed, session() / 2);
    EXPECT_LE(seen->at - killed, session() + session() / 2);
  }
}

TEST_P(SharedCoordinatorContract, ANodeThatStartsAgainIsAnotherMember) {
  const std::vector<Node*> nodes = JoinAll({"a-1", "b"});
  (*nodes[0])->Kill();
  Node& again = Join("a-2");
  EXPECT_TRUE(Sees(again, {"a-1", "a-2", "b"}));
  EXPECT_TRUE(Sees(again, {"a-2", "b"}, session() + kSoon));
  EXPECT_TRUE(Sees(*nodes[1], {"a-2", "b"}, kSoon));
}

// A node that slept while others took over must not act on what it knew: the first that it hears is that it is out.
TEST_P(SharedCoordinatorContract, AStoppedNodeIsDroppedAndLearnsOfItFirst) {
  const std::vector<Node*> nodes = JoinAll({"a", "b"});
  Node& a = *nodes[0];
  Node& b = *nodes[1];
  StaysQuiet(b, session() / 6);  // until nothing is under way
  a->Pause();
  ASSERT_TRUE(Sees(b, {"b"}, session() + kSoon));
  const TimePoint continued = Now();
  a->Continue();
  const std::optional<Report> first = a->Next(Now() + kSoon);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->members.joined) << first->text;
  EXPECT_LT(first->at - continued, session() / 2);
  EXPECT_TRUE(Sees(a, {"a", "b"}));
  EXPECT_TRUE(Sees(b, {"a", "b"}));
}

// The same where nobody else has removed it, so that it finds its own old lease; and where it is stopped at once, while
// the answer to its latest sign of life is still on its way: that one is old when it is read.
TEST_P(SharedCoordinatorContract, ANodeAloneThatWasStoppedLearnsOfItFirst) {
  Node& a = Join("a");
  ASSERT_TRUE(Sees(a, {"a"}));
  a->Pause();
  StaysQuiet(a, session() + session() / 4);
  a->Continue();
  const std::optional<Report> first = a->Next(Now() + kSoon);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->members.joined) << first->text;
  EXPECT_TRUE(Sees(a, {"a"}));
  StaysQuiet(a, session() / 2);
}

TEST_P(SharedCoordinatorContract, AShortStopIsNoChange) {
  const std::vector<Node*> nodes = JoinAll({"a", "b"});
  (*nodes[0])->Pause();
  StaysQuiet(*nodes[1], session() / 4);
  (*nodes[0])->Continue();
  StaysQuiet(*nodes[1], session() + session() / 4);
  StaysQuiet(*nodes[0], Millis(0));
}

}  // namespace
}  // namespace tocsin
