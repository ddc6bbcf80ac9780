// Every use case, on one, two and four shards, with stores that answer at once and stores that answer later.
#include "core/service.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/figures.h"
#include "core/test_node.h"

namespace tocsin {
namespace {

using testing::HasSubstr;
using testing::Not;

class ServiceTest : public testing::TestWithParam<std::tuple<size_t, bool>> {
 protected:
  TestNode node{std::get<0>(GetParam()), std::get<1>(GetParam())};
  const size_t shards = std::get<0>(GetParam());

  std::vector<NewJob> Jobs(size_t count, Millis delay = Millis(0)) {
    std::vector<NewJob> jobs(count);
    for (NewJob& job : jobs) {
      job.delay = delay;
      job.payload = "payload";
    }
    return jobs;
  }

  /// Takes everything that is due, whatever the shard it is on.
  std::vector<JobView> Drain(const std::string& topic, std::vector<JobBatch>& keep) {
    std::vector<JobView> jobs;
    while (true) {
      JobBatch batch = std::move(*node.Reserve(topic, 70));
      if (batch.jobs.empty()) return jobs;
      jobs.insert(jobs.end(), batch.jobs.begin(), batch.jobs.end());
      keep.push_back(std::move(batch));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Shards, ServiceTest, testing::Combine(testing::Values(1, 2, 4), testing::Bool()),
                         [](const auto& info) {
                           return fmt::format("{}{}", std::get<0>(info.param),
                                              std::get<1>(info.param) ? "late" : "at_once");
                         });

TEST_P(ServiceTest, AWholeLife) {
  const auto submitted = node.Submit("t", Jobs(1, Millis(5000)));
  ASSERT_EQ(submitted->size(), 1U);
  EXPECT_EQ((*submitted)[0].outcome, SubmitOutcome::kAccepted);
  EXPECT_EQ((*submitted)[0].due, node.clock.Now().utc + Millis(5000));
  node.Pass(Millis(4999));
  EXPECT_TRUE(node.Reserve("t")->jobs.empty());
  node.Pass(Millis(1));
  const auto batch = node.Reserve("t", 10, shards - 1);
  ASSERT_EQ(batch->jobs.size(), 1U);
  EXPECT_EQ(batch->jobs[0].uid, (*submitted)[0].uid);
  EXPECT_EQ(batch->jobs[0].payload, "payload");
  const auto settled = node.Settle("t", {{.token = batch->jobs[0].token}}, shards - 1);
  EXPECT_EQ(*settled, std::vector{SettleOutcome::kOk});
  EXPECT_EQ(*node.Settle("t", {{.token = batch->jobs[0].token}}), std::vector{SettleOutcome::kStale});
  const auto topics = node.Topics();
  ASSERT_EQ(topics.size(), 1U);
  EXPECT_EQ(topics[0].acked, 1U);
  EXPECT_EQ(ConservationDifference(topics[0]), 0);
}

TEST_P(ServiceTest, ARequestThatItsDoorHasCheckedIsNotCheckedAgain) {
  std::vector<NewJob> jobs = Jobs(2);
  jobs[1].max_attempts = kAttemptsMax + 1;
  EXPECT_EQ(node.Submit("t", jobs).error().code, Code::kInvalidArgument);
  TestNode::Reply<std::vector<Submitted>> reply;
  node.service->Submit(node.at(0), {"t", jobs, nullptr, true}, reply.Catch());
  node.Run();
  EXPECT_EQ((*reply.got)->size(), 2U);
}

TEST_P(ServiceTest, AnswersComeInTheOrderOfTheRequest) {
  std::vector<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(fmt::format("id-{}", i));
  std::vector<NewJob> jobs = Jobs(100, Millis(1000));
  for (size_t i = 0; i < 100; ++i) {
    jobs[i].id = ids[i];
    jobs[i].delay = Millis(1000 + i);
  }
  jobs[50].id = ids[3];
  jobs[50].payload = "other";
  const auto submitted = node.Submit("t", jobs);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ((*submitted)[i].outcome, i == 50 ? SubmitOutcome::kConflict : SubmitOutcome::kAccepted) << i;
    if (i != 50) {
      EXPECT_EQ((*submitted)[i].due, node.clock.Now().utc + jobs[i].delay);
    }
  }

  std::vector<JobRef> refs;
  for (size_t i = 100; i-- > 0;) refs.push_back({.id = ids[i]});
  TestNode::Reply<JobBatch> found;
  node.service->Find(node.at(1), {"t", refs, nullptr}, found.Catch());
  node.Run();
  ASSERT_EQ((*found.got)->jobs.size(), 100U);
  for (size_t i = 0; i < 100; ++i) {
    const JobView& job = (*found.got)->jobs[i];
    if (i == 49) {
      EXPECT_EQ(job.uid, 0U);  // id-50 was never stored
    } else {
      EXPECT_EQ(job.own_id, ids[99 - i]);
    }
  }
}

TEST_P(ServiceTest, AServerIdFindsItsJobWithoutAKey) {
  std::vector<NewJob> jobs = Jobs(20, Millis(1000));
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.push_back(std::to_string(i));
  for (size_t i = 0; i < 20; ++i) jobs[i].key = keys[i];
  const auto submitted = node.Submit("t", jobs);
  for (const Submitted& one : *submitted) {
    const std::string id = UidText(one.uid);
    TestNode::Reply<std::vector<Amended>> amended;
    node.service->Amend(node.at(0), {"t", {{.job = {.id = id}}}, nullptr}, amended.Catch());
    node.Run();
    EXPECT_EQ((**amended.got)[0].outcome, AmendOutcome::kDone);
  }
  EXPECT_EQ(node.Topics()[0].cancelled, 20U);
}

TEST_P(ServiceTest, FiredJobsLeaveAtOnce) {
  std::vector<NewJob> jobs = Jobs(1, Millis(100'000));
  jobs[0].id = "x";
  (void)node.Submit("t", jobs);
  TestNode::Reply<JobBatch> waiting;
  node.service->Reserve(node.at(1), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  node.Run();
  EXPECT_FALSE(waiting.got);
  TestNode::Reply<std::vector<Amended>> amended;
  node.service->Amend(node.at(0), {"t", {{.job = {.id = "x"}, .kind = AmendKind::kFire}}, nullptr}, amended.Catch());
  node.Run();
  ASSERT_TRUE(waiting.got);
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
}

TEST_P(ServiceTest, CountedJobsLeaveAtTheLastEvent) {
  std::vector<NewJob> jobs = Jobs(1);
  jobs[0].id = "x";
  jobs[0].trigger = Trigger::kCount;
  jobs[0].count = 2;
  (void)node.Submit("t", jobs);
  TestNode::Reply<std::vector<Counted>> counted;
  node.service->Count(node.at(1), {"t", {{.job = {.id = "x"}, .event = "a"}, {.job = {.id = "x"}, .event = "a"}}, {}},
                      counted.Catch());
  node.Run();
  EXPECT_EQ((**counted.got)[0].outcome, CountOutcome::kCounted);
  EXPECT_EQ((**counted.got)[1].outcome, CountOutcome::kRepeated);
  EXPECT_TRUE(node.Reserve("t")->jobs.empty());
  node.service->Count(node.at(0), {"t", {{.job = {.id = "x"}, .event = "b"}}, {}}, counted.Catch());
  node.Run();
  EXPECT_EQ((**counted.got)[0].outcome, CountOutcome::kFired);
  EXPECT_EQ(node.Reserve("t")->jobs.size(), 1U);
}

TEST_P(ServiceTest, AnUnsettledJobComesBack) {
  (void)node.Submit("t", Jobs(1));
  const auto first = node.Reserve("t");
  ASSERT_EQ(first->jobs.size(), 1U);
  TestNode::Reply<JobBatch> second;
  node.service->Reserve(node.at(1), {"t", 1, Millis(60'000), Millis(0)}, second.Catch());
  node.Pass(Topic{}.lease - Millis(1));
  EXPECT_FALSE(second.got);
  node.Pass(Millis(5000));  // the back-off of a first attempt
  ASSERT_TRUE(second.got);
  EXPECT_EQ((*second.got)->jobs[0].attempt, 2U);
  EXPECT_EQ(*node.Settle("t", {{.token = first->jobs[0].token}}), std::vector{SettleOutcome::kStale});
}

TEST_P(ServiceTest, ListsEveryJobOnce) {
  std::vector<NewJob> jobs = Jobs(57, Millis(1000));
  std::vector<std::string> ids;
  for (int i = 0; i < 57; ++i) ids.push_back(std::to_string(i));
  for (size_t i = 0; i < 57; ++i) jobs[i].id = ids[i];
  (void)node.Submit("t", jobs);
  std::multiset<std::string> seen;
  std::string cursor;
  do {
    TestNode::Reply<Page> page;
    node.service->List(node.at(1), {"t", OfState(State::kScheduled), cursor, 10}, page.Catch());
    node.Run();
    ASSERT_TRUE(*page.got);
    EXPECT_LE((*page.got)->jobs.jobs.size(), 10U);
    for (const JobView& job : (*page.got)->jobs.jobs) seen.insert(job.Id());
    cursor = (*page.got)->cursor;
  } while (!cursor.empty());
  EXPECT_EQ(seen, std::multiset<std::string>(ids.begin(), ids.end()));
  TestNode::Reply<Page> bad;
  node.service->List(node.at(0), {"t", OfState(State::kScheduled), "99:", 10}, bad.Catch());
  node.Run();
  EXPECT_EQ(bad.got->error().field, "cursor");
}

TEST_P(ServiceTest, APageIsBoundedInBytesHoweverSmallItsPartsAre) {
  constexpr size_t kPage = 4 << 20;
  const std::string payload(200'000, 'x');
  std::vector<NewJob> jobs(50, NewJob{.delay = Millis(1000), .payload = payload});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(node.Submit("t", jobs, i));
  for (auto& store : node.stores) store->list_max = 3;
  size_t seen = 0;
  size_t pages = 0;
  std::string cursor;
  do {
    TestNode::Reply<Page> page;
    node.service->List(node.at(1), {"t", OfState(State::kScheduled), cursor, 1000}, page.Catch());
    node.Run();
    ASSERT_TRUE(*page.got);
    const size_t listed = (*page.got)->jobs.jobs.size();
    EXPECT_LT(listed * payload.size(), kPage + 3 * payload.size());
    seen += listed;
    cursor = (*page.got)->cursor;
    ASSERT_LT(++pages, 100U);
  } while (!cursor.empty());
  EXPECT_EQ(seen, 100U);
  EXPECT_LE(pages, 6U) << "a page takes as much as it may";
}

TEST_P(ServiceTest, ACursorOfAnEarlierStartIsRefused) {
  // What a cursor means to a store may be another job after a restart: jobs would be left out without a word.
  (void)node.Submit("t", Jobs(5, Millis(1000)));
  TestNode other(std::get<0>(GetParam()), std::get<1>(GetParam()));
  (void)other.Submit("t", Jobs(5, Millis(1000)));
  TestNode::Reply<Page> page;
  node.service->List(node.at(0), {"t", OfState(State::kScheduled), "", 1}, page.Catch());
  node.Run();
  const std::string cursor = (*page.got)->cursor;
  ASSERT_FALSE(cursor.empty());
  TestNode::Reply<Page> next;
  node.service->List(node.at(0), {"t", OfState(State::kScheduled), cursor, 1}, next.Catch());
  node.Run();
  EXPECT_TRUE(*next.got);
  TestNode::Reply<Page> foreign;
  other.service->List(other.at(0), {"t", OfState(State::kScheduled), cursor, 1}, foreign.Catch());
  other.Run();
  EXPECT_EQ(foreign.got->error().field, "cursor");
}

TEST_P(ServiceTest, SweepsUntilNothingIsLeft) {
  std::vector<NewJob> jobs = Jobs(1100, Millis(1000));
  for (int i = 0; i < 3; ++i) (void)node.Submit("t", jobs, i);
  TestNode::Reply<size_t> swept;
  node.service->Sweep(node.at(1), "t", SweepKind::kPurge, swept.Catch());
  node.Run();
  EXPECT_EQ(**swept.got, 3300U);
  EXPECT_EQ(node.Topics()[0].scheduled, 0U);
}

TEST_P(ServiceTest, APurgeEndsAlsoWhileJobsKeepComing) {
  (void)node.Submit("t", Jobs(3000, Millis(1000)));
  TestNode::Reply<size_t> swept;
  node.service->Sweep(node.at(0), "t", SweepKind::kPurge, swept.Catch());
  constexpr int kEnough = 10'000;
  int submitted = 0;
  std::function<void()> submit = [&] {
    if (swept.got || ++submitted == kEnough) return;
    SubmitRequest request{"t", Jobs(1, Millis(1000)), nullptr};
    node.service->Submit(node.at(0), std::move(request), [&](const auto&) { node.at(0).Post([&] { submit(); }); });
  };
  submit();
  node.Run();
  EXPECT_LT(submitted, kEnough);
  EXPECT_GE(**swept.got, 3000U);
}

TEST_P(ServiceTest, ADroppedTopicIsGoneWithManyJobs) {
  (void)node.Submit("t", Jobs(5000, Millis(1000)));
  (void)node.Submit("t", Jobs(1));
  EXPECT_EQ(node.Reserve("t")->jobs.size(), 1U);
  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(0), "t", dropped.Catch());
  node.Run();
  EXPECT_TRUE(*dropped.got);
  for (auto& store : node.stores) EXPECT_TRUE(store->Topics().empty());
}

TEST_P(ServiceTest, RedrivenDeadLettersAreDelivered) {
  std::vector<NewJob> jobs = Jobs(1);
  jobs[0].max_attempts = 1;
  (void)node.Submit("t", jobs);
  const auto batch = node.Reserve("t");
  EXPECT_EQ(*node.Settle("t", {{.token = batch->jobs[0].token, .kind = SettleKind::kNack}}),
            std::vector{SettleOutcome::kDead});
  TestNode::Reply<JobBatch> waiting;
  node.service->Reserve(node.at(0), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  TestNode::Reply<size_t> swept;
  node.service->Sweep(node.at(1), "t", SweepKind::kRedrive, swept.Catch());
  node.Run();
  EXPECT_EQ(**swept.got, 1U);
  ASSERT_TRUE(waiting.got);
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
}

TEST_P(ServiceTest, TopicsAreCreatedChangedAndDropped) {
  Topic topic = DefaultTopic("t");
  topic.slots = 16;
  EXPECT_EQ(node.PutTopic(topic, 1)->version, 1U);
  EXPECT_EQ(node.PutTopic(topic, 0)->version, 1U);
  topic.max_attempts = 3;
  EXPECT_EQ(node.PutTopic(topic, 1)->version, 2U);
  for (auto& store : node.stores) EXPECT_EQ(store->Topics()[0].topic.max_attempts, 3U);
  topic.slots = 8;
  const auto conflict = node.PutTopic(topic);
  EXPECT_EQ(conflict.error().code, Code::kConflict);
  EXPECT_EQ(conflict.error().field, "slots");
  topic.slots = 3;
  EXPECT_EQ(node.PutTopic(topic).error().code, Code::kInvalidArgument);

  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(1), "t", dropped.Catch());
  node.Run();
  EXPECT_TRUE(*dropped.got);
  for (auto& store : node.stores) EXPECT_TRUE(store->Topics().empty());
  EXPECT_EQ(node.Settle("t", {{}}).error().code, Code::kTopicNotFound);
  node.service->DropTopic(node.at(1), "t", dropped.Catch());
  node.Run();
  EXPECT_EQ(dropped.got->error().code, Code::kTopicNotFound);
}

TEST_P(ServiceTest, ManyFirstSubmitsCreateATopicOnce) {
  std::vector<TestNode::Reply<std::vector<Submitted>>> replies(50);
  for (size_t i = 0; i < 50; ++i) node.service->Submit(node.at(i), {"new", Jobs(1), nullptr}, replies[i].Catch());
  node.Run();
  for (auto& reply : replies) EXPECT_EQ((**reply.got)[0].outcome, SubmitOutcome::kAccepted);
  EXPECT_EQ(node.Topics()[0].topic.version, 1U);
  EXPECT_EQ(node.Topics()[0].accepted, 50U);
}

TEST_P(ServiceTest, UnknownTopicsAreNotFoundOnlyByThoseThatNeedOne) {
  EXPECT_EQ(node.Settle("no", {{}}).error().code, Code::kTopicNotFound);
  EXPECT_EQ(node.Settle("no", {{}}).error().field, "topic");
  EXPECT_TRUE(node.Reserve("no")->jobs.empty());
  EXPECT_TRUE(node.Topics().empty());
}

TEST_P(ServiceTest, ARestartKnowsTheTopicsAndFinishesHalfMadeOnes) {
  Topic topic = DefaultTopic("t");
  (void)node.PutTopic(topic);
  topic.version = 2;
  topic.max_attempts = 5;
  node.memory[0]->PutTopic(topic, [](Result<void>) {});  // a crash before the other stores had it
  node.Run();
  ASSERT_TRUE(node.Stop());
  node.Open();
  for (auto& store : node.stores) EXPECT_EQ(store->Topics()[0].topic.max_attempts, 5U);
  EXPECT_EQ(node.Settle("t", {{}}).value(), std::vector{SettleOutcome::kStale});
}

TEST_P(ServiceTest, AClockThatIsSetForwardLeavesDelaysAlone) {
  std::vector<NewJob> jobs = Jobs(2, Millis(60'000));
  jobs[1].timeline = Timeline::kUtc;
  jobs[1].due = node.clock.Now().utc + Millis(60'000);
  jobs[1].payload = "absolute";
  (void)node.Submit("t", jobs);
  node.clock.Step(Millis(3'600'000));
  bool looked = false;
  node.service->ClockMoved(node.at(1), [&] { looked = true; });
  node.Run();
  EXPECT_TRUE(looked);
  auto batch = node.Reserve("t", 10);
  ASSERT_EQ(batch->jobs.size(), 1U);
  EXPECT_EQ(batch->jobs[0].payload, "absolute");
  (void)node.Settle("t", {{.token = batch->jobs[0].token}});
  node.clock.Step(Millis(-7'200'000));
  node.Pass(Millis(59'999));
  EXPECT_TRUE(node.Reserve("t", 10)->jobs.empty());
  node.Pass(Millis(1));
  EXPECT_EQ(node.Reserve("t", 10)->jobs.size(), 1U);
}

TEST_P(ServiceTest, AStepThatNobodyTellsOfIsSeenWithinASecond) {
  std::vector<NewJob> jobs = Jobs(1);
  jobs[0].timeline = Timeline::kUtc;
  jobs[0].due = node.clock.Now().utc + Millis(3'600'000);
  (void)node.Submit("t", jobs);
  TestNode::Reply<JobBatch> waiting;
  node.service->Reserve(node.at(0), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  node.Run();
  node.clock.Step(Millis(3'600'000));
  node.Pass(Millis(1000));
  EXPECT_TRUE(waiting.got);
}

TEST_P(ServiceTest, NoAlarmSpinsWhileTheWallClockStandsStill) {
  std::vector<NewJob> jobs = Jobs(1);
  jobs[0].timeline = Timeline::kUtc;
  jobs[0].due = node.clock.Now().utc + Millis(2);
  (void)node.Submit("t", jobs);
  size_t before = 0;
  for (const auto& store : node.stores) before += store->advances;
  for (int i = 0; i < 10'000; ++i) {
    node.Pass(Millis(1));
    node.clock.Step(Millis(-1));
  }
  size_t advances = 0;
  for (const auto& store : node.stores) advances += store->advances;
  // One each second is the scan.
  EXPECT_LE(advances - before, node.stores.size() * 40);
  EXPECT_TRUE(node.Reserve("t", 1)->jobs.empty());
  node.Pass(Millis(2));
  EXPECT_EQ(node.Reserve("t", 1)->jobs.size(), 1U);
}

TEST_P(ServiceTest, CatchUpAfterDowntimeStarvesNoTopic) {
  for (const char* topic : {"a", "b"}) {
    for (int i = 0; i < 3; ++i) (void)node.Submit(topic, Jobs(200, Millis(1000 + i)), i);
  }
  node.clock.Advance(std::chrono::days(30));
  TestNode::Reply<JobBatch> a;
  TestNode::Reply<JobBatch> b;
  node.service->Reserve(node.at(0), {"a", 10, Millis(60'000), Millis(0)}, a.Catch());
  node.service->Reserve(node.at(1), {"b", 10, Millis(60'000), Millis(0)}, b.Catch());
  node.Run();
  EXPECT_EQ((*a.got)->jobs.size(), 10U);
  EXPECT_EQ((*b.got)->jobs.size(), 10U);
  std::vector<JobBatch> keep;
  EXPECT_EQ(Drain("a", keep).size() + Drain("b", keep).size(), 1200U - 20);
}

TEST_P(ServiceTest, MetricsShowSettingsOnlyOfTopicsThatHaveThem) {
  Topic limited = DefaultTopic("limited");
  limited.capacity_jobs = 10;
  limited.paused = true;
  ASSERT_TRUE(node.PutTopic(limited));
  (void)node.Submit("plain", Jobs(2));
  (void)node.Submit("plain", Jobs(3, Millis(60'000)));
  node.Pass(Millis(1000));
  const std::string text = node.metrics.RenderPrometheus();
  EXPECT_THAT(text, HasSubstr("tocsin_topic_capacity_jobs{topic=\"limited\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("tocsin_topic_paused{topic=\"limited\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("tocsin_topic_capacity_bytes")));
  EXPECT_THAT(text, Not(HasSubstr("tocsin_topic_paused{topic=\"plain\"")));
  EXPECT_THAT(text, HasSubstr("tocsin_jobs_ready{topic=\"plain\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("tocsin_jobs_future{topic=\"plain\"} 3\n"));
}

TEST_P(ServiceTest, MetricsFollowATopicAndForgetIt) {
  (void)node.Submit("t\"x", Jobs(3));
  (void)node.Reserve("t\"x", 1);
  node.Pass(Millis(1000));
  std::string text = node.metrics.RenderPrometheus();
  EXPECT_THAT(text, HasSubstr("tocsin_jobs_accepted_total{topic=\"t\\\"x\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("tocsin_jobs_leased{topic=\"t\\\"x\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tocsin_lateness_seconds_count{topic=\"t\\\"x\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tocsin_conservation_difference{topic=\"t\\\"x\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tocsin_shard_stall_seconds_count "));
  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(0), "t\"x", dropped.Catch());
  node.Run();
  EXPECT_THAT(node.metrics.RenderPrometheus(), Not(HasSubstr("topic=")));
}

}  // namespace
}  // namespace tocsin
