// Batches that are too much for one turn of a shard.
#include "core/steps.h"

#include <gmock/gmock.h>

#include "core/test_node.h"

namespace tocsin {
namespace {

using testing::Each;
using testing::Field;

using Jobs = TestNode::Reply<std::vector<Submitted>>;

constexpr size_t kLarge = 6;

class StepsTest : public testing::Test {
 protected:
  std::vector<NewJob> LargeJobs(bool own_ids = false) {
    std::vector<NewJob> jobs(kLarge, {.payload = payload_});
    for (size_t i = 0; own_ids && i < jobs.size(); ++i) jobs[i].id = ids_.emplace_back(fmt::format("id-{}", i));
    return jobs;
  }

  const std::string payload_ = std::string(kStepBytes, 'x');
  std::deque<std::string> ids_;
};

TEST_F(StepsTest, AreOfAMegabyteAndASmallBatchIsOne) {
  const std::vector<NewJob> small(4'000);
  EXPECT_FALSE(TakesSteps(std::span(small)));
  EXPECT_EQ(FirstStep(std::span<const NewJob>()), 0U);
  const auto large = LargeJobs();
  EXPECT_EQ(FirstStep(std::span(large)), 1U);
  const std::string reason(kReasonBytesMax, 'r');
  const std::vector<Settlement> nacks(10'000, {.kind = SettleKind::kNack, .reason = reason});
  EXPECT_EQ(FirstStep(std::span(nacks)), kStepBytes / (kItemBytes + kReasonBytesMax));
  NewJob with_headers;
  with_headers.headers.assign(kHeadersMax, {"h", "v"});
  const std::vector<NewJob> many(1'000, with_headers);
  EXPECT_LT(FirstStep(std::span(many)), 500U);
}

TEST_F(StepsTest, OthersHaveTheirTurnBetweenThem) {
  for (const size_t shards : {1, 2}) {
    TestNode node(shards);
    ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
    Jobs answer;
    node.service->Submit(node.at(0), {"t", LargeJobs(), nullptr}, answer.Catch());
    const auto submits = [&] {
      size_t all = 0;
      for (const auto& store : node.stores) all += store->submits;
      return all;
    };
    size_t seen = 0;
    for (auto& loop : node.loops) loop->Post([&] { seen = submits(); });
    node.Run();
    EXPECT_LT(seen, kLarge);
    EXPECT_EQ(submits(), kLarge);
    ASSERT_TRUE(answer.got && *answer.got);
    EXPECT_EQ((*answer.got)->size(), kLarge);
    EXPECT_THAT(**answer.got, Each(Field(&Submitted::outcome, SubmitOutcome::kAccepted)));
    EXPECT_EQ(node.Reserve("t", 100)->jobs.size(), kLarge);
  }
}

TEST_F(StepsTest, TheAnswerIsInTheOrderOfTheRequest) {
  TestNode node(4, true);
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  const auto answer = node.Submit("t", LargeJobs(true), 1);
  ASSERT_TRUE(answer);
  std::vector<JobRef> refs(ids_.begin(), ids_.end());
  TestNode::Reply<JobBatch> found;
  node.service->Find(node.at(0), {"t", refs, nullptr}, found.Catch());
  node.Run();
  ASSERT_TRUE(found.got && *found.got);
  ASSERT_EQ((*found.got)->jobs.size(), kLarge);
  for (size_t i = 0; i < kLarge; ++i) {
    EXPECT_EQ((*found.got)->jobs[i].own_id, ids_[i]);
    EXPECT_EQ((*found.got)->jobs[i].uid, (*answer)[i].uid) << i;
  }
}

TEST_F(StepsTest, OneThatFailsIsAnsweredForItsJobsAlone) {
  TestNode node(1);
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  Jobs answer;
  node.service->Submit(node.at(0), {"t", LargeJobs(), nullptr}, answer.Catch());
  node.stores[0]->fail = Code::kUnavailable;  // after the first
  node.Run();
  ASSERT_TRUE(answer.got && *answer.got);
  EXPECT_EQ((**answer.got)[0].outcome, SubmitOutcome::kAccepted);
  const std::span rest = std::span(**answer.got).subspan(1);
  EXPECT_THAT(std::vector(rest.begin(), rest.end()), Each(Field(&Submitted::outcome, SubmitOutcome::kUnavailable)));

  const auto all = node.Submit("t", LargeJobs());
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, Code::kUnavailable);
}

TEST_F(StepsTest, AFullMailboxRefusesAllOfAPart) {
  TestNode node(2);
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  node.loops[1]->full = true;
  const auto answer = node.Submit("t", LargeJobs(true));
  ASSERT_TRUE(answer);
  const auto refused = std::ranges::count(*answer, SubmitOutcome::kOverloaded, &Submitted::outcome);
  EXPECT_EQ(static_cast<size_t>(refused), kLarge - node.stores[0]->submits);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace tocsin
