// Contract of Store: the bugs of peers (docs/reliability.md) that can happen inside a store.
#include <algorithm>

#include "spi/contract/store_contract.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

TEST_P(StoreContract, PeerBug01_ATimerBehindTheReadCursorIsPickedUp) {
  Accept(Job("far", 24h));
  Pass(1h);
  Accept(Job("now"));
  Accept(JobAt("past", Now().utc - 30min));
  Accept(Job("soon", 1ms));
  EXPECT_THAT(ClaimIds(), UnorderedElementsAre("now", "past"));
  Pass(1ms);
  EXPECT_THAT(ClaimIds(), ElementsAre("soon"));
  EXPECT_EQ(Reschedule("far", 0s).outcome, AmendOutcome::kDone);
  EXPECT_THAT(ClaimIds(), ElementsAre("far"));
}

TEST_P(StoreContract, PeerBug02_ReadinessIsReportedAgainAfterEveryEmptyClaim) {
  for (int round = 0; round < 5; ++round) {
    Accept(Job({}, 1s));
    Scan();
    EXPECT_THAT(found_.ready, IsEmpty());
    Pass(1s);
    EXPECT_THAT(found_.ready, Contains(kTopic));
    EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
    EXPECT_THAT(ClaimIds(), IsEmpty());
  }
  Accept(Job());
  Scan();
  EXPECT_THAT(found_.ready, Contains(kTopic)) << "due when it was submitted";
  EXPECT_EQ(Nack(ClaimOne().token, 1s), SettleOutcome::kOk);
  Pass(1s);
  EXPECT_THAT(found_.ready, Contains(kTopic)) << "after a nack";
  EXPECT_EQ(Release(ClaimOne().token), SettleOutcome::kOk);
  Scan();
  EXPECT_THAT(found_.ready, Contains(kTopic)) << "after a release";
  ClaimOne(1s);
  Pass(1s);
  Pass(24h);
  EXPECT_THAT(ClaimIds().size(), 1U) << "after an expired lease";
  harness_->Restart();
  Scan();
  LoseLeases();
  EXPECT_THAT(found_.ready, Contains(kTopic)) << "after a restart";
}

TEST_P(StoreContract, PeerBug02_FollowingItsOwnAlarmsAloneReachesEveryJob) {
  for (const Millis delay : {Millis(3s), Millis(2h), Millis(24h * 40), kDelayMax}) {
    Accept(Job({}, delay));
    const Time due = Now().steady + delay;
    Scan();
    for (int alarms = 0; found_.ready.empty(); ++alarms) {
      ASSERT_LT(alarms, 10'000);
      ASSERT_GT(found_.next_steady, Now().steady);
      ASSERT_LE(found_.next_steady, due);
      Pass(found_.next_steady - Now().steady);
    }
    EXPECT_EQ(Now().steady, due);
    EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
  }
}

TEST_P(StoreContract, PeerBug04_ADuplicateSubmitDoesNotHideTheJob) {
  Accept(Job("a", 1s));
  EXPECT_EQ(Submit(Job("a", 1s)).outcome, SubmitOutcome::kDuplicate);
  harness_->Restart();
  EXPECT_EQ(Submit(Job("a", 1s)).outcome, SubmitOutcome::kDuplicate);
  Pass(1s);
  EXPECT_EQ(Submit(Job("a", 1s)).outcome, SubmitOutcome::kDuplicate);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
}

TEST_P(StoreContract, PeerBug05_NoStaleOrLargeJobBlocksTheTimer) {
  const std::string large(harness_->largest_payload(), 'x');
  Accept(Job("large", 1s, large));
  Accept(Job("replaced", 1s));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Reschedule("replaced", Millis(i * 20)).outcome, AmendOutcome::kDone);
    Accept(Asking(Job("replaced", 1s), OnConflict::kReplace));
    const std::string id = fmt::format("cancelled{}", i);
    Accept(Job(id, 1s));
    EXPECT_EQ(Cancel(id), AmendOutcome::kDone);
  }
  Accept(Job("small", 1s));
  Pass(1s);
  EXPECT_THAT(ClaimIds(), UnorderedElementsAre("large", "replaced", "small"));
}

