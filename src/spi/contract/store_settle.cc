// Contract of Store: claim, settle, leases and retries.
#include "spi/contract/store_contract.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(StoreContract, ClaimTakesEachReadyJobOnceInOrder) {
  SubmitAll({Job("c", 3ms), Job("a", 1ms), Job("b1", 2ms), Job("b2", 2ms), Job("later", 4ms)});
  clock().Advance(3ms);
  EXPECT_THAT(ClaimIds(2), ElementsAre("a", "b1"));
  EXPECT_THAT(ClaimIds(5), ElementsAre("b2", "c"));
  EXPECT_THAT(ClaimIds(5), IsEmpty());
  EXPECT_EQ(Figures().leased, 4U);
  EXPECT_EQ(Figures().delivered, 4U);
}

TEST_P(StoreContract, ClaimOfNoneTakesNone) {
  Accept(Job("a"));
  EXPECT_THAT(ClaimIds(0), IsEmpty());
  EXPECT_EQ(StateOf("a"), State::kScheduled);
}

TEST_P(StoreContract, ClaimOfAPausedTopicIsEmptyUntilItGoesOn) {
  Accept(Job("a"));
  Set([](Topic& topic) { topic.paused = true; });
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Accept(Job("b"));
  EXPECT_EQ(Cancel("b"), AmendOutcome::kDone) << "everything else works";
  Set([](Topic& topic) { topic.paused = false; });
  Scan();
  EXPECT_THAT(found_.ready, testing::Contains(kTopic)) << "and consumers that wait are told";
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
}

TEST_P(StoreContract, ClaimSeesOneTopicAlone) {
  Put(DefaultTopic("other"));
  Accept(Job("a"));
  Accept(Job("a", 0s, "the other's"), "other");
  const JobBatch batch = Claim(10, 30s, "other");
  ASSERT_EQ(batch.jobs.size(), 1U);
  EXPECT_EQ(batch.jobs[0].payload, "the other's");
  EXPECT_EQ(Settle({.token = batch.jobs[0].token}), SettleOutcome::kStale) << "a token is good in its topic alone";
  EXPECT_EQ(Settle({.token = batch.jobs[0].token}, "other"), SettleOutcome::kOk);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
}

TEST_P(StoreContract, AckEndsTheJob) {
  Accept(Job("a"));
  const Token token = ClaimOne().token;
  EXPECT_EQ(Ack(token), SettleOutcome::kOk);
  EXPECT_EQ(Ack(token), SettleOutcome::kStale);
  EXPECT_EQ(Find("a").uid, 0U) << "without retention it is gone at once";
  Pass(24h);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  EXPECT_EQ(Figures().acked, 1U);
  Accept(Job("a"));
}

TEST_P(StoreContract, NackWithADelay) {
  Accept(Job("a"));
  EXPECT_EQ(Nack(ClaimOne().token, 5s, "try later"), SettleOutcome::kOk);
  const JobView view = Find("a");
  EXPECT_EQ(view.state, State::kScheduled);
  EXPECT_EQ(view.attempt, 1U);
  EXPECT_EQ(view.reason, "try later");
  EXPECT_EQ(view.due, Now().utc + 5s);
  Pass(4999ms);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(1ms);
  const JobView again = ClaimOne();
  EXPECT_EQ(again.attempt, 2U);
  EXPECT_EQ(again.reason, "try later");
  EXPECT_EQ(Nack(again.token, 0ms), SettleOutcome::kOk);
  EXPECT_EQ(ClaimOne().attempt, 3U) << "a delay of 0 is now";
}

TEST_P(StoreContract, TheJobThatFailedMostOftenIsNamed) {
  Set([](Topic& topic) { topic.lease = 10s; });
  EXPECT_EQ(Figures().worst.Worst().attempts, 0U);
  const Uid often = Accept(Job("often")).uid;
  for (int i = 0; i < 3; ++i) Nack(ClaimOne().token, 0ms);
  const Uid once = Accept(Job("once", 1s)).uid;
  const Token token = ClaimOne().token;
  Nack(token, 60s);
  FailedJob worst = Figures().worst.Worst();
  EXPECT_EQ(worst.uid, often);
  EXPECT_EQ(worst.attempts, 4U);
  EXPECT_EQ(worst.until - worst.at, 70s) << "its rest, and a lease";
  Pass(1s);
  Nack(ClaimOne().token, 1s);
  EXPECT_EQ(Figures().worst.Worst().uid, often) << "the other one has failed once";
  Pass(70s);
  const JobBatch claimed = Claim();
  for (const JobView& job : claimed.jobs) {
    if (job.uid == once) Nack(job.token, 1s);
  }
  worst = Figures().worst.Worst();
  EXPECT_EQ(worst.uid, once) << "nothing was heard of the first one for so long that it does not count any more";
  EXPECT_EQ(worst.attempts, 2U);
}

