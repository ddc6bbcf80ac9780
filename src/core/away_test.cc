// A store that cannot be reached for a while: nothing is fatal, and what waited is served afterwards.
#include <gtest/gtest.h>

#include "core/figures.h"
#include "core/test_node.h"

namespace tocsin {
namespace {

class AwayTest : public testing::TestWithParam<std::tuple<size_t, bool>> {
 protected:
  AwayTest() {
    node.service->OnFailed([](const Error& error) { FAIL() << error.message; });
    EXPECT_TRUE(node.PutTopic(DefaultTopic("t")));
  }
  void GoAway() {
    for (auto& store : node.stores) store->fail = Code::kUnavailable;
  }
  void ComeBack() {
    for (auto& store : node.stores) store->fail.reset();
  }
  size_t Claims() const {
    size_t claims = 0;
    for (const auto& store : node.stores) claims += store->claims;
    return claims;
  }
  void Wait(TestNode::Reply<JobBatch>& reply, Millis wait = Millis(60'000), size_t shard = 0) {
    node.service->Reserve(node.at(shard), {"t", 1, wait, Millis(0)}, reply.Catch());
    node.Run();
  }

  TestNode node{std::get<0>(GetParam()), std::get<1>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(Shards, AwayTest, testing::Combine(testing::Values(1, 2, 4), testing::Bool()),
                         [](const auto& info) {
                           return fmt::format("{}{}", std::get<0>(info.param),
                                              std::get<1>(info.param) ? "late" : "at_once");
                         });

TEST_P(AwayTest, CallsAnswerItAndWorkAgainAfterwards) {
  GoAway();
  EXPECT_EQ(node.Submit("t", {NewJob{}}).error().code, Code::kUnavailable);
  EXPECT_EQ(node.Submit("new", {NewJob{}}).error().code, Code::kUnavailable);
  EXPECT_EQ(node.Reserve("t").error().code, Code::kUnavailable);
  ComeBack();
  EXPECT_TRUE(node.Submit("t", {NewJob{}}));
  EXPECT_TRUE(node.Submit("new", {NewJob{}}));
  EXPECT_EQ(node.Reserve("t")->jobs.size(), 1U);
}

TEST_P(AwayTest, TheNodeIsNotReadyWhileItsStoreIsAway) {
  EXPECT_TRUE(node.service->Ready());
  GoAway();
  node.Pass(Millis(1000));
  const Status away = node.service->Ready();
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, Code::kUnavailable);
  EXPECT_NE(away.error().message.find("made to fail"), std::string::npos) << "it says why";
  ComeBack();
  node.Pass(Millis(1000));
  EXPECT_TRUE(node.service->Ready());
}

TEST_P(AwayTest, TheNodeIsReadyWhileAnyShardCanWork) {
  for (size_t shard = 0; shard < node.stores.size(); ++shard) {
    EXPECT_TRUE(node.service->Ready()) << shard;
    node.stores[shard]->fail = Code::kUnavailable;
    node.Pass(Millis(1000));
  }
  EXPECT_FALSE(node.service->Ready());
  node.stores.back()->fail.reset();
  node.Pass(Millis(1000));
  EXPECT_TRUE(node.service->Ready());
}

// One of several servers behind the store: the others have jobs.
TEST_P(AwayTest, APartThatIsAwayHoldsNothingUpAndLeavesItReady) {
  for (auto& store : node.stores) store->trouble = Error{Code::kUnavailable, "one of three is away", {}};
  TestNode::Reply<JobBatch> waiting;
  Wait(waiting);
  ASSERT_TRUE(node.Submit("t", {NewJob{.delay = Millis(3000)}}));
  node.Pass(Millis(2999));
  EXPECT_TRUE(node.service->Ready());
  EXPECT_FALSE(waiting.got);
  node.Pass(Millis(1));
  ASSERT_TRUE(waiting.got);
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
  for (auto& store : node.stores) store->cut_off = true;
  node.Pass(Millis(1000));
  const Status away = node.service->Ready();
  ASSERT_FALSE(away) << "none of them answers any more";
  EXPECT_NE(away.error().message.find("one of three is away"), std::string::npos);
  for (auto& store : node.stores) store->cut_off = false;
  node.Pass(Millis(1000));
  EXPECT_TRUE(node.service->Ready()) << "some are back";
}

TEST_P(AwayTest, AnAdvanceThatTakesLongHasToFinish) {
  TestNode::Reply<JobBatch> waiting;
  Wait(waiting);
  ASSERT_TRUE(node.Submit("t", {NewJob{.delay = Millis(100)}}));
  for (auto& store : node.stores) store->slow = true;
  node.Pass(Millis(1100));
  ASSERT_TRUE(waiting.got) << "what was found within half a second is told";
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
  const size_t before = node.stores[0]->advances;
  node.Pass(Millis(10'000));
  EXPECT_LE(node.stores[0]->advances, before + 21) << "and not all the time";
  for (auto& store : node.stores) {
    store->slow = false;
    store->FinishAdvance();
  }
}

TEST_P(AwayTest, AStoreThatCannotFinishIsNotToldAllTheTime) {
  for (auto& store : node.stores) store->slow = store->deaf = true;
  node.Pass(Millis(10'000));
  for (auto& store : node.stores) {
    EXPECT_EQ(store->finishes, 1U);
    store->slow = store->deaf = false;
    store->FinishAdvance();
  }
  node.Pass(Millis(1000));
  EXPECT_TRUE(node.Submit("t", {NewJob{}}));
}

TEST_P(AwayTest, ItIsAskedEverySecondAndAtOnceWhenItSaysSo) {
  GoAway();
  node.Pass(Millis(1000));
  const size_t before = node.stores[0]->advances;
  node.Pass(Millis(5000));
  EXPECT_GE(node.stores[0]->advances, before + 5);
  EXPECT_LE(node.stores[0]->advances, before + 6) << "and not all the time";
  ComeBack();
  for (auto& store : node.stores) store->changed();
  node.Run();
  EXPECT_TRUE(node.service->Ready()) << "no time has passed";
}

TEST_P(AwayTest, AReserveThatWaitsOutlastsIt) {
  ASSERT_TRUE(node.Submit("t", {NewJob{.delay = Millis(2000)}}));
  TestNode::Reply<JobBatch> waiting;
  Wait(waiting);
  GoAway();
  node.Pass(Millis(5000));
  EXPECT_FALSE(waiting.got) << "it is due, and nobody can be asked";
  ComeBack();
  node.Pass(Millis(1000));
  ASSERT_TRUE(waiting.got);
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
}

// The claim itself fails: the store has said before that there is something to claim.
TEST_P(AwayTest, AReserveWhoseClaimFailsStaysParkedAndIsAskedAgain) {
  ASSERT_TRUE(node.Submit("t", {NewJob{}}));
  for (auto& store : node.stores) store->lose_ready = store->hide_ready = true;  // nobody says it a second time
  GoAway();
  TestNode::Reply<JobBatch> waiting;
  Wait(waiting, Millis(60'000), 1);
  EXPECT_FALSE(waiting.got);
  EXPECT_GT(Claims(), 0U);
  ComeBack();
  for (auto& store : node.stores) store->changed();
  node.Pass(Millis(1000));
  ASSERT_TRUE(waiting.got);
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
}

TEST_P(AwayTest, AReserveStaysParkedWhileAFullStoreRefusesItsClaim) {
  ASSERT_TRUE(node.Submit("t", {NewJob{}}));
  for (auto& store : node.stores) store->fail_claims = Code::kStorageFull;
  TestNode::Reply<JobBatch> waiting;
  Wait(waiting);
  node.Pass(Millis(3000));
  EXPECT_FALSE(waiting.got);
  for (auto& store : node.stores) store->fail_claims.reset();
  node.Pass(Millis(1000));
  ASSERT_TRUE(waiting.got);
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
}

TEST_P(AwayTest, ItIsNotAskedAllTheTimeOnBehalfOfThoseWhoWait) {
  ASSERT_TRUE(node.Submit("t", std::vector<NewJob>(100)));
  GoAway();
  std::vector<TestNode::Reply<JobBatch>> waiting(50);
  for (auto& reply : waiting) Wait(reply);
  const size_t before = Claims();
  node.Pass(Millis(10'000));
  EXPECT_LE(Claims() - before, 10 * 4 * node.loops.size());
  for (auto& reply : waiting) EXPECT_FALSE(reply.got);
  ComeBack();
  node.Pass(Millis(2000));
  for (auto& reply : waiting) EXPECT_TRUE(reply.got && (*reply.got)->jobs.size() == 1);
}

TEST_P(AwayTest, AReserveAnswersEmptyAtItsDeadline) {
  GoAway();
  TestNode::Reply<JobBatch> waiting;
  Wait(waiting, Millis(1500));
  node.Pass(Millis(1499));
  EXPECT_FALSE(waiting.got);
  node.Pass(Millis(1));
  ASSERT_TRUE(waiting.got);
  EXPECT_TRUE((*waiting.got)->jobs.empty());
}

TEST_P(AwayTest, ItCanBeStopped) {
  GoAway();
  TestNode::Reply<JobBatch> waiting;
  Wait(waiting);
  node.Pass(Millis(3000));
  EXPECT_TRUE(node.Stop());
  EXPECT_TRUE(waiting.got);
}

TEST(AwayAtTheStart, ATopicThatOneStoreLacksIsPutWhenItCan) {
  TestNode node(2);
  const Topic topic = [] {
    Topic made = DefaultTopic("t");
    made.version = 1;
    return made;
  }();
  ASSERT_TRUE(node.Stop());
  node.service.reset();
  node.memory[0]->PutTopic(topic, [](Result<void>) {});  // a crash came before the other one had it
  node.stores[1]->fail = Code::kUnavailable;
  node.Open();
  node.Pass(Millis(2000));
  EXPECT_TRUE(node.memory[1]->Topics().empty());
  node.stores[1]->fail.reset();
  node.Pass(Millis(1000));
  EXPECT_EQ(node.memory[1]->Topics().size(), 1U);
}

}  // namespace
}  // namespace tocsin
