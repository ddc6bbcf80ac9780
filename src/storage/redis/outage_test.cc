// A server that does not answer holds back its own slots alone: commands that hang, and a real Cluster with a master
// that stands still.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/redis/nodes_test_fixture.h"

namespace tocsin::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RedisOutage : public RedisNodes {
 protected:
  void SetUp() override {
    RedisNodes::SetUp();
    clock_.DriveIo(true);
    topic_.slots = 4;
  }
  /// All that goes to the slot's server hangs: here, to its group.
  static void Hang(TestNode& node, uint32_t slot) {
    const SlotKeys keys = KeysOfOrders(slot);
    node.client().hangs = [hash_slot = HashSlot(keys.Of(Part::kMeta))](const Command& command) {
      return command.hash_slot() == hash_slot;
    };
  }
};

TEST_F(RedisOutage, AnAdvanceThatHasToFinishTellsWhatTheOthersAnswered) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  Advance(*b);
  EXPECT_EQ(Submit(*a, Job({}, 0ms, 1)), SubmitOutcome::kAccepted);
  EXPECT_EQ(Submit(*a, Job({}, 0ms, 3)), SubmitOutcome::kAccepted);
  Hang(*b, 3);
  clock_.Advance(1s);
  std::optional<Advanced> told;
  b->store().Advance(clock_.Now(), 1000, [&](Result<Advanced> result) { told = *std::move(result); });
  b->Pump();
  EXPECT_FALSE(told);
  clock_.Advance(500ms);
  b->store().FinishAdvance();
  ASSERT_TRUE(told);
  EXPECT_THAT(told->ready, ElementsAre("orders"));
  EXPECT_EQ(Claim(*b).size(), 1U);
  const size_t held = b->client().held();
  EXPECT_THAT(Advance(*b).ready, IsEmpty()) << "nobody waits for it any more";
  EXPECT_EQ(b->client().held(), held) << "nor is it asked again";
  int news = 0;
  b->store().OnChanged([&] { ++news; });
  b->client().GoOn();
  b->Pump();
  EXPECT_GT(news, 0);
  EXPECT_THAT(Advance(*b).ready, ElementsAre("orders"));
  EXPECT_EQ(Claim(*b).size(), 1U);
}

TEST_F(RedisOutage, AGroupThatFailsIsLookedAtBesideTheOthers) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  EXPECT_EQ(Submit(*a, Job({}, 5s, 1)), SubmitOutcome::kAccepted);
  a->client().fails = [hash_slot = HashSlot(KeysOfOrders(3).Of(Part::kNext))](const Command& command) {
    return command.hash_slot() == hash_slot;
  };
  clock_.Advance(1s);
  const Advanced first = Advance(*a);
  EXPECT_TRUE(first.trouble);
  EXPECT_FALSE(first.cut_off);
  EXPECT_EQ(first.next_utc, clock_.Now().utc + 4s);
  Hang(*a, 3);
  clock_.Advance(4s);
  const Advanced second = Advance(*a);
  EXPECT_TRUE(second.trouble);
  EXPECT_THAT(second.ready, ElementsAre("orders"));
  EXPECT_EQ(Claim(*a).size(), 1U);
  a->client().fails = nullptr;
  a->client().GoOn();
  a->Pump();
  EXPECT_FALSE(Advance(*a).trouble);
  a->client().fails = [](const Command&) { return true; };
  clock_.Advance(1s);
  EXPECT_TRUE(Advance(*a).cut_off);
}

/// Every second an owner asks a group that it has not asked for long, and that has no error yet.
TEST_F(RedisOutage, AnOwnerOfManyGroupsKnowsThatNoServerAnswers) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  a->OwnAll();
  for (int second = 0; second < 3; ++second) {
    clock_.Advance(1s);
    EXPECT_FALSE(Advance(*a).cut_off);
  }
  const auto all = [](const Command&) { return true; };
  for (int second = 1; second <= 20; ++second) {
    clock_.Advance(500ms);
    a->client().fails = all;  // what hung has timed out
    a->client().GoOn();
    a->Pump();
    a->client().fails = nullptr;
    a->client().hangs = all;
    std::optional<Advanced> told;
    a->store().Advance(clock_.Now(), 1000, [&](Result<Advanced> result) { told = *std::move(result); });
    clock_.Advance(500ms);
    a->store().FinishAdvance();
    ASSERT_TRUE(told);
    EXPECT_TRUE(second <= 2 || told->cut_off) << "second " << second;
  }
  a->client().GoOn();
  a->Pump();
  clock_.Advance(1s);
  EXPECT_FALSE(Advance(*a).cut_off);
}

TEST_F(RedisOutage, AClaimGoesPastASlotThatFails) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  for (uint32_t slot = 0; slot < 4; ++slot) Submit(*a, Job({}, 0ms, slot));
  a->client().fails = [](const Command& command) {
    return command.hash_slot() == HashSlot(KeysOfOrders(1).Of(Part::kNext));
  };
  EXPECT_EQ(Claim(*a).size(), 3U);
  const auto none =
      Await<JobBatch>(*a, [&](auto done) { a->store().Claim("orders", {1}, 1s, clock_.Now(), std::move(done)); });
  ASSERT_FALSE(none) << "there may be jobs where nobody could look";
  EXPECT_EQ(none.error().code, Code::kUnavailable);
  a->client().fails = nullptr;
  clock_.Advance(1s);
  Advance(*a);
  EXPECT_EQ(Claim(*a).size(), 1U);
}