TEST_P(StoreContract, AJobThatDiesHidesNoneThatGoesOnFailing) {
  const Uid fails = Accept(Job("fails")).uid;
  for (int i = 0; i < 2; ++i) Nack(ClaimOne().token, 0ms);
  Nack(ClaimOne().token, 60s);
  NewJob job = Job("dies");
  job.max_attempts = 5;
  const Uid dies = Accept(job).uid;
  for (int i = 0; i < 4; ++i) Nack(ClaimOne().token, 0ms);
  EXPECT_EQ(Figures().worst.Worst().uid, dies);
  EXPECT_EQ(Nack(ClaimOne().token, 0ms), SettleOutcome::kDead);
  EXPECT_EQ(Figures().worst.dead.uid, dies);
  EXPECT_EQ(Figures().worst.dead.attempts, 5U);
  EXPECT_EQ(Figures().worst.Worst().uid, fails);
  EXPECT_EQ(Figures().worst.Worst().attempts, 3U);
}

TEST_P(StoreContract, ABoundedNumberOfJobsThatFailIsNamed) {
  for (size_t i = 0; i < 2 * WorstJobs::kMost; ++i) {
    Accept(Job(std::to_string(i)));
    Nack(ClaimOne().token, 60s);
  }
  EXPECT_EQ(Figures().worst.live.size(), WorstJobs::kMost);
}

TEST_P(StoreContract, AJobThatEndsIsNamedNoMore) {
  const auto fail = [&] {
    const Uid uid = Accept(Asking(Job("a"), OnConflict::kReplace)).uid;
    EXPECT_EQ(Figures().worst.Worst().attempts, 0U);
    Nack(ClaimOne().token, 0ms);
    EXPECT_EQ(Figures().worst.Worst().uid, uid);
  };
  fail();
  Ack(ClaimOne().token);
  EXPECT_EQ(Figures().worst.Worst().attempts, 0U) << "acked";
  fail();
  Cancel("a");
  EXPECT_EQ(Figures().worst.Worst().attempts, 0U) << "cancelled";
  fail();
  Sweep(SweepKind::kPurge);
  EXPECT_EQ(Figures().worst.Worst().attempts, 0U) << "purged";
  fail();
  Accept(Asking(Job("a"), OnConflict::kReplace));
  EXPECT_EQ(Figures().worst.Worst().attempts, 0U) << "replaced";
}

TEST_P(StoreContract, ADeadLetterThatIsGoneOrRedrivenIsNamedNoMore) {
  const auto die = [&] {
    const Uid uid = Accept(Asking(Job("a"), OnConflict::kReplace)).uid;
    EXPECT_EQ(Figures().worst.dead.attempts, 0U);
    Bury(ClaimOne().token);
    EXPECT_EQ(Figures().worst.dead.uid, uid);
    EXPECT_EQ(Figures().worst.Worst().attempts, 0U);
  };
  die();
  Change("a", AmendKind::kRedrive);
  EXPECT_EQ(Figures().worst.dead.attempts, 0U) << "redriven";
  die();
  Change("a", AmendKind::kRemove);
  EXPECT_EQ(Figures().worst.dead.attempts, 0U) << "removed";
  die();
  Sweep(SweepKind::kRedrive);
  EXPECT_EQ(Figures().worst.dead.attempts, 0U) << "redriven with all others";
  die();
  Sweep(SweepKind::kPurgeDead);
  EXPECT_EQ(Figures().worst.dead.attempts, 0U) << "purged";
}