TEST_P(StoreContract, PeerBug06_ACancelHoldsWhileALongTimerComesCloser) {
  const Millis due = 24h * 40;
  std::vector<Millis> stages{0ms, 24h * 39, 24h * 40 - 1h, 24h * 40 - 90s, 24h * 40 - 2s, 24h * 40 - 3ms};
  for (size_t i = 0; i < stages.size(); ++i) {
    Accept(Job(fmt::format("cancel{}", i), due));
    Accept(Job(fmt::format("keep{}", i), due));
  }
  Millis passed{0};
  for (size_t i = 0; i < stages.size(); ++i) {
    Pass(stages[i] - passed);
    passed = stages[i];
    EXPECT_EQ(Cancel(fmt::format("cancel{}", i)), AmendOutcome::kDone);
    if (i % 2 == 1) harness_->Restart();
  }
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(due - passed);
  EXPECT_THAT(ClaimIds(), ElementsAre("keep0", "keep1", "keep2", "keep3", "keep4", "keep5"));
}

TEST_P(StoreContract, PeerBug07_OneRefusedJobDoesNotResendTheBatch) {
  Set([](Topic& topic) { topic.capacity_bytes = 5000; });
  const std::string large(6000, 'x');
  const std::vector<NewJob> batch{Job("a", 1s), Job("large", 1s, large), Job("b", 1s)};
  for (int tries = 0; tries < 3; ++tries) {
    const auto outcomes = SubmitAll(batch);
    const SubmitOutcome expected = tries == 0 ? SubmitOutcome::kAccepted : SubmitOutcome::kDuplicate;
    EXPECT_EQ(outcomes[0].outcome, expected);
    EXPECT_EQ(outcomes[1].outcome, SubmitOutcome::kOverCapacity);
    EXPECT_EQ(outcomes[2].outcome, expected);
  }
  Pass(1s);
  EXPECT_THAT(ClaimIds(), ElementsAre("a", "b"));
}

TEST_P(StoreContract, PeerBug07_OneFailedWriteDoesNotResendTheBatch) {
  Accept(Job("before", 1s));
  if (!harness_->FailNextSync()) GTEST_SKIP() << "this store's writes cannot be made to fail";
  // More than a store saves at once.
  std::vector<std::string> ids;
  for (int i = 0; i < 1500; ++i) ids.push_back(fmt::format("job{}", i));
  std::vector<NewJob> batch;
  for (const std::string& id : ids) batch.push_back(Job(id, 1s));
  const auto answer =
      Await<std::vector<Submitted>>([&](auto done) { store().Submit(kTopic, batch, Now(), std::move(done)); });
  // Either none was saved, or each says whether it was.
  std::vector<bool> acknowledged(batch.size());
  for (size_t i = 0; answer && i < batch.size(); ++i) {
    const SubmitOutcome outcome = (*answer)[i].outcome;
    EXPECT_TRUE(outcome == SubmitOutcome::kAccepted || outcome == SubmitOutcome::kUnavailable);
    acknowledged[i] = outcome == SubmitOutcome::kAccepted;
  }
  EXPECT_GT(std::ranges::count(acknowledged, false), 0) << "acknowledged what was not saved";
  harness_->Crash();
  EXPECT_EQ(StateOf("before"), State::kScheduled);
  const auto again = SubmitAll(batch);
  for (size_t i = 0; i < batch.size(); ++i) {
    if (acknowledged[i]) EXPECT_EQ(again[i].outcome, SubmitOutcome::kDuplicate) << ids[i];
    EXPECT_TRUE(again[i].outcome == SubmitOutcome::kAccepted || again[i].outcome == SubmitOutcome::kDuplicate);
  }
  Pass(1s);
  ids.emplace_back("before");
  EXPECT_THAT(ClaimIds(2000), UnorderedElementsAreArray(ids));
}

TEST_P(StoreContract, PeerBug08_DelaysOutliveARestart) {
  Accept(Job("relative", 10s));
  Accept(JobAt("absolute", Now().utc + 10s));
  Accept(Job("nacked"));
  EXPECT_EQ(Nack(ClaimOne().token, 10s), SettleOutcome::kOk);
  for (int i = 0; i < 4; ++i) {
    i % 2 == 0 ? harness_->Restart() : harness_->Crash();
    EXPECT_THAT(ClaimIds(), IsEmpty());
    Pass(2s);
  }
  Pass(1999ms);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(1ms);
  EXPECT_THAT(ClaimIds(), UnorderedElementsAre("relative", "absolute", "nacked"));
}

TEST_P(StoreContract, PeerBug09_TheLongestDelaysNeitherOverflowNorFire) {
  const Submitted relative = Accept(Job("relative", kDelayMax));
  const Submitted absolute = Accept(JobAt("absolute", Now().utc + kDelayMax));
  EXPECT_EQ(relative.due, Now().utc + kDelayMax);
  EXPECT_EQ(absolute.due, Now().utc + kDelayMax);
  Accept(CountJob("never", 1));
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(kDelayMax - 1ms);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(1ms);
  EXPECT_THAT(ClaimIds(), UnorderedElementsAre("relative", "absolute"));
}

