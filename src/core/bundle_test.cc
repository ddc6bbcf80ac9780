// Bundles: what a front end read at once leaves as one message for each shard, whatever the calls are.
#include <gmock/gmock.h>

#include "core/test_node.h"

namespace tocsin {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;

using Jobs = TestNode::Reply<std::vector<Submitted>>;

std::vector<NewJob> WithIds(const std::vector<std::string>& ids, Millis delay = Millis(0)) {
  std::vector<NewJob> jobs;
  for (const std::string& id : ids) jobs.push_back({.id = id, .delay = delay, .payload = id});
  return jobs;
}

std::vector<std::string> ManyIds(std::string_view prefix, size_t count) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(fmt::format("{}{}", prefix, i));
  return ids;
}

class BundleTest : public testing::TestWithParam<bool> {
 protected:
  static constexpr size_t kShards = 4;

  BundleTest() {
    for (const std::string_view topic : {"t", "u", "v"}) EXPECT_TRUE(node_.PutTopic(DefaultTopic(std::string(topic))));
  }

  void ForgetRequests() {
    for (auto& loop : node_.loops) loop->requests = 0;
  }
  std::vector<size_t> Requests() const {
    std::vector<size_t> requests;
    for (const auto& loop : node_.loops) requests.push_back(loop->requests);
    return requests;
  }

  /// All that is due: a reserve is answered by one shard at a time.
  std::vector<JobBatch> ReserveAll(const std::string& topic) {
    std::vector<JobBatch> all;
    while (true) {
      auto batch = node_.Reserve(topic, 100, 1);
      if (!batch || batch->jobs.empty()) return all;
      all.push_back(std::move(*batch));
    }
  }
  static size_t Count(const std::vector<JobBatch>& batches) {
    size_t jobs = 0;
    for (const JobBatch& batch : batches) jobs += batch.jobs.size();
    return jobs;
  }