TEST_P(StoreContract, ALeaseThatRanOutCountsAsAFailure) {
  Set([](Topic& topic) { topic.lease = 10s; });
  const Uid uid = Accept(Job("a")).uid;
  ClaimOne(10s);
  Pass(11s);
  EXPECT_EQ(Figures().worst.Worst().uid, uid);
  EXPECT_EQ(Figures().worst.Worst().attempts, 1U);
}

TEST_P(StoreContract, NackWithoutADelayBacksOff) {
  const Uid uid = Accept(Job("a")).uid;
  const Topic topic = Figures().topic;
  for (uint32_t attempt = 1; attempt <= 5; ++attempt) {
    const JobView job = ClaimOne();
    EXPECT_EQ(job.attempt, attempt);
    EXPECT_EQ(Nack(job.token), SettleOutcome::kOk);
    const Millis rest = BackOff(topic, attempt, uid);
    EXPECT_EQ(Find("a").due, Now().utc + rest);
    Pass(rest - 1ms);
    EXPECT_THAT(ClaimIds(), IsEmpty());
    Pass(1ms);
  }
  EXPECT_EQ(Figures().nacked, 5U);
}

TEST_P(StoreContract, NackOfTheLastAttemptMakesADeadLetter) {
  NewJob job = Job("a");
  job.max_attempts = 2;
  Accept(job);
  EXPECT_EQ(Nack(ClaimOne().token, 0ms, "first"), SettleOutcome::kOk);
  EXPECT_EQ(Nack(ClaimOne().token, 0ms, "second"), SettleOutcome::kDead);
  const JobView dead = Find("a");
  EXPECT_EQ(dead.state, State::kDead);
  EXPECT_EQ(dead.reason, "second");
  EXPECT_EQ(dead.attempt, 2U);
  EXPECT_EQ(dead.payload, "payload");
  Pass(24h);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  EXPECT_EQ(Figures().died, 1U);
  EXPECT_EQ(Figures().dead, 1U);
}

TEST_P(StoreContract, BuryMakesADeadLetterWhateverAttemptsAreLeft) {
  Accept(Job("a"));
  EXPECT_EQ(Nack(ClaimOne().token, 0ms, "first"), SettleOutcome::kOk);
  const Token token = ClaimOne().token;
  EXPECT_EQ(Bury(token, "unwanted"), SettleOutcome::kDead);
  EXPECT_EQ(Bury(token, "again"), SettleOutcome::kStale);
  const JobView dead = Find("a");
  EXPECT_EQ(dead.state, State::kDead);
  EXPECT_EQ(dead.reason, "unwanted");
  EXPECT_EQ(dead.attempt, 2U);
  EXPECT_EQ(dead.payload, "payload");
  EXPECT_THAT(List(State::kDead), ElementsAre("a"));
  Pass(24h);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  EXPECT_EQ(Figures().died, 1U);
  EXPECT_EQ(Figures().nacked, 2U) << "a bury is a nack too";
  EXPECT_EQ(Figures().dead, 1U);
}

TEST_P(StoreContract, BuriedJobsStayDeadAfterARestartUntilTheyAreRedriven) {
  Accept(Job("a"));
  EXPECT_EQ(Bury(ClaimOne().token, "unwanted"), SettleOutcome::kDead) << "at its first attempt";
  harness_->Restart();
  EXPECT_EQ(Find("a").reason, "unwanted");
  EXPECT_EQ(StateOf("a"), State::kDead);
  EXPECT_EQ(Find("a").attempt, 1U);
  EXPECT_EQ(Sweep(SweepKind::kRedrive), 1U);
  const JobView again = ClaimOne();
  EXPECT_EQ(again.own_id, "a");
  EXPECT_EQ(again.attempt, 1U) << "with all its attempts";
  EXPECT_EQ(Bury(again.token), SettleOutcome::kDead) << "a reason is not needed";
  EXPECT_EQ(Find("a").reason, "");
}

