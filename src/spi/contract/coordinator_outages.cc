// What holds where nodes see each other, while the server or the way to it fails.
#include "spi/contract/coordinator_contract.h"

namespace tocsin {
namespace {

// It stops acting no later than the others begin to. What each says travels by its own pipe, and a busy machine may run
// one process later than the other: hence the allowance.
TEST_P(SharedCoordinatorContract, ANodeThatIsCutOffCountsItselfOutBeforeOthersDo) {
  constexpr Millis kScheduling{100};
  const std::vector<Node*> nodes = JoinAll({"a", "b"});
  Node& a = *nodes[0];
  Node& b = *nodes[1];
  StaysQuiet(a, session() / 2);  // so that it has renewed what it had at first
  a.wire->Cut();
  const std::optional<Report> lost = Loses(a, session() + kSoon);
  const std::optional<Report> seen = Sees(b, {"b"}, session() + kSoon);
  ASSERT_TRUE(lost && seen);
  EXPECT_LE(lost->at, seen->at + kScheduling);
  a.wire->Mend();
  EXPECT_TRUE(Sees(a, {"a", "b"}, session() + kSoon));
  EXPECT_TRUE(Sees(b, {"a", "b"}, session() + kSoon));
}

TEST_P(SharedCoordinatorContract, AShortCutIsNoChange) {
  const std::vector<Node*> nodes = JoinAll({"a", "b"});
  nodes[0]->wire->Cut();
  StaysQuiet(*nodes[0], session() / 4);
  nodes[0]->wire->Mend();
  StaysQuiet(*nodes[0], session() + session() / 4);
  StaysQuiet(*nodes[1], Millis(0));
  for (Node* node : nodes) {
    const std::optional<Report> answer = Refreshed(*node);
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->members.joined);
    EXPECT_EQ(IdsOf(answer->members), (Ids{"a", "b"}));
  }
}

TEST_P(SharedCoordinatorContract, RefreshAnswersThoughTheServerDoesNot) {
  const std::vector<Node*> nodes = JoinAll({"a", "b"});
  nodes[0]->wire->Cut();
  EXPECT_TRUE(Refreshed(*nodes[0], session() + kSoon));
  EXPECT_TRUE(Loses(*nodes[0], session() + kSoon));
  EXPECT_TRUE(Refreshed(*nodes[0], session() + kSoon));
}

TEST_P(SharedCoordinatorContract, LeaveEndsThoughTheServerDoesNotAnswer) {
  const std::vector<Node*> nodes = JoinAll({"a", "b"});
  nodes[0]->wire->Cut();
  const std::optional<Report> left = Left(*nodes[0], session() + kSoon);
  ASSERT_TRUE(left);
  EXPECT_FALSE(left->ok);
  EXPECT_TRUE(Sees(*nodes[1], {"b"}, session() + kSoon));
  StaysQuiet(*nodes[0], Millis(0));
}

TEST_P(SharedCoordinatorContract, AServerThatIsAwayForShortIsNoChange) {
  const std::vector<Node*> nodes = JoinAll({"a", "b"});
  world_->PauseServer();
  StaysQuiet(*nodes[0], session() / 4);
  world_->ContinueServer();
  StaysQuiet(*nodes[0], session() + session() / 4);
  StaysQuiet(*nodes[1], Millis(0));
}

TEST_P(SharedCoordinatorContract, AServerThatIsAwayForLongTakesAllOutAndBackIn) {
  const std::vector<Node*> nodes = JoinAll({"a", "b"});
  const TimePoint killed = Now();
  world_->KillServer();
  for (Node* node : nodes) {
    const std::optional<Report> lost = Loses(*node, session() + kSoon);
    ASSERT_TRUE(lost);
    EXPECT_LE(lost->at - killed, session() + session() / 4);
  }
  ASSERT_TRUE(world_->StartServer());
  for (Node* node : nodes) EXPECT_TRUE(Sees(*node, {"a", "b"}, session() + kSoon));
}

TEST_P(SharedCoordinatorContract, AServerThatStartsAgainIsFoundAgain) {
  const std::vector<Node*> nodes = JoinAll({"a", "b"});
  world_->KillServer();
  ASSERT_TRUE(world_->StartServer());
  Node& c = Join("c");
  const Ids all = {"a", "b", "c"};
  EXPECT_TRUE(Sees(c, all, session() + kSoon));
  for (Node* node : nodes) EXPECT_TRUE(Sees(*node, all, session() + kSoon));
  const std::optional<Report> left = Left(*nodes[0]);
  ASSERT_TRUE(left);
  EXPECT_TRUE(left->ok) << left->text;
  EXPECT_TRUE(Sees(c, {"b", "c"}));
}

TEST_P(SharedCoordinatorContract, ANodeMayComeBeforeTheServer) {
  world_->KillServer();
  Node& a = Join("a");
  StaysQuiet(a, session() / 4);
  ASSERT_TRUE(world_->StartServer());
  EXPECT_TRUE(Sees(a, {"a"}, session() + kSoon));
}

}  // namespace
}  // namespace tocsin
