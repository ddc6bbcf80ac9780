// Operations, over one shard and over several.
#include "core/operations.h"

#include <set>

#include <gmock/gmock.h>

#include "core/operations_test_site.h"
#include "core/validate.h"

namespace tocsin {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST_P(OperationsTest, ACancelOfOneKeyLeavesTheOthers) {
  SubmitJobs(10);
  const auto report = Ended({.what = {.key = "k1"}, .action = JobAction::kCancel});
  EXPECT_EQ(report.matched, 5U);
  EXPECT_THAT(report.outcomes, ElementsAre(Pair("cancelled", 5)));
  EXPECT_EQ(Scheduled(), 5U);
  EXPECT_THAT(Ids({.topic = "t", .what = {.states = StateSet::Of(State::kScheduled), .key = "k1"}}), ElementsAre());
}

TEST_P(OperationsTest, ADryRunChangesNothing) {
  SubmitJobs(20);
  const auto report = Operate({.what = {.key = "k1"}, .action = JobAction::kPurge, .dry_run = true});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->matched, 10U);
  EXPECT_EQ(report->id, "");
  ASSERT_TRUE(report->samples);
  EXPECT_EQ(report->samples->jobs.size(), 5U);
  EXPECT_EQ(report->samples->jobs[0].key, "k1");
  EXPECT_EQ(Scheduled(), 20U);
}

TEST_P(OperationsTest, ADryRunEndsWhenNobodyWaitsForIt) {
  SubmitJobs(2000);
  int left = 1;
  OperateRequest request{.topic = "t", .action = JobAction::kPurge, .all = true, .dry_run = true};
  request.wanted = [&left] { return left-- > 0; };
  TestNode::Reply<OperationReport> reply;
  node.service->Operate(node.at(1), std::move(request), reply.Catch());
  node.Run();
  EXPECT_FALSE(*reply.got);
  EXPECT_EQ(left, -1) << "it was asked after each page of two";
  EXPECT_EQ(node.metrics.GetGauge("tocsin_operations_running", "")->Value(), 0) << "others have its place";
}

TEST_P(OperationsTest, NoMoreJobsAreChangedThanWereConfirmed) {
  SubmitJobs(20);
  const auto limited = [this](uint64_t matched_max) {
    const auto begun = Operate({.what = {.key = "k1"}, .action = JobAction::kCancel, .matched_max = matched_max});
    EXPECT_TRUE(begun);
    return Show(begun->id);
  };
  const OperationReport none = limited(0);
  EXPECT_EQ(none.state, OperationState::kFailed);
  EXPECT_THAT(none.error, testing::HasSubstr("matched_max"));
  EXPECT_THAT(none.outcomes, ElementsAre());
  const OperationReport some = limited(3);
  EXPECT_EQ(some.state, OperationState::kFailed);
  EXPECT_THAT(some.outcomes, ElementsAre(Pair("cancelled", 3)));
  EXPECT_EQ(Scheduled(), 17U);
  const OperationReport all = limited(7);
  EXPECT_EQ(all.state, OperationState::kDone) << "as many as were counted: " << all.error;
  EXPECT_EQ(Scheduled(), 10U);
  EXPECT_EQ(limited(0).state, OperationState::kDone) << "nothing matches any more";
}

