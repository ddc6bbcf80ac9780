// Who holds a lease since when, as Redis keeps it: once for each claim, for as long as one of its leases lasts.
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/redis/nodes_test_fixture.h"
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;

class RedisHolders : public RedisNodes {
 protected:
  static std::string Key(Part part) { return KeysOfOrders(0).Of(part); }
  static int64_t Number(const std::vector<std::string>& command) {
    const auto answer = Server().Ask(command);
    TOCSIN_CHECK(answer && !answer->error());
    return answer->integer;
  }
  static std::string Text(const std::vector<std::string>& command) {
    const auto answer = Server().Ask(command);
    TOCSIN_CHECK(answer && !answer->error());
    return answer->text;
  }
  /// The only member of a zset.
  static std::string Member(Part part) {
    const auto members = Server().Ask({"ZRANGE", Key(part), "0", "-1"});
    TOCSIN_CHECK(members && members->elements.size() == 1);
    return members->elements[0].text;
  }
  /// Commands that Redis ran since RESETSTAT, those within scripts included.
  static int64_t Commands() {
    const std::string stats = Text({"INFO", "commandstats"});
    int64_t all = 0;
    constexpr std::string_view kCalls = ":calls=";
    for (size_t at = stats.find(kCalls); at != std::string::npos; at = stats.find(kCalls, at + 1)) {
      all += std::stoll(stats.substr(at + kCalls.size()));
    }
    return all;
  }

  std::vector<JobView> ClaimAs(TestNode& node, std::string_view holder, size_t max = 1, Millis lease = 30s) {
    auto batch = Await<JobBatch>(node, [&](auto done) {
      node.store().Claim("orders", {.jobs = max, .holder = holder}, lease, clock_.Now(), std::move(done));
    });
    EXPECT_TRUE(batch) << batch.error().message;
    claimed_ = batch ? *std::move(batch) : JobBatch{};
    return claimed_.jobs;
  }
  JobView Find(TestNode& node, std::string_view id) {
    const JobRef ref{.id = id, .key = {}};
    auto found = Await<JobBatch>(
        node, [&](auto done) { node.store().Find("orders", {&ref, 1}, nullptr, clock_.Now(), std::move(done)); });
    TOCSIN_CHECK(found);
    found_ = *std::move(found);
    return found_.jobs[0];
  }

  JobBatch claimed_;
  JobBatch found_;
};

TEST_F(RedisHolders, ALeaseShowsItsHolderAfterTheNodeHasGone) {
  auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  for (const char* id : {"x", "y"}) ASSERT_EQ(Submit(*a, Job(id)), SubmitOutcome::kAccepted);
  const Time began = clock_.Now().utc;
  ASSERT_EQ(ClaimAs(*a, "ann", 2).size(), 2U);
  clock_.Advance(5s);
  EXPECT_THAT(Settle(*a, {claimed_.jobs[1].token}, SettleKind::kExtend), ElementsAre(SettleOutcome::kOk));
  a.reset();
  const auto b = Node("b");
  for (const char* id : {"x", "y"}) {
    const JobView job = Find(*b, id);
    EXPECT_EQ(std::tuple(job.holder, job.leased, job.attempt), std::tuple("ann", began, 1U)) << id;
  }
  EXPECT_EQ(Find(*b, "x").extensions, 0U);
  EXPECT_EQ(Find(*b, "y").extensions, 1U);
}

TEST_F(RedisHolders, ClaimsThatEndTogetherHaveTheirOwnHolders) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  for (const char* id : {"x", "y"}) ASSERT_EQ(Submit(*a, Job(id)), SubmitOutcome::kAccepted);
  const Time began = clock_.Now().utc;
  ASSERT_EQ(ClaimAs(*a, "ann", 1, 30s).size(), 1U);
  clock_.Advance(10s);
  ASSERT_EQ(ClaimAs(*a, "bob", 1, 20s).size(), 1U);
  EXPECT_EQ(std::tuple(Find(*a, "x").holder, found_.jobs[0].leased), std::tuple("ann", began));
  EXPECT_EQ(std::tuple(Find(*a, "y").holder, found_.jobs[0].leased), std::tuple("bob", began + 10s));
  EXPECT_EQ(Find(*a, "x").lease_deadline, began + 30s);
  EXPECT_EQ(Find(*a, "y").lease_deadline, began + 30s);
}

TEST_F(RedisHolders, AClaimCostsAsManyCommandsHoweverManyJobsItTakes) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  for (int i = 0; i < 250; ++i) ASSERT_EQ(Submit(*a, Job({}, 1h)), SubmitOutcome::kAccepted);
  clock_.Advance(1h);
  Advance(*a);
  std::vector<int64_t> costs;
  ASSERT_EQ(ClaimAs(*a, "ann").size(), 1U);  // its script is loaded from here on
  for (const size_t jobs : {1, 2, 200}) {
    ASSERT_TRUE(Server().Ask({"CONFIG", "RESETSTAT"}));
    ASSERT_EQ(ClaimAs(*a, "ann", jobs).size(), jobs);
    costs.push_back(Commands());
  }
  EXPECT_THAT(costs, Each(costs[0]));
}

