// Contract of Store: amend and count.
#include "spi/contract/store_contract.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(StoreContract, CancelEndsAScheduledJob) {
  Accept(Job("a", 5s));
  EXPECT_EQ(Cancel("a"), AmendOutcome::kDone);
  EXPECT_EQ(Find("a").uid, 0U);
  Pass(24h);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  EXPECT_EQ(Figures().cancelled, 1U);
  Accept(Job("a", 6s));
}

TEST_P(StoreContract, CancelOfAReadyJobThatNobodyHasTaken) {
  Accept(Job("a"));
  Scan();
  EXPECT_EQ(Cancel("a"), AmendOutcome::kDone);
  EXPECT_THAT(ClaimIds(), IsEmpty());
}

TEST_P(StoreContract, CancelByServerId) {
  const std::string id = UidText(Accept(Job({}, 5s)).uid);
  EXPECT_EQ(Cancel(id, "a key that does not matter"), AmendOutcome::kDone);
  EXPECT_EQ(Cancel(id), AmendOutcome::kUnknown);
}

TEST_P(StoreContract, RescheduleMovesTheDueTimeEitherWay) {
  Accept(Job("a", 10s));
  const Amended later = Reschedule("a", 1h);
  EXPECT_EQ(later.outcome, AmendOutcome::kDone);
  EXPECT_EQ(later.due, Now().utc + 1h);
  Pass(10s);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  EXPECT_EQ(Reschedule("a", 5s).outcome, AmendOutcome::kDone);
  Pass(4999ms);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(1ms);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
  Pass(29s);
  EXPECT_THAT(ClaimIds(), IsEmpty()) << "the old due times fire nothing";
}

TEST_P(StoreContract, RescheduleToAnAbsoluteMoment) {
  Accept(Job("a", 10s));
  const Time due = Now().utc + 5s;
  EXPECT_EQ(Amend({.job = {"a", {}}, .kind = AmendKind::kReschedule, .timeline = Timeline::kUtc, .due = due}).due, due);
  Pass(5s);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
  Accept(Job("b", 10s));
  const Amended past =
      Amend({.job = {"b", {}}, .kind = AmendKind::kReschedule, .timeline = Timeline::kUtc, .due = due - 1h});
  EXPECT_EQ(past.due, Now().utc) << "one that has passed counts as now";
  EXPECT_THAT(ClaimIds(), ElementsAre("b"));
}

TEST_P(StoreContract, RescheduleOfAReadyJobTakesItBack) {
  Accept(Job("a"));
  Scan();
  EXPECT_EQ(Reschedule("a", 5s).outcome, AmendOutcome::kDone);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(5s);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
}

TEST_P(StoreContract, RescheduleKeepsTheAttemptsUsed) {
  Accept(Job("a"));
  EXPECT_EQ(Nack(ClaimOne().token, 10s), SettleOutcome::kOk);
  EXPECT_EQ(Reschedule("a", 0s).outcome, AmendOutcome::kDone);
  EXPECT_EQ(ClaimOne().attempt, 2U);
}

TEST_P(StoreContract, RescheduleOfACountJobMakesItWaitForEither) {
  Accept(CountJob("a", 5));
  EXPECT_EQ(Reschedule("a", 5s).outcome, AmendOutcome::kDone);
  EXPECT_EQ(Find("a").trigger, Trigger::kEither);
  EXPECT_EQ(Count("a", "e").outcome, CountOutcome::kCounted);
  Pass(5s);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
}

TEST_P(StoreContract, NewPayloadIsWhatIsDelivered) {
  Accept(Keyed(Job("a", 5s, "old"), "key"));
  EXPECT_EQ(Amend({.job = {"a", "key"}, .kind = AmendKind::kPayload, .payload = "new and longer"}).outcome,
            AmendOutcome::kDone);
  Pass(5s);
  const JobView job = ClaimOne();
  EXPECT_EQ(job.payload, "new and longer");
  EXPECT_EQ(job.key, "key");
  EXPECT_EQ(job.due, Now().utc) << "the due time stays";
}

TEST_P(StoreContract, NewPayloadAndNewDueTimeAreOneChange) {
  Accept(Job("a", 5s, "old"));
  EXPECT_EQ(Amend({.job = {"a", {}}, .kind = AmendKind::kReschedule, .delay = 9s, .payload = "new"}).outcome,
            AmendOutcome::kDone);
  Pass(5s);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  harness_->Restart();
  Pass(4s);
  EXPECT_EQ(ClaimOne().payload, "new");
}