TEST_P(OperationsTest, AJobThatIsListedTwiceIsNotOneMore) {
  SubmitJobs(10);
  node.Pass(Millis(20'000));
  Bury(10, "timeout");
  for (auto& store : node.stores) store->lists_twice = true;
  const auto begun = Operate({.action = JobAction::kFire, .all = true, .matched_max = 0});
  EXPECT_EQ(Show(begun->id).state, OperationState::kDone) << "only dead letters are there";
  const auto redrive = Operate({.action = JobAction::kRedrive, .all = true, .matched_max = 10});
  EXPECT_EQ(Show(redrive->id).state, OperationState::kDone) << Show(redrive->id).error;
  const auto fire = Operate({.action = JobAction::kFire, .all = true, .matched_max = 10});
  EXPECT_EQ(Show(fire->id).state, OperationState::kDone) << Show(fire->id).error;
  EXPECT_THAT(Show(fire->id).outcomes, ElementsAre(Pair("fired", 10)));
}

TEST_P(OperationsTest, ARateAndABoundWorkTogether) {
  SubmitJobs(30);
  const auto begun = Operate({.action = JobAction::kCancel, .all = true, .rate = 100, .matched_max = 12});
  node.Pass(Millis(5000));
  EXPECT_EQ(Show(begun->id).state, OperationState::kFailed);
  EXPECT_THAT(Show(begun->id).outcomes, ElementsAre(Pair("cancelled", 12)));
  EXPECT_EQ(Scheduled(), 18U);
}

TEST_P(OperationsTest, AnIdOfAnotherRunNamesNoOperation) {
  SubmitJobs(2);
  const auto before = Operate({.action = JobAction::kFire, .all = true});
  ASSERT_TRUE(before);
  EXPECT_THAT(before->id, testing::MatchesRegex("[2-9a-z]{5}-1"));
  node.Stop();
  node.Open();
  const auto after = Operate({.action = JobAction::kCancel, .all = true, .rate = 1});
  ASSERT_TRUE(after);
  EXPECT_NE(after->id, before->id);
  for (const std::string& id : {before->id, std::string("1"), std::string(""), after->id + "1", after->id + "x"}) {
    TestNode::Reply<void> stopped;
    node.service->StopOperation(node.at(1), "t", id, stopped.Catch());
    node.Run();
    EXPECT_EQ(stopped.got->error().code, Code::kNotFound) << id;
  }
  EXPECT_EQ(Show(after->id).state, OperationState::kRunning);
}

TEST_P(OperationsTest, OnlyOneReasonIsRedriven) {
  SubmitJobs(8);
  node.Pass(Millis(20'000));
  Bury(5, "timeout");
  Bury(3, "refused");
  const auto report = Ended({.what = {.reason = "time"}, .action = JobAction::kRedrive});
  EXPECT_THAT(report.outcomes, ElementsAre(Pair("redriven", 5)));
  EXPECT_EQ(node.Topics()[0].dead, 3U);
  EXPECT_EQ(node.Topics()[0].redriven, 5U);
}

TEST_P(OperationsTest, ARateIsKept) {
  SubmitJobs(100);
  node.Pass(Millis(101'000));
  Bury(100, "timeout");
  const auto begun = Operate({.action = JobAction::kRedrive, .all = true, .rate = 20});
  ASSERT_TRUE(begun);
  node.Pass(Millis(2000));
  const uint64_t after_two = node.Topics()[0].redriven;
  EXPECT_GE(after_two, 36U);
  EXPECT_LE(after_two, 44U);
  EXPECT_EQ(Show(begun->id).state, OperationState::kRunning);
  node.Pass(Millis(4000));
  EXPECT_EQ(Show(begun->id).state, OperationState::kDone);
  EXPECT_EQ(node.Topics()[0].redriven, 100U);
}

TEST_P(OperationsTest, AnOperationIsStopped) {
  SubmitJobs(50);
  const auto begun = Operate({.action = JobAction::kCancel, .all = true, .rate = 10});
  ASSERT_TRUE(begun);
  node.Pass(Millis(1000));
  TestNode::Reply<void> stopped;
  node.service->StopOperation(node.at(1), "t", begun->id, stopped.Catch());
  node.Pass(Millis(10'000));
  EXPECT_TRUE(*stopped.got);
  EXPECT_EQ(Show(begun->id).state, OperationState::kStopped);
  EXPECT_GT(Scheduled(), 30U);
  EXPECT_LT(Scheduled(), 50U);
}

TEST_P(OperationsTest, JobsAreMovedAndSpread) {
  SubmitJobs(4);
  const Time now = node.clock.Now().utc;
  EXPECT_THAT(Ended({.action = JobAction::kReschedule, .all = true, .shift = Millis(3'600'000)}).outcomes,
              ElementsAre(Pair("rescheduled", 4)));
  auto page = List({.topic = "t", .sort = Sort::kDue});
  EXPECT_EQ(page->jobs.jobs[0].due, now + Millis(3'601'000));
  const Time to = now + Millis(60'000);
  (void)Ended({.action = JobAction::kReschedule, .all = true, .to = to, .window = Millis(4000)});
  page = List({.topic = "t", .sort = Sort::kDue});
  ASSERT_EQ(page->jobs.jobs.size(), 4U);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(page->jobs.jobs[static_cast<size_t>(i)].due, to + Millis(1000 * i));
}

TEST_P(OperationsTest, AJobThatIsListedAgainIsMovedOnce) {
  SubmitJobs(20);
  const Time now = node.clock.Now().utc;
  for (auto& store : node.stores) store->lists_twice = true;
  const auto report = Ended({.action = JobAction::kReschedule, .all = true, .shift = Millis(3'600'000)});
  EXPECT_THAT(Show(report.id).outcomes, ElementsAre(Pair("rescheduled", 20)));
  EXPECT_EQ(Show(report.id).matched, 20U);
  for (auto& store : node.stores) store->lists_twice = false;
  const auto page = List({.topic = "t", .sort = Sort::kDue});
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(page->jobs.jobs[i].due, now + Millis(3'600'000 + 1000 * (i + 1)));
}

TEST_P(OperationsTest, AJobThatHasChangedSinceItWasFoundStays) {
  SubmitJobs(3);
  node.Pass(Millis(5000));
  Bury(3, "timeout");
  const auto purge = Operate({.what = OfState(State::kDead), .action = JobAction::kPurge, .rate = 1});
  ASSERT_TRUE(purge);
  node.Pass(Millis(500));
  EXPECT_THAT(Ended({.action = JobAction::kRedrive, .all = true}).outcomes, ElementsAre(Pair("redriven", 3)));
  node.Pass(Millis(10'000));
  EXPECT_THAT(Show(purge->id).outcomes, ElementsAre(Pair("changed_meanwhile", 1)));
  EXPECT_EQ(Scheduled(), 3U);

  const auto shift = Operate({.action = JobAction::kReschedule, .all = true, .shift = Millis(60'000), .rate = 1});
  ASSERT_TRUE(shift);
  node.Pass(Millis(500));
  const Time to = node.clock.Now().utc + Millis(3'600'000);
  (void)Ended({.action = JobAction::kReschedule, .all = true, .to = to});
  node.Pass(Millis(10'000));
  EXPECT_THAT(Show(shift->id).outcomes, UnorderedElementsAre(Pair("changed_meanwhile", 1), Pair("rescheduled", 2)));
}

TEST_P(OperationsTest, AnOperationTellsOfJobsThatHaveEndedMeanwhile) {
  const auto meanwhile = [this](Millis retention, const char* outcome) {
    Topic topic = DefaultTopic("t");
    topic.retention = retention;
    ASSERT_TRUE(node.PutTopic(topic));
    ASSERT_TRUE(node.Submit("t", {{.payload = "x"}}));
    const auto begun = Operate({.action = JobAction::kFire, .all = true, .rate = 1});
    ASSERT_TRUE(begun);
    node.Pass(Millis(500));
    const auto batch = node.Reserve("t");
    ASSERT_EQ(batch->jobs.size(), 1U);
    ASSERT_TRUE(node.Settle("t", {{.token = batch->jobs[0].token, .kind = SettleKind::kAck}}));
    node.Pass(Millis(5000));
    EXPECT_THAT(Show(begun->id).outcomes, ElementsAre(Pair(outcome, 1)));
  };
  meanwhile(Millis(3'600'000), "finished");
  meanwhile(Millis(0), "unknown");
  ASSERT_TRUE(node.Submit("t", {{.delay = Millis(3'600'000)}}));
  EXPECT_THAT(Ended({.action = JobAction::kFire, .all = true}).outcomes, ElementsAre(Pair("fired", 1)));
  EXPECT_EQ(node.Reserve("t")->jobs.size(), 1U);
}

TEST_P(OperationsTest, MetricsCountOperationsAndTheirJobs) {
  const auto jobs = [this](const char* action, const char* outcome) {
    return node.metrics.GetCounter("tocsin_operation_jobs_total", "", {{"action", action}, {"outcome", outcome}})
        ->Value();
  };
  EXPECT_EQ(node.metrics.RenderPrometheus().find("tocsin_operation"), std::string::npos) << "what never happened";
  SubmitJobs(3);
  ASSERT_TRUE(Operate({.action = JobAction::kCancel, .all = true, .dry_run = true}));
  const auto begun = Operate({.action = JobAction::kCancel, .all = true, .rate = 1});
  ASSERT_TRUE(begun);
  EXPECT_EQ(node.metrics.GetGauge("tocsin_operations_running", "")->Value(), 1);
  node.Pass(Millis(10'000));
  EXPECT_EQ(node.metrics.GetGauge("tocsin_operations_running", "")->Value(), 0);
  EXPECT_EQ(jobs("cancel", "cancelled"), 3U);
  EXPECT_EQ(node.metrics.GetCounter("tocsin_operations_total", "", {{"state", "done"}})->Value(), 1U);
}

TEST_P(OperationsTest, AnEmptySelectorNeedsAll) {
  SubmitJobs(2);
  EXPECT_EQ(Operate({.action = JobAction::kPurge}).error().field, "where");
  EXPECT_EQ(Operate({.action = JobAction::kReschedule, .all = true}).error().field, "to_ms");
  EXPECT_EQ(Operate({.action = JobAction::kCancel, .all = true, .shift = Millis(1)}).error().field, "shift_ms");
  EXPECT_EQ(Operate({.action = JobAction::kAttempts, .all = true}).error().field, "max_attempts");
  EXPECT_EQ(Scheduled(), 2U);
  EXPECT_THAT(Ended({.action = JobAction::kPurge, .all = true}).outcomes, ElementsAre(Pair("purged", 2)));
  EXPECT_EQ(Scheduled(), 0U);
}

TEST_P(OperationsTest, ATimeInAnotherUnitIsRefused) {
  SubmitJobs(2);
  const auto refusal = [this](Time to) {
    const auto begun = Operate({.action = JobAction::kReschedule, .all = true, .to = to});
    EXPECT_FALSE(begun);
    return begun ? Error() : begun.error();
  };
  const int64_t now_ms = ToMs(node.clock.Now().utc);
  EXPECT_EQ(refusal(FromMs(now_ms / 1000)).field, "to_ms");
  EXPECT_THAT(refusal(FromMs(now_ms / 1000)).message, testing::HasSubstr("it looks like seconds"));
  EXPECT_THAT(refusal(FromMs(now_ms * 1000)).message, testing::HasSubstr("it looks like microseconds"));
  EXPECT_THAT(refusal(FromMs(now_ms) - std::chrono::days(2)).message, testing::HasSubstr("2 days ago"));
  EXPECT_EQ(Scheduled(), 2U);
  EXPECT_TRUE(Operate({.action = JobAction::kReschedule, .all = true, .to = FromMs(now_ms - 1000)}));

  EXPECT_TRUE(Validate(Selector{.due = {.from = Time{}, .to = FromMs(now_ms)}}));
  EXPECT_EQ(Validate(Selector{.due = {.from = FromMs(now_ms / 1000)}}).error().field, "due_from_ms");
  EXPECT_EQ(Validate(Selector{.died = {.to = FromMs(now_ms * 1000)}}).error().field, "died_to_ms");
}

TEST_P(OperationsTest, ASmallLimitOfBatchesDoesNotEndWalks) {
  TestNode small{GetParam(), false, {.batch = 3}};
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(small.Submit("t", {{.delay = Millis(1000 * i)}}));
  TestNode::Reply<TallyReport> tally;
  small.service->Tally(small.at(0), {.topic = "t"}, tally.Catch());
  TestNode::Reply<Page> page;
  small.service->List(small.at(0), {.topic = "t", .limit = 3, .sort = Sort::kDue}, page.Catch());
  small.Run();
  ASSERT_TRUE(*tally.got) << tally.got->error().message;
  EXPECT_EQ((*tally.got)->total, 20U);
  ASSERT_TRUE(*page.got) << page.got->error().message;
  EXPECT_EQ((*page.got)->jobs.jobs.size(), 3U);

  TestNode::Reply<OperationReport> begun;
  small.service->Operate(small.at(0), {.topic = "t", .action = JobAction::kCancel, .all = true}, begun.Catch());
  small.Run();
  ASSERT_TRUE(*begun.got) << begun.got->error().message;
  EXPECT_EQ(small.Topics()[0].scheduled, 0U);
}

TEST_P(OperationsTest, AWalkWhoseFirstPageIsRefusedIsNotOver) {
  SubmitJobs(20);
  const auto refuse = [this](bool refused) {
    for (auto& store : node.stores) store->fail = refused ? std::optional(Code::kOverloaded) : std::nullopt;
  };
  refuse(true);
  TestNode::Reply<OperationReport> dry_run;
  OperateRequest request{.topic = "t", .action = JobAction::kCancel, .all = true, .dry_run = true};
  node.service->Operate(node.at(1), std::move(request), dry_run.Catch());
  const Time to = node.clock.Now().utc + Millis(3'600'000);
  const auto spread =
      Operate({.action = JobAction::kReschedule, .all = true, .to = to, .window = Millis(20'000), .rate = 100});
  ASSERT_TRUE(spread);
  node.Pass(Millis(200));
  EXPECT_FALSE(dry_run.got);
  refuse(false);
  node.Pass(Millis(5'000));
  ASSERT_TRUE(dry_run.got && *dry_run.got);
  EXPECT_EQ((*dry_run.got)->matched, 20U);
  EXPECT_THAT(Show(spread->id).outcomes, ElementsAre(Pair("rescheduled", 20)));
  std::set<Time> times;
  for (const JobView& job : List({.topic = "t"})->jobs.jobs) times.insert(job.due);
  EXPECT_EQ(times.size(), 20U) << "the jobs are spread over the window";
}

TEST_P(OperationsTest, AnOperationWaitsWhileAShardIsOverloaded) {
  SubmitJobs(20);
  const auto begun = Operate({.action = JobAction::kCancel, .all = true, .rate = 10});
  ASSERT_TRUE(begun);
  node.Pass(Millis(500));
  for (auto& store : node.stores) store->fail = Code::kOverloaded;
  node.Pass(Millis(2000));
  for (auto& store : node.stores) store->fail.reset();
  node.Pass(Millis(10'000));
  EXPECT_EQ(Show(begun->id).state, OperationState::kDone) << Show(begun->id).error;
  EXPECT_THAT(Show(begun->id).outcomes, ElementsAre(Pair("cancelled", 20)));

  SubmitJobs(20);
  const auto given_up = Operate({.action = JobAction::kCancel, .all = true, .rate = 10});
  ASSERT_TRUE(given_up);
  node.Pass(Millis(500));
  for (auto& store : node.stores) store->fail = Code::kOverloaded;
  node.Pass(Millis(60'000));
  EXPECT_EQ(Show(given_up->id).state, OperationState::kFailed);
}

TEST_P(OperationsTest, TheServiceStopsWhileOneRuns) {
  SubmitJobs(50);
  ASSERT_TRUE(Operate({.action = JobAction::kCancel, .all = true, .rate = 1}));
  EXPECT_TRUE(node.Stop());
}

TEST_P(OperationsTest, ALeasedJobIsInFlight) {
  SubmitJobs(3);
  node.Pass(Millis(5000));
  ASSERT_EQ(node.Reserve("t", 2)->jobs.size(), 2U);
  Selector what = OfState(State::kLeased);
  what.states.Add(StateSet::Of(State::kScheduled));
  const auto report = Ended({.what = what, .action = JobAction::kCancel});
  EXPECT_THAT(report.outcomes, UnorderedElementsAre(Pair("cancelled", 1), Pair("in_flight", 2)));
}

INSTANTIATE_TEST_SUITE_P(Shards, OperationsTest, testing::Values(1, 3));

}  // namespace
}  // namespace tocsin