TEST_P(StoreContract, PeerBug10_AShortLeaseDoesNotShortenALongDelay) {
  Set([](Topic& topic) { topic.lease = 1s; });
  Accept(Job("a", 1h));
  Accept(Job("b"));
  EXPECT_EQ(Nack(ClaimOne(1s).token, 1h), SettleOutcome::kOk);
  for (int i = 0; i < 3599; ++i) {
    Pass(1s);
    if (i % 60 == 0) EXPECT_THAT(ClaimIds(), IsEmpty());
  }
  Pass(1s);
  EXPECT_THAT(ClaimIds(), UnorderedElementsAre("a", "b"));
}

TEST_P(StoreContract, PeerBug11_LeasedJobsComeBackWhateverHappened) {
  SubmitAll({Job("a"), Job("b"), Job("c")});
  Claim(1000, 1h);
  harness_->Restart();
  LoseLeases();
  EXPECT_EQ(Claim(1000, 1h).jobs.size(), 3U);
  harness_->Crash();
  LoseLeases();
  EXPECT_EQ(Claim(1000, 1h).jobs.size(), 3U);
  Pass(24h * 30);  // nobody was there for a month
  Pass(24h);
  EXPECT_EQ(Claim().jobs.size(), 3U);
}

TEST_P(StoreContract, PeerBug12_AStalledConsumerCannotTouchTheNewOnesLease) {
  Accept(Job("a"));
  const Token stalled = ClaimOne(1s).token;
  Pass(1s);
  Pass(1h);
  const JobView current = ClaimOne(10s);
  const Token token = current.token;
  for (const SettleKind kind :
       {SettleKind::kAck, SettleKind::kNack, SettleKind::kExtend, SettleKind::kRelease, SettleKind::kBury}) {
    EXPECT_EQ(Settle({.token = stalled, .kind = kind, .lease = 24h}), SettleOutcome::kStale);
  }
  EXPECT_EQ(Find("a").lease_deadline, Now().utc + 10s);
  EXPECT_EQ(StateOf("a"), State::kLeased);
  EXPECT_EQ(Ack(token), SettleOutcome::kOk);
}

TEST_P(StoreContract, PeerBug13_AClaimRemovesNothing) {
  Accept(Job("a", 0s, "still here"));
  ClaimOne();
  EXPECT_EQ(StateOf("a"), State::kLeased);
  EXPECT_EQ(Find("a").payload, "still here");
  EXPECT_THAT(List(State::kLeased), ElementsAre("a"));
  harness_->Crash();
  LoseLeases();
  EXPECT_EQ(ClaimOne().payload, "still here");
}

TEST_P(StoreContract, PeerBug14_TenThousandLeasesMayExpireAtOnce) {
  constexpr size_t kJobs = 10'000;
  Set([](Topic& topic) { topic.backoff_base = topic.backoff_max = 0ms; });
  for (size_t sent = 0; sent < kJobs; sent += 1000) SubmitAll(std::vector<NewJob>(1000, Job({}, 1s)));
  Pass(1s);
  EXPECT_EQ(Claim(kJobs, 5s).jobs.size(), kJobs);
  Pass(5s);
  EXPECT_EQ(Figures().expired, kJobs);
  EXPECT_EQ(Claim(kJobs, 5s).jobs.size(), kJobs);
}

TEST_P(StoreContract, PeerBug15_ACountTriggerFiresOnceAcrossRestarts) {
  Accept(CountJob("a", 5));
  for (int i = 0; i < 5; ++i) {
    const std::string event = fmt::format("e{}", i);
    EXPECT_EQ(Count("a", event).outcome, i < 4 ? CountOutcome::kCounted : CountOutcome::kFired);
    i % 2 == 0 ? harness_->Restart() : harness_->Crash();
    const CountOutcome repeated = Count("a", event).outcome;
    EXPECT_EQ(repeated, i < 4 ? CountOutcome::kRepeated : CountOutcome::kNotCounted);
  }
  const JobBatch batch = Claim();
  ASSERT_EQ(batch.jobs.size(), 1U);
  EXPECT_EQ(Ack(batch.jobs[0].token), SettleOutcome::kOk);
  EXPECT_EQ(Count("a", "more").outcome, CountOutcome::kUnknown);
  EXPECT_THAT(Drain(3, 1h), IsEmpty());
}

}  // namespace
}  // namespace tocsin