TEST_P(StoreContract, PayloadThatDoesNotFitLeavesTheDueTimeAsItWas) {
  Set([](Topic& topic) { topic.capacity_bytes = 100; });
  Accept(Job("a", 5s, "old"));
  const std::string large(200, 'x');
  EXPECT_EQ(Amend({.job = {"a", {}}, .kind = AmendKind::kReschedule, .delay = 9s, .payload = large}).outcome,
            AmendOutcome::kOverCapacity);
  Pass(5s);
  EXPECT_EQ(ClaimOne().payload, "old");
}

TEST_P(StoreContract, NewPayloadChangesTheBytesAccounted) {
  Accept(Job("a", 5s, std::string(100, 'x')));
  const uint64_t before = Figures().bytes;
  EXPECT_EQ(NewPayload("a", std::string(400, 'x')), AmendOutcome::kDone);
  EXPECT_GE(Figures().bytes, before + 300);
  EXPECT_EQ(NewPayload("a", std::string(100, 'y')), AmendOutcome::kDone);
  EXPECT_EQ(Figures().bytes, before);
}

TEST_P(StoreContract, FireMakesAJobDueNow) {
  Accept(Job("far", 24h * 365));
  Accept(CountJob("count", 5));
  Accept(JobAt("absolute", Now().utc + 1h));
  const Amended fired = Amend({.job = {"far", {}}, .kind = AmendKind::kFire});
  EXPECT_EQ(fired.outcome, AmendOutcome::kDone);
  EXPECT_EQ(fired.due, Now().utc);
  EXPECT_EQ(Fire("count"), AmendOutcome::kDone);
  EXPECT_EQ(Fire("absolute"), AmendOutcome::kDone);
  Scan();
  EXPECT_THAT(found_.ready, testing::Contains(kTopic));
  EXPECT_THAT(ClaimIds(), testing::UnorderedElementsAre("far", "count", "absolute"));
  EXPECT_EQ(Figures().accepted, 3U);
}

TEST_P(StoreContract, FireOfAReadyJobChangesNothing) {
  Accept(Job("a"));
  EXPECT_EQ(Fire("a"), AmendOutcome::kDone);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
}

TEST_P(StoreContract, AmendOfABatchGoesInItsOrder) {
  Accept(Job("a", 1h));
  Accept(Job("b", 1h));
  const std::vector<Amendment> batch{{.job = {"a", {}}, .kind = AmendKind::kCancel},
                                     {.job = {"a", {}}, .kind = AmendKind::kFire},
                                     {.job = {"b", {}}, .kind = AmendKind::kFire},
                                     {.job = {"b", {}}, .kind = AmendKind::kCancel}};
  const auto outcomes =
      Await<std::vector<Amended>>([&](auto done) { store().Amend(kTopic, batch, Now(), std::move(done)); });
  ASSERT_TRUE(outcomes);
  ASSERT_EQ(outcomes->size(), 4U);
  EXPECT_EQ((*outcomes)[0].outcome, AmendOutcome::kDone);
  EXPECT_EQ((*outcomes)[1].outcome, AmendOutcome::kUnknown);
  EXPECT_EQ((*outcomes)[2].outcome, AmendOutcome::kDone);
  EXPECT_EQ((*outcomes)[3].outcome, AmendOutcome::kDone);
  EXPECT_THAT(ClaimIds(), IsEmpty());
}

TEST_P(StoreContract, CountFiresAtTheLastEvent) {
  const Submitted submitted = Accept(CountJob("a", 3));
  EXPECT_EQ(submitted.due, kNever);
  EXPECT_EQ(Find("a").due, kNever);
  EXPECT_EQ(Find("a").count_left, 3U);
  Counted counted = Count("a", "e1");
  EXPECT_EQ(counted.outcome, CountOutcome::kCounted);
  EXPECT_EQ(counted.left, 2U);
  counted = Count("a", "e1");
  EXPECT_EQ(counted.outcome, CountOutcome::kRepeated);
  EXPECT_EQ(counted.left, 2U);
  EXPECT_EQ(Count("a", "e2").left, 1U);
  EXPECT_EQ(Find("a").count_left, 1U);
  Pass(24h);
  EXPECT_THAT(ClaimIds(), IsEmpty()) << "time alone does not fire it";
  EXPECT_EQ(Count("a", "e3").outcome, CountOutcome::kFired);
  Scan();
  EXPECT_THAT(found_.ready, testing::Contains(kTopic));
  EXPECT_EQ(Count("a", "e4").outcome, CountOutcome::kNotCounted);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
}

