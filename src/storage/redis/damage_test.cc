// What Redis holds is damaged, or Redis refuses writes: the jobs beside it are served, and what can be mended is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/redis/nodes_test_fixture.h"

namespace tocsin::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

class RedisDamage : public RedisNodes {
 protected:
  void TearDown() override { ASSERT_TRUE(Server().Ask({"CONFIG", "SET", "maxmemory", "0"})); }

  static std::string Key(Part part) { return KeysOfOrders(0).Of(part); }
  void LookForSomeSeconds(TestNode& node) {
    for (int i = 0; i < 4; ++i) {
      clock_.Advance(1s);
      Advance(node);
    }
  }
};

TEST_F(RedisDamage, AnIdWhoseJobIsLostKeepsNoOtherJobFromFiring) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  ASSERT_TRUE(Server().Ask({"HSET", Key(Part::kId), IdField({.id = "lost", .key = {}}), MemberOf(1)}));
  const std::vector<NewJob> jobs{Job("beside"), Job("lost")};
  const auto stored = Await<std::vector<Submitted>>(
      *a, [&](auto done) { a->store().Submit("orders", jobs, clock_.Now(), std::move(done)); });
  ASSERT_TRUE(stored) << stored.error().message;
  for (const Submitted& each : *stored) EXPECT_EQ(each.outcome, SubmitOutcome::kAccepted);
  EXPECT_EQ(Claim(*b).size(), 2U);
}

TEST_F(RedisDamage, AnIdWhoseJobIsLostIsOfNoJob) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Server().Ask({"HSET", Key(Part::kId), IdField({.id = "lost", .key = {}}), MemberOf(1)}));
  const std::vector<Amendment> amendments{{.job = {.id = "lost", .key = {}}}};
  const auto amended = Await<std::vector<Amended>>(
      *a, [&](auto done) { a->store().Amend("orders", amendments, clock_.Now(), std::move(done)); });
  ASSERT_TRUE(amended) << amended.error().message;
  EXPECT_EQ((*amended)[0].outcome, AmendOutcome::kUnknown);
  const std::vector<JobRef> refs{{.id = "lost", .key = {}}};
  const auto found =
      Await<JobBatch>(*a, [&](auto done) { a->store().Find("orders", refs, nullptr, clock_.Now(), std::move(done)); });
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->jobs[0].uid, 0U);
}

TEST_F(RedisDamage, ADeadLetterWhoseRecordIsLostDoesNotStopARedrive) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  for (const std::string_view id : {"one", "two"}) Submit(*a, Job(id));
  for (const JobView& job : Claim(*a)) Settle(*a, {job.token}, SettleKind::kBury);
  ASSERT_TRUE(Server().Ask({"ZADD", Key(Part::kDead), "1", MemberOf(1)}));
  const auto swept = Await<Swept>(
      *a, [&](auto done) { a->store().Sweep("orders", SweepKind::kRedrive, {}, 100, clock_.Now(), std::move(done)); });
  ASSERT_TRUE(swept) << swept.error().message;
  EXPECT_EQ(Claim(*a).size(), 2U);
}

TEST_F(RedisDamage, AJobThatIsNotInTheIndexIsFoundAndDelivered) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  Advance(*b);
  ASSERT_EQ(Submit(*a, Job("x")), SubmitOutcome::kAccepted);
  ASSERT_TRUE(Server().Ask({"DEL", Key(Part::kNext)}));
  EXPECT_THAT(Claim(*b), IsEmpty());
  LookForSomeSeconds(*b);
  EXPECT_EQ(Claim(*b).size(), 1U);
}

TEST_F(RedisDamage, ALeaseThatIsNotInTheIndexEnds) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  a->OwnAll();
  ASSERT_EQ(Submit(*a, Job("x")), SubmitOutcome::kAccepted);
  ASSERT_EQ(Claim(*a, 1, 1s).size(), 1U);
  ASSERT_TRUE(Server().Ask({"DEL", Key(Part::kChore)}));
  LookForSomeSeconds(*a);
  LookForSomeSeconds(*a);
  EXPECT_EQ(a->store().Topics()[0].expired, 1U);
}

TEST_F(RedisDamage, AClaimThatFindsNothingNeedsNoMemory) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  ASSERT_EQ(Submit(*a, Job("now")), SubmitOutcome::kAccepted);
  ASSERT_EQ(Submit(*a, Job("later", 1h)), SubmitOutcome::kAccepted);
  clock_.Advance(1s);
  Advance(*b);  // it expects to get the job
  ASSERT_EQ(Claim(*a).size(), 1U);
  ASSERT_TRUE(Server().Ask({"CONFIG", "SET", "maxmemory", "1"}));
  EXPECT_THAT(Claim(*b), IsEmpty());
}

TEST_F(RedisDamage, ChoresAreChargedForWhatTheyDid) {
  const auto a = Node("a");
  topic_.slots = 64;
  ASSERT_TRUE(Put(*a, topic_));
  a->OwnAll();
  for (uint32_t slot = 0; slot < 64; ++slot) ASSERT_EQ(Submit(*a, Job({}, 0ms, slot)), SubmitOutcome::kAccepted);
  ASSERT_EQ(Claim(*a, 100, 1s).size(), 64U);
  clock_.Advance(1s);
  Advance(*a);  // with a budget of 1,000
  EXPECT_EQ(a->store().Topics()[0].expired, 64U);
}

}  // namespace
}  // namespace tocsin::redis