// Jobs with own ids are acked one by one: that removes no claim.
TEST_F(RedisHolders, ClaimsWhoseLeasesHaveEndedAreForgottenWhileOthersLast) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  a->OwnAll();
  ASSERT_EQ(Submit(*a, Job("kept")), SubmitOutcome::kAccepted);
  ASSERT_EQ(ClaimAs(*a, "ann", 1, 12h).size(), 1U);
  for (int i = 0; i < 1500; ++i) {
    const std::string id = fmt::format("j{}", i);
    ASSERT_EQ(Submit(*a, Job(id)), SubmitOutcome::kAccepted);
    ASSERT_EQ(ClaimAs(*a, "bob", 1, 12h).size(), 1U);
    ASSERT_EQ(Ack(*a, claimed_.jobs[0].token), SettleOutcome::kOk);
    clock_.Advance(1ms);
  }
  EXPECT_LT(Number({"HLEN", Key(Part::kClaim)}), 600);
  EXPECT_EQ(Find(*a, "kept").holder, "ann");
  clock_.Advance(12h);
  Advance(*a);
  EXPECT_EQ(Number({"EXISTS", Key(Part::kClaim)}), 0) << "no lease is left";
}

TEST_F(RedisHolders, Invariant18_LeasesThatTheProgramBeforeMadeAreServed) {
  const auto a = Node("a");
  topic_.retention = 1h;
  topic_.backoff_base = topic_.backoff_max = 0ms;
  ASSERT_TRUE(Put(*a, topic_));
  const auto forget = [&](bool all) {
    const std::string lease = Text({"ZSCORE", Key(Part::kPrepare), Member(Part::kPrepare)});
    ASSERT_GT(Number({"HLEN", Key(Part::kClaim)}), 0);
    all ? Number({"HDEL", Key(Part::kClaim), lease}) : Number({"HSET", Key(Part::kClaim), lease, "1 8"});
  };
  for (const bool all : {true, false}) {
    SCOPED_TRACE(all);
    const std::string id = all ? "without" : "large";
    ASSERT_EQ(Submit(*a, Job(id)), SubmitOutcome::kAccepted);
    ASSERT_EQ(ClaimAs(*a, "ann").size(), 1U);
    forget(all);
    EXPECT_EQ(std::tuple(Find(*a, id).holder, found_.jobs[0].leased), std::tuple("", Time{}));
    EXPECT_THAT(Settle(*a, {claimed_.jobs[0].token}, SettleKind::kExtend), ElementsAre(SettleOutcome::kOk));
    EXPECT_EQ(std::tuple(Find(*a, id).extensions, found_.jobs[0].leased), std::tuple(1U, Time{}));
    EXPECT_THAT(Settle(*a, {claimed_.jobs[0].token}, SettleKind::kNack), ElementsAre(SettleOutcome::kOk));
    EXPECT_EQ(std::tuple(Find(*a, id).attempt, found_.jobs[0].last_attempt), std::tuple(1U, Time{}));
    const Time began = clock_.Now().utc;
    ASSERT_EQ(ClaimAs(*a, "bob").size(), 1U);
    forget(all);
    EXPECT_EQ(std::tuple(Find(*a, id).holder, found_.jobs[0].leased), std::tuple("", began)) << "its fence tells";
    clock_.Advance(1s);
    EXPECT_EQ(Ack(*a, claimed_.jobs[0].token), SettleOutcome::kOk);
    EXPECT_EQ(std::tuple(Find(*a, id).attempt, found_.jobs[0].last_attempt, found_.jobs[0].finished),
              std::tuple(2U, began, clock_.Now().utc));
  }
}

TEST_F(RedisHolders, Invariant18_NotesThatTheProgramBeforeWroteAreReadAndKept) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  const std::string head("\0\0\0\0\0\0\0\0\2\0", 10);
  const std::string like_a_tail(30, '\xFF');
  for (const std::string& reason : {std::string("why"), like_a_tail}) {
    ASSERT_TRUE(Server().Ask({"FLUSHALL"}));
    const auto b = Node("b");
    ASSERT_TRUE(Put(*b, topic_));
    ASSERT_EQ(Submit(*b, Job("x", 1h)), SubmitOutcome::kAccepted);
    Number({"HSET", Key(Part::kNote), Member(Part::kStore), head + reason});
    EXPECT_EQ(std::tuple(Find(*b, "x").attempt, found_.jobs[0].reason, found_.jobs[0].last_attempt),
              std::tuple(2U, reason, Time{}));
    clock_.Advance(1h);
    ASSERT_EQ(ClaimAs(*b, "ann").size(), 1U);
    EXPECT_EQ(std::tuple(claimed_.jobs[0].attempt, claimed_.jobs[0].reason), std::tuple(3U, reason));
    EXPECT_THAT(Settle(*b, {claimed_.jobs[0].token}, SettleKind::kRelease), ElementsAre(SettleOutcome::kOk));
    EXPECT_EQ(std::tuple(Find(*b, "x").attempt, found_.jobs[0].reason), std::tuple(2U, reason));
  }
}

}  // namespace
}  // namespace tocsin::redis