TEST_P(StoreContract, ExtendMovesTheDeadline) {
  Accept(Job("a"));
  const Token token = ClaimOne(10s).token;
  Pass(9s);
  EXPECT_EQ(Extend(token, 10s), SettleOutcome::kOk);
  Pass(9s);
  EXPECT_EQ(StateOf("a"), State::kLeased);
  EXPECT_EQ(Find("a").lease_deadline, Now().utc + 1s);
  EXPECT_EQ(Extend(token, 2s), SettleOutcome::kOk) << "also to an earlier moment";
  EXPECT_EQ(Extend(token, 0s), SettleOutcome::kOk);
  EXPECT_EQ(Find("a").lease_deadline, Now().utc + Figures().topic.lease) << "0: the topic's";
  EXPECT_EQ(Extend(token, 1s), SettleOutcome::kOk);
  Pass(1s);
  EXPECT_EQ(StateOf("a"), State::kScheduled);
  EXPECT_EQ(Extend(token, 10s), SettleOutcome::kStale);
}

TEST_P(StoreContract, ReleaseUndoesTheDelivery) {
  const Submitted first = Accept(Job("a"));
  Accept(Job("b"));
  clock().Advance(1s);
  const JobView job = ClaimOne();
  EXPECT_EQ(job.own_id, "a");
  EXPECT_EQ(Release(job.token), SettleOutcome::kOk);
  EXPECT_EQ(Release(job.token), SettleOutcome::kStale);
  EXPECT_EQ(Find("a").due, first.due);
  EXPECT_EQ(Find("a").attempt, 0U);
  EXPECT_EQ(Find("a").state, State::kScheduled);
  const JobBatch again = Claim();
  ASSERT_EQ(again.jobs.size(), 2U);
  EXPECT_EQ(again.jobs[0].own_id, "a") << "in its old place";
  EXPECT_EQ(again.jobs[0].attempt, 1U);
}

TEST_P(StoreContract, ReleaseOfTheLastAttemptIsNoDeadLetter) {
  NewJob job = Job("a");
  job.max_attempts = 1;
  Accept(job);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Release(ClaimOne().token), SettleOutcome::kOk);
  EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
}

