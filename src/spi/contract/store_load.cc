// Contract of Store: the future load.
#include <random>

#include "spi/contract/store_contract.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;

/// The minute that the time is in.
Time Minute(Time time) { return std::chrono::floor<std::chrono::minutes>(time); }

TEST_P(StoreContract, LoadOfAnUnknownTopicIsRefused) {
  const auto load = Await<LoadCounts>([&](auto done) { store().Load("none", {}, Now(), std::move(done)); });
  ASSERT_FALSE(load);
  EXPECT_EQ(load.error().code, Code::kTopicNotFound);
}

TEST_P(StoreContract, LoadCountsJobsInTheStepThatTheyAreDueIn) {
  const Time start = Minute(Now().utc) + 10min;
  // The first and the last millisecond of steps, on both timelines.
  Accept(JobAt("before", start - 1ms));
  Accept(JobAt("first", start));
  Accept(JobAt("end of first", start + 2min - 1ms));
  Accept(Job("second", start + 2min - Now().utc));
  Accept(Job("last", start + 6min - 1ms - Now().utc));
  Accept(JobAt("after", start + 6min));
  EXPECT_THAT(Load({start, 2min, 3}).jobs, ElementsAre(2, 1, 1));
  EXPECT_THAT(Load({start - 1min, 1min, 8}).jobs, ElementsAre(1, 1, 1, 1, 0, 0, 1, 1));
  EXPECT_THAT(Load({start, 24h, 2}).jobs, ElementsAre(5, 0));
}

TEST_P(StoreContract, LoadFollowsAJobThroughItsLife) {
  Set([](Topic& topic) {
    topic.backoff_base = topic.backoff_max = 10min;
    topic.max_attempts = 2;
  });
  Pass(Minute(Now().utc) + 90s - Now().utc);  // to half a minute
  const Time start = Minute(Now().utc);
  const auto load = [&] { return Load({start, 5min, 6}); };
  Accept(Job("a", 6min));
  Accept(CountJob("counts", 2));
  EXPECT_THAT(load().jobs, ElementsAre(0, 1, 0, 0, 0, 0));
  Reschedule("a", 11min);
  EXPECT_THAT(load().jobs, ElementsAre(0, 0, 1, 0, 0, 0));
  EXPECT_EQ(NewPayload("a", "other"), AmendOutcome::kDone);
  EXPECT_THAT(load().jobs, ElementsAre(0, 0, 1, 0, 0, 0));
  EXPECT_EQ(Fire("a"), AmendOutcome::kDone);
  Scan();
  EXPECT_THAT(load().jobs, Each(0));
  EXPECT_EQ(load().due, 1U);
  const Token token = ClaimOne(1h).token;
  EXPECT_THAT(load().jobs, Each(0));
  EXPECT_EQ(load().due, 0U);
  EXPECT_EQ(Nack(token, 16min), SettleOutcome::kOk);
  EXPECT_THAT(load().jobs, ElementsAre(0, 0, 0, 1, 0, 0));
  Pass(16min);
  EXPECT_THAT(load().jobs, Each(0));
  EXPECT_EQ(load().due, 1U);
  EXPECT_EQ(Nack(ClaimOne(1h).token), SettleOutcome::kDead);
  EXPECT_EQ(load().due, 0U);
  EXPECT_EQ(Sweep(SweepKind::kRedrive), 1U);
  Scan();
  EXPECT_EQ(load().due, 1U);
  EXPECT_EQ(Release(ClaimOne(1h).token), SettleOutcome::kOk);
  Scan();
  EXPECT_EQ(load().due, 1U);
  EXPECT_EQ(Count("counts", "e1", 2).outcome, CountOutcome::kFired);
  Scan();
  EXPECT_EQ(load().due, 2U);
}