TEST_P(StoreContract, CountByMoreThanOne) {
  Accept(CountJob("a", 10));
  EXPECT_EQ(Count("a", "e1", 4).left, 6U);
  EXPECT_EQ(Count("a", "e1", 6).outcome, CountOutcome::kRepeated);
  const Counted last = Count("a", "e2", UINT32_MAX);
  EXPECT_EQ(last.outcome, CountOutcome::kFired);
  EXPECT_EQ(last.left, 0U);
}

TEST_P(StoreContract, CountWaitsForTheTopicsNumberUnlessTheJobNamesOne) {
  Set([](Topic& topic) { topic.count_limit = 2; });
  Accept(CountJob("a", 0));
  Set([](Topic& topic) { topic.count_limit = 9; });
  EXPECT_EQ(Count("a", "e1").left, 1U) << "as it was when the job was submitted";
  EXPECT_EQ(Count("a", "e2").outcome, CountOutcome::kFired);
}

TEST_P(StoreContract, CountOfManyEventsInOneCall) {
  Accept(CountJob("a", 2));
  const std::vector<CountEvent> events{
      {{"a", {}}, "x", 1}, {{"a", {}}, "x", 1}, {{"a", {}}, "y", 1}, {{"a", {}}, "z", 1}, {{"none", {}}, "x", 1}};
  const auto outcomes =
      Await<std::vector<Counted>>([&](auto done) { store().Count(kTopic, events, Now(), std::move(done)); });
  ASSERT_TRUE(outcomes);
  std::vector<CountOutcome> kinds;
  for (const Counted& each : *outcomes) kinds.push_back(each.outcome);
  EXPECT_THAT(kinds, ElementsAre(CountOutcome::kCounted, CountOutcome::kRepeated, CountOutcome::kFired,
                                 CountOutcome::kNotCounted, CountOutcome::kUnknown));
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
}

TEST_P(StoreContract, CountEventsBelongToOneJob) {
  Accept(CountJob("a", 2));
  Accept(CountJob("b", 2));
  EXPECT_EQ(Count("a", "e").outcome, CountOutcome::kCounted);
  EXPECT_EQ(Count("b", "e").outcome, CountOutcome::kCounted);
}

TEST_P(StoreContract, EitherTriggerFiresByTime) {
  Accept(CountJob("a", 2, Trigger::kEither, 5s));
  EXPECT_EQ(Count("a", "e1").outcome, CountOutcome::kCounted);
  Pass(5s);
  EXPECT_EQ(Count("a", "e2").outcome, CountOutcome::kNotCounted);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
  EXPECT_EQ(Count("a", "e3").outcome, CountOutcome::kNotCounted);
}

TEST_P(StoreContract, EitherTriggerFiresByCount) {
  Accept(CountJob("a", 1, Trigger::kEither, 5s));
  EXPECT_EQ(Count("a", "e1").outcome, CountOutcome::kFired);
  const JobView job = ClaimOne();
  EXPECT_EQ(job.due, Now().utc);
  EXPECT_EQ(Ack(job.token), SettleOutcome::kOk);
  Pass(5s);
  EXPECT_THAT(ClaimIds(), IsEmpty());
}

TEST_P(StoreContract, CountHasADefiniteAnswerInEveryState) {
  Set([](Topic& topic) {
    topic.retention = 1h;
    topic.max_attempts = 1;
  });
  EXPECT_EQ(Count("none", "e").outcome, CountOutcome::kUnknown);
  Accept(Job("time", 1h));
  EXPECT_EQ(Count("time", "e").outcome, CountOutcome::kNotCounted);
  EXPECT_EQ(Cancel("time"), AmendOutcome::kDone);
  EXPECT_EQ(Count("time", "e").outcome, CountOutcome::kFinished);
  Accept(CountJob("a", 1));
  EXPECT_EQ(Count("a", "e").outcome, CountOutcome::kFired);
  const Token token = ClaimOne().token;
  EXPECT_EQ(Count("a", "leased").outcome, CountOutcome::kNotCounted);
  EXPECT_EQ(Nack(token), SettleOutcome::kDead);
  EXPECT_EQ(Count("a", "dead").outcome, CountOutcome::kFinished);
}

TEST_P(StoreContract, ANackedCountJobIsAPlainScheduledOne) {
  Accept(CountJob("a", 2));
  EXPECT_EQ(Count("a", "e1", 2).outcome, CountOutcome::kFired);
  EXPECT_EQ(Nack(ClaimOne().token, 5s), SettleOutcome::kOk);
  EXPECT_EQ(Count("a", "e2", 2).outcome, CountOutcome::kNotCounted);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(5s);
  EXPECT_EQ(ClaimOne().attempt, 2U);
}

}  // namespace
}  // namespace tocsin