TEST_P(StoreContract, AReleaseMayAskForADelay) {
  NewJob job = Job("a");
  job.max_attempts = 1;
  Accept(job);
  for (int i = 0; i < 3; ++i) {
    const Token token = ClaimOne().token;
    EXPECT_EQ(Settle({.token = token, .kind = SettleKind::kRelease, .delay = Millis(5'000)}), SettleOutcome::kOk);
    EXPECT_EQ(Ack(token), SettleOutcome::kStale);
    EXPECT_EQ(Find("a").attempt, 0U);
    Pass(Millis(4'999));
    EXPECT_EQ(Claim().jobs.size(), 0U) << "it rests";
    Pass(Millis(1));
  }
  const JobView last = ClaimOne();
  EXPECT_EQ(last.attempt, 1U);
  EXPECT_EQ(Ack(last.token), SettleOutcome::kOk);
}

TEST_P(StoreContract, SettleAnswersEachTokenOfABatch) {
  SubmitAll({Job("a"), Job("b"), Job("c")});
  const JobBatch batch = Claim();
  ASSERT_EQ(batch.jobs.size(), 3U);
  Token wrong = batch.jobs[1].token;
  ++wrong.fence;
  Token nowhere = batch.jobs[1].token;
  nowhere.handle = UINT64_MAX;
  const std::vector<Settlement> settlements{{.token = batch.jobs[0].token},
                                            {.token = wrong},
                                            {.token = nowhere},
                                            {.token = Token{}},
                                            {.token = batch.jobs[2].token, .kind = SettleKind::kNack},
                                            {.token = batch.jobs[0].token}};
  const auto outcomes = Await<std::vector<SettleOutcome>>(
      [&](auto done) { store().Settle(kTopic, settlements, Now(), std::move(done)); });
  ASSERT_TRUE(outcomes);
  EXPECT_THAT(*outcomes, ElementsAre(SettleOutcome::kOk, SettleOutcome::kStale, SettleOutcome::kStale,
                                     SettleOutcome::kStale, SettleOutcome::kOk, SettleOutcome::kStale));
  EXPECT_EQ(StateOf("b"), State::kLeased);
}

TEST_P(StoreContract, AnExpiredLeaseUsesAnAttemptAndBacksOff) {
  const Uid uid = Accept(Job("a")).uid;
  const Token token = ClaimOne(10s).token;
  Pass(9999ms);
  EXPECT_EQ(StateOf("a"), State::kLeased);
  Pass(1ms);
  const JobView view = Find("a");
  EXPECT_EQ(view.state, State::kScheduled);
  EXPECT_EQ(view.attempt, 1U);
  EXPECT_EQ(view.reason, "lease expired");
  const Millis rest = BackOff(Figures().topic, 1, uid);
  EXPECT_EQ(view.due, Now().utc + rest);
  EXPECT_EQ(Ack(token), SettleOutcome::kStale);
  Pass(rest);
  EXPECT_EQ(ClaimOne().attempt, 2U);
  EXPECT_EQ(Figures().expired, 1U);
}

TEST_P(StoreContract, AnExpiredLastLeaseMakesADeadLetter) {
  Set([](Topic& topic) {
    topic.max_attempts = 3;
    topic.backoff_base = topic.backoff_max = 0ms;
  });
  Accept(Job("a"));
  for (uint32_t attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_EQ(ClaimOne(1s).attempt, attempt);
    Pass(1s);
  }
  EXPECT_EQ(StateOf("a"), State::kDead);
  EXPECT_EQ(Find("a").reason, "lease expired");
  EXPECT_EQ(Figures().expired, 3U);
  EXPECT_EQ(Figures().died, 1U);
}

TEST_P(StoreContract, AClaimStaysWithinItsRoom) {
  const std::string payload(10'000, 'x');
  const std::vector<std::string> ids{"a", "b", "c", "d"};
  for (const std::string& id : ids) Accept(Keyed(Job(id, 0s, payload), "k"));
  std::vector<std::string> claimed;
  while (claimed.size() < ids.size()) {
    LimitedRoom room(35'000);
    const JobBatch batch = Claim(1000, 30s, kTopic, &room);
    ASSERT_FALSE(batch.jobs.empty());
    EXPECT_LE(batch.jobs.size(), 3U);
    EXPECT_GE(room.bytes(), batch.jobs.size() * payload.size());
    EXPECT_FALSE(batch.no_room);
    for (const JobView& job : batch.jobs) {
      claimed.push_back(job.Id());
      EXPECT_EQ(job.attempt, 1U);
    }
    EXPECT_TRUE(batch.more || claimed.size() == ids.size());
  }
  EXPECT_EQ(claimed, ids);
}

TEST_P(StoreContract, ReasonsNeedRoomInAClaimToo) {
  constexpr size_t kJobs = 60;
  std::vector<NewJob> jobs;
  for (size_t i = 0; i < kJobs; ++i) jobs.push_back(Keyed(Job(), "k"));
  SubmitAll(jobs);
  const std::string reason(kReasonBytesMax, 'r');
  const JobBatch failed = Claim();
  ASSERT_EQ(failed.jobs.size(), kJobs);
  for (const JobView& job : failed.jobs) ASSERT_EQ(Nack(job.token, 0s, reason), SettleOutcome::kOk);
  size_t claimed = 0;
  while (claimed < kJobs) {
    LimitedRoom room(35'000);
    const JobBatch batch = Claim(1000, 30s, kTopic, &room);
    ASSERT_FALSE(batch.jobs.empty());
    size_t bytes = 0;
    for (const JobView& job : batch.jobs) bytes += job.payload.size() + job.reason.size();
    EXPECT_GE(bytes, batch.jobs.size() * reason.size());
    EXPECT_LE(bytes, room.bytes());
    claimed += batch.jobs.size();
  }
  EXPECT_EQ(claimed, kJobs);
}

TEST_P(StoreContract, AClaimWithoutRoomForTheFirstJobClaimsNothing) {
  const std::string payload(10'000, 'x');
  Accept(Job("a", 0s, payload));
  for (int i = 0; i < 3; ++i) {
    LimitedRoom room(5'000);
    const JobBatch batch = Claim(1000, 30s, kTopic, &room);
    EXPECT_THAT(batch.jobs, IsEmpty());
    EXPECT_TRUE(batch.no_room);
    EXPECT_EQ(room.bytes(), 0U);
    EXPECT_EQ(Find("a").state, State::kScheduled);
  }
  EXPECT_EQ(Figures().delivered, 0U);
  LimitedRoom room(35'000);
  EXPECT_EQ(Claim(1, 30s, kTopic, &room).jobs.at(0).attempt, 1U);
  EXPECT_FALSE(Claim(1, 30s, kTopic, &room).no_room) << "none is ready";
}

}  // namespace
}  // namespace tocsin