TEST_P(StoreContract, LoadFallsWhenJobsAreCancelledReplacedPurgedOrDropped) {
  Topic other = DefaultSettings();
  other.name = "other";
  Put(other);
  const Time start = Minute(Now().utc);
  const auto load = [&](std::string_view topic) { return Load({start, 1h, 3}, topic).jobs; };
  for (const char* id : {"a", "b", "c"}) Accept(Job(id, 90min));
  Accept(Job("d", 90min), "other");
  EXPECT_THAT(load(kTopic), ElementsAre(0, 3, 0));
  EXPECT_THAT(load({}), ElementsAre(0, 4, 0));
  EXPECT_EQ(Cancel("a"), AmendOutcome::kDone);
  EXPECT_THAT(load(kTopic), ElementsAre(0, 2, 0));
  Accept(Asking(Job("b", 150min), OnConflict::kReplace));
  EXPECT_THAT(load(kTopic), ElementsAre(0, 1, 1));
  EXPECT_THAT(load({}), ElementsAre(0, 2, 1));
  EXPECT_EQ(Sweep(SweepKind::kPurge), 2U);
  EXPECT_THAT(load(kTopic), Each(0));
  EXPECT_THAT(load({}), ElementsAre(0, 1, 0));
  // The jobs of a dropped topic may be erased later, but they no longer count.
  EXPECT_TRUE(Await<void>([&](Done<void> done) { store().DropTopic("other", std::move(done)); }));
  EXPECT_THAT(load({}), Each(0));
  Put(other);
  EXPECT_THAT(load("other"), Each(0));
  Accept(Job("d", 30min), "other");
  EXPECT_THAT(load({}), ElementsAre(1, 0, 0));
}

TEST_P(StoreContract, LoadOutlivesARestart) {
  const Time start = Minute(Now().utc);
  for (int i = 0; i < 20; ++i) Accept(Job(fmt::format("j{}", i), i * 10min));
  for (int i = 0; i < 4; ++i) Accept(JobAt(fmt::format("u{}", i), start + i * 1h));
  Scan();
  const LoadCounts before = Load({start, 1h, 5});
  harness_->Restart();
  Scan();
  EXPECT_EQ(Load({start, 1h, 5}).jobs, before.jobs);
  EXPECT_EQ(Load({start, 1h, 5}).due, before.due);
  EXPECT_EQ(Load({start, 1h, 5}, {}).jobs, before.jobs);
}

TEST_P(StoreContract, LoadOfManyStepsIsThatOfEachJob) {
  std::mt19937 random(3);
  const Time start = Minute(Now().utc);
  std::vector<uint64_t> expected(kLoadStepsMax);
  std::vector<NewJob> jobs;
  for (int i = 0; i < 500; ++i) {
    const auto due = Millis(60'000 + random() % (uint64_t{kLoadStepsMax - 1} * 60'000));
    ++expected[static_cast<size_t>(due / kLoadMinute)];
    jobs.push_back(JobAt({}, start + due));
  }
  for (const Submitted& each : SubmitAll(jobs)) EXPECT_EQ(each.outcome, SubmitOutcome::kAccepted);
  EXPECT_EQ(Load({start, kLoadMinute, kLoadStepsMax}).jobs, expected);
  EXPECT_EQ(Load({start, kLoadMinute, kLoadStepsMax}, {}).jobs, expected);
}

TEST_P(StoreContract, LoadMovesWithTheWallClock) {
  if (!harness_->supports_clock_steps()) GTEST_SKIP() << "its clock cannot be stepped";
  const Time start = Minute(Now().utc) - 3h;
  // The count of each minute, by the due times that jobs show.
  const auto shown = [&] {
    std::vector<uint64_t> minutes(360);
    const auto page = Await<Page>(
        [&](auto done) { store().List(kTopic, OfState(State::kScheduled), {}, {1000}, Now(), std::move(done)); });
    for (const JobView& job : page->jobs.jobs) {
      if (job.due > Now().utc) ++minutes[static_cast<size_t>((job.due - start) / kLoadMinute)];
    }
    return minutes;
  };
  for (int i = 0; i < 100; ++i) Accept(Job({}, 30min + i * 1s));
  Accept(JobAt("absolute", Minute(Now().utc) + 30min));
  const std::vector<uint64_t> before = shown();
  EXPECT_EQ(Load({start, kLoadMinute, 360}).jobs, before);
  clock().Step(1h + 20'010ms);  // neither a whole minute nor a whole second
  Accept(Job({}, 10min));
  Scan();
  EXPECT_EQ(Load({start, kLoadMinute, 360}).jobs, shown());
  EXPECT_EQ(Load({start, kLoadMinute, 360}, {}).jobs, shown());
  EXPECT_EQ(Load({start, kLoadMinute, 360}).due, 1U);  // the absolute one
  EXPECT_NE(shown(), before);
  clock().Step(-2h);
  Scan();
  EXPECT_EQ(Load({start, kLoadMinute, 360}).jobs, shown());
  EXPECT_EQ(Load({start, kLoadMinute, 360}).due, 0U);
}

}  // namespace
}  // namespace tocsin