  TestNode node_{kShards, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(LateAnswers, BundleTest, testing::Bool());

TEST_P(BundleTest, IsOneMessageForEachOtherShard) {
  const auto ids = ManyIds("a", 100);
  ASSERT_TRUE(node_.Submit("v", WithIds(ids)));
  std::vector<JobRef> refs(ids.begin(), ids.end());
  Jobs t;
  Jobs u;
  TestNode::Reply<std::vector<Amended>> amended;
  TestNode::Reply<std::vector<Counted>> counted;
  TestNode::Reply<std::vector<SettleOutcome>> settled;
  TestNode::Reply<JobBatch> found;
  ForgetRequests();
  {
    const Service::Bundle bundle(*node_.service, node_.at(0));
    node_.service->Submit(node_.at(0), {"t", WithIds(ids), nullptr}, t.Catch());
    node_.service->Submit(node_.at(0), {"u", WithIds(ids), nullptr}, u.Catch());
    AmendRequest amend{.topic = "v"};
    for (const JobRef& ref : refs) amend.amendments.push_back({.job = ref, .kind = AmendKind::kCancel});
    node_.service->Amend(node_.at(0), std::move(amend), amended.Catch());
    CountRequest count{.topic = "t"};
    for (const JobRef& ref : refs) count.events.push_back({.job = ref, .event = "e", .by = 1});
    node_.service->Count(node_.at(0), std::move(count), counted.Catch());
    SettleRequest settle{.topic = "u"};
    for (uint32_t slot = 0; slot < 8; ++slot) settle.settlements.push_back({.token = {.slot = slot}});
    node_.service->Settle(node_.at(0), std::move(settle), settled.Catch());
    node_.service->Find(node_.at(0), {"t", refs, nullptr}, found.Catch());
    EXPECT_THAT(Requests(), Each(0));
  }
  EXPECT_THAT(Requests(), ElementsAre(0, 1, 1, 1));
  node_.Run();
  EXPECT_THAT(**t.got, Each(Field(&Submitted::outcome, SubmitOutcome::kAccepted)));
  EXPECT_THAT(**u.got, Each(Field(&Submitted::outcome, SubmitOutcome::kAccepted)));
  EXPECT_THAT(**amended.got, Each(Field(&Amended::outcome, AmendOutcome::kDone)));
  EXPECT_THAT(**counted.got, Each(Field(&Counted::outcome, CountOutcome::kNotCounted)));
  EXPECT_THAT(**settled.got, Each(SettleOutcome::kStale));
  ASSERT_EQ((*found.got)->jobs.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ((*found.got)->jobs[i].Id(), ids[i]);
}

TEST_P(BundleTest, KeepsTheOrderOfATopic) {
  const auto ids = ManyIds("a", 40);
  Jobs first;
  TestNode::Reply<std::vector<Amended>> cancelled;
  Jobs again;
  {
    const Service::Bundle bundle(*node_.service, node_.at(1));
    node_.service->Submit(node_.at(1), {"t", WithIds(ids, Millis(1000)), nullptr}, first.Catch());
    AmendRequest cancel{.topic = "t"};
    for (const std::string& id : ids) cancel.amendments.push_back({.job = {.id = id}, .kind = AmendKind::kCancel});
    node_.service->Amend(node_.at(1), std::move(cancel), cancelled.Catch());
    node_.service->Submit(node_.at(1), {"t", WithIds(ids), nullptr}, again.Catch());
  }
  node_.Run();
  EXPECT_THAT(**first.got, Each(Field(&Submitted::outcome, SubmitOutcome::kAccepted)));
  EXPECT_THAT(**cancelled.got, Each(Field(&Amended::outcome, AmendOutcome::kDone)));
  EXPECT_THAT(**again.got, Each(Field(&Submitted::outcome, SubmitOutcome::kAccepted)));
  EXPECT_EQ(Count(ReserveAll("t")), ids.size());
}

TEST_P(BundleTest, AFullMailboxRefusesItsJobsAlone) {
  const auto ids = ManyIds("a", 40);
  Jobs t;
  TestNode::Reply<std::vector<Counted>> counted;
  TestNode::Reply<JobBatch> found;
  node_.loops[2]->full = true;
  {
    const Service::Bundle bundle(*node_.service, node_.at(0));
    node_.service->Submit(node_.at(0), {"t", WithIds(ids), nullptr}, t.Catch());
    CountRequest count{.topic = "t"};
    for (const std::string& id : ids) count.events.push_back({.job = {.id = id}, .event = "e", .by = 1});
    node_.service->Count(node_.at(0), std::move(count), counted.Catch());
    node_.service->Find(node_.at(0), {"t", {ids.begin(), ids.end()}, nullptr}, found.Catch());
  }
  node_.Run();
  node_.loops[2]->full = false;
  size_t refused = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool here = (**t.got)[i].outcome == SubmitOutcome::kAccepted;
    EXPECT_EQ((**counted.got)[i].outcome, here ? CountOutcome::kNotCounted : CountOutcome::kOverloaded);
    if (!here) EXPECT_EQ((**t.got)[i].outcome, SubmitOutcome::kOverloaded);
    refused += here ? 0 : 1;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, ids.size());
  EXPECT_EQ(found.got->error().code, Code::kOverloaded);  // it has no outcome for each
  EXPECT_EQ(Count(ReserveAll("t")), ids.size() - refused);
}

TEST_P(BundleTest, AnEmptyOneSendsNothing) {
  ForgetRequests();
  {
    const Service::Bundle bundle(*node_.service, node_.at(3));
  }
  EXPECT_THAT(Requests(), Each(0));
}

TEST_P(BundleTest, StopWaitsForIt) {
  const auto ids = ManyIds("a", 40);
  Jobs t;
  {
    const Service::Bundle bundle(*node_.service, node_.at(0));
    node_.service->Submit(node_.at(0), {"t", WithIds(ids), nullptr}, t.Catch());
  }
  EXPECT_TRUE(node_.Stop());
  ASSERT_TRUE(t.got.has_value());
  EXPECT_THAT(**t.got, Each(Field(&Submitted::outcome, SubmitOutcome::kAccepted)));
}

TEST_P(BundleTest, KnowsWhatCallsFind) {
  EXPECT_TRUE(node_.service->Knows(node_.at(2), "t"));
  EXPECT_FALSE(node_.service->Knows(node_.at(2), "new"));
  ASSERT_TRUE(node_.Submit("new", WithIds({"a"}), 2));
  for (size_t i = 0; i < kShards; ++i) EXPECT_TRUE(node_.service->Knows(node_.at(i), "new"));
}

TEST_P(BundleTest, ReleaseUndoesADelivery) {
  ASSERT_TRUE(node_.Submit("t", WithIds(ManyIds("a", 40))));
  for (int round = 0; round < 3; ++round) {
    const auto got = ReserveAll("t");
    ASSERT_EQ(Count(got), 40U);
    for (const JobBatch& batch : got) {
      for (const JobView& job : batch.jobs) EXPECT_EQ(job.attempt, 1U);
      node_.service->Release(node_.at(1), LeasesOf("t", batch));
    }
    node_.Run();
  }
}

}  // namespace
}  // namespace tocsin