TEST_F(RedisOutage, AClaimIsNotHeldByASlotThatHangsAndWhatThatGivesLaterIsGivenBack) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  for (const uint32_t slot : {1U, 3U}) Submit(*a, Job({}, 0ms, slot));
  Hang(*a, 1);
  std::optional<JobBatch> claimed;
  a->store().Claim("orders", {2}, 30s, clock_.Now(), [&](Result<JobBatch> result) { claimed = *std::move(result); });
  clock_.Advance(1s);
  a->store().Advance(clock_.Now(), 1000, [](const Result<Advanced>&) {});  // it finds that the server is slow
  a->Pump();
  EXPECT_FALSE(claimed);
  clock_.Advance(500ms);
  a->store().FinishAdvance();
  while (!claimed) ASSERT_GT(io_.run_one(), 0U);
  EXPECT_EQ(claimed->jobs.size(), 1U);
  a->client().GoOn();
  a->Pump();
  clock_.Advance(1s);
  Advance(*a);
  const auto again = Claim(*a);
  ASSERT_EQ(again.size(), 1U) << "nobody took what came late, so it is due again";
  EXPECT_EQ(again[0].attempt, 1U);
}

TEST_F(RedisOutage, WhoLooksFirstDoesNotWaitForASlowServer) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  Hang(*a, 1);
  std::optional<Result<JobBatch>> claimed;
  a->store().Claim("orders", {2}, 30s, clock_.Now(),
                   [&](Result<JobBatch> result) { claimed.emplace(std::move(result)); });
  a->Pump();
  EXPECT_FALSE(claimed);
  clock_.Advance(500ms);
  a->store().FinishAdvance();
  ASSERT_TRUE(claimed);
  EXPECT_FALSE(*claimed);
  claimed.reset();
  a->store().Claim("orders", {2}, 30s, clock_.Now(),
                   [&](Result<JobBatch> result) { claimed.emplace(std::move(result)); });
  a->Pump();
  ASSERT_TRUE(claimed) << "it is known to be slow";
  EXPECT_FALSE(*claimed);
  a->client().GoOn();
  a->Pump();
  EXPECT_THAT(Claim(*a), IsEmpty());
}

TEST_F(RedisOutage, AMasterOfAClusterThatStandsStillHoldsBackItsOwnSlotsAlone) {
  // No failover within the test: until then its slots have no other server.
  auto cluster = real::RedisCluster::Make({.node_timeout = 60s});
  ASSERT_TRUE(cluster) << cluster.error().message;
  Options options;
  options.mode = Mode::kCluster;
  for (const uint16_t port : (*cluster)->Ports()) options.endpoints.push_back({"127.0.0.1", port});
  options.command_timeout = 20s;
  TestNode node(io_, options, real_clock_, metrics_, StoreOptions{.node = "a", .clock = ClockSource::kRedis});
  topic_.slots = 64;
  ASSERT_TRUE(Put(node, topic_));
  const auto master_of = [&](uint32_t slot) {
    return *(*cluster)->MasterOf(HashSlot(KeysOfOrders(slot).Of(Part::kNext)));
  };
  const uint16_t away = *(*cluster)->MasterOf(HashSlot("{tocsin}topics"));
  uint32_t healthy = 0;
  while (master_of(healthy) == away) ++healthy;
  const auto advance = [&](Done<Advanced> done) { node.store().Advance(real_clock_.Now(), 1000, std::move(done)); };
  ASSERT_TRUE(Await<Advanced>(node, advance));
  const NewJob job = Job("x", 1s, healthy);
  ASSERT_TRUE(Await<std::vector<Submitted>>(
      node, [&](auto done) { node.store().Submit("orders", {&job, 1}, real_clock_.Now(), std::move(done)); }));
  (*cluster)->At(away).Pause();
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::string> ready;
  while (ready.empty() && std::chrono::steady_clock::now() - began < 15s) {
    std::optional<Result<Advanced>> told;
    advance([&](Result<Advanced> result) { told.emplace(std::move(result)); });
    const auto asked = std::chrono::steady_clock::now();
    while (!told) {
      io_.run_one_for(50ms);
      if (std::chrono::steady_clock::now() - asked > 500ms) node.store().FinishAdvance();
    }
    ASSERT_TRUE(*told);
    ready = (*told)->ready;
    io_.run_one_for(50ms);
  }
  EXPECT_THAT(ready, Contains("orders"));
  std::optional<Result<JobBatch>> claimed;
  node.store().Claim("orders", {1}, 30s, real_clock_.Now(),
                     [&](Result<JobBatch> got) { claimed.emplace(std::move(got)); });
  while (!claimed) ASSERT_GT(io_.run_one_for(20s), 0U);
  ASSERT_TRUE(*claimed);
  EXPECT_EQ((*claimed)->jobs.size(), 1U);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s) << "it was due after a second";
  (*cluster)->At(away).Continue();
  node.Pump();
}

}  // namespace
}  // namespace tocsin::redis
