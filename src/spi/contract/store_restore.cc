// Contract of Store: copies of jobs, which bring their past along.
#include "spi/contract/store_contract.h"

namespace tocsin {

using namespace std::chrono_literals;

namespace {

NewJob Copy(NewJob job, const Restored& past) {
  job.restored = std::make_shared<Restored>(past);
  return job;
}

TEST_P(StoreContract, ACopyOfADeadLetterIsOne) {
  const Time now = Now().utc;
  const Restored past{.dead = true,
                      .attempts = 16,
                      .reason = "no\xFF",
                      .created = now - 72h,
                      .last_attempt = now - 24h,
                      .died = now - 23h};
  NewJob job = Keyed(JobAt("a", now - 25h), "key");
  job.headers = {{"name", "value"}};
  job.max_attempts = 16;
  Accept(Copy(job, past));
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    if (restarted) harness_->Restart();
    EXPECT_TRUE(ClaimIds().empty());
    const JobView dead = Find("a", "key");
    EXPECT_EQ(dead.state, State::kDead);
    EXPECT_EQ(dead.attempt, 16U);
    EXPECT_EQ(dead.reason, past.reason);
    EXPECT_EQ(dead.due, job.due);
    EXPECT_EQ(dead.created, past.created);
    ExpectNear(dead.last_attempt, past.last_attempt);
    ExpectNear(dead.died, past.died);
    ASSERT_EQ(dead.headers.size(), 1U);
    EXPECT_EQ(dead.headers[0].value, "value");
    EXPECT_EQ(dead.payload, "payload");
    const TopicFigures figures = Figures();
    EXPECT_EQ(restarted || harness_->keeps_leases() ? 1U : figures.accepted, 1U);
    EXPECT_EQ(figures.dead, 1U);
    EXPECT_EQ(figures.died, 0U) << "it did not die here";
  }
  EXPECT_EQ(Change("a", AmendKind::kRedrive, "key"), AmendOutcome::kDone);
  const JobView again = ClaimOne();
  EXPECT_EQ(again.attempt, 1U);
  EXPECT_EQ(again.created, past.created);
  EXPECT_EQ(Ack(again.token), SettleOutcome::kOk);
}

TEST_P(StoreContract, ACopyOfAJobThatFailedGoesOn) {
  const Time now = Now().utc;
  NewJob job = JobAt("a", now + 1h);
  job.max_attempts = 3;
  Accept(Copy(job, {.attempts = 1, .reason = "first", .created = now - 2h, .last_attempt = now - 1h}));
  harness_->Restart();
  EXPECT_TRUE(ClaimIds().empty());
  JobView copy = Find("a");
  EXPECT_EQ(copy.state, State::kScheduled);
  EXPECT_EQ(copy.attempt, 1U);
  EXPECT_EQ(copy.reason, "first");
  EXPECT_EQ(copy.due, job.due);
  EXPECT_EQ(copy.created, now - 2h);
  ExpectNear(copy.last_attempt, now - 1h);
  Pass(1h);
  copy = ClaimOne();
  EXPECT_EQ(copy.attempt, 2U);
  EXPECT_EQ(Nack(copy.token, 0ms, "second"), SettleOutcome::kOk);
  EXPECT_EQ(NewPayload("a", "another"), AmendOutcome::kDone);
  copy = ClaimOne();
  EXPECT_EQ(copy.attempt, 3U);
  EXPECT_EQ(copy.payload, "another");
  EXPECT_EQ(Nack(copy.token, 0ms, "third"), SettleOutcome::kDead) << "the attempts used up elsewhere count";
  EXPECT_EQ(Figures().died, 1U);
  harness_->Restart();
  EXPECT_EQ(Find("a").reason, "third");
  EXPECT_EQ(Find("a").created, now - 2h);
}

TEST_P(StoreContract, ACopyIsDueWhenTheJobWas) {
  const Time now = Now().utc;
  Accept(Copy(JobAt("later", now - 1min), {}));
  Accept(Copy(JobAt("first", now - 240h), {}));
  Accept(JobAt("now", now - 1h));
  EXPECT_EQ(Find("first").due, now - 240h);
  EXPECT_EQ(ClaimIds(), (std::vector<std::string>{"first", "later", "now"}));
}

TEST_P(StoreContract, ACopyWithoutTimesWasCreatedAndDiedNow) {
  const Time now = Now().utc;
  Accept(Copy(Job("a"), {.dead = true}));
  Accept(Copy(Job({}, 5s), {.created = now - 1h}));
  const JobView dead = Find("a");
  ExpectNear(dead.created, now);
  ExpectNear(dead.died, now);
  EXPECT_EQ(dead.last_attempt, Time{});
  EXPECT_EQ(dead.attempt, 0U);
  EXPECT_EQ(Select({.states = StateSet::Of(State::kScheduled)}).size(), 1U);
  Pass(5s);
  EXPECT_EQ(ClaimOne().created, now - 1h) << "also without an id of its own, and with a delay";
}

TEST_P(StoreContract, ACopyOfTheSameJobIsADuplicate) {
  const Time now = Now().utc;
  const NewJob job = JobAt("a", now + 1h);
  const Restored past{.dead = true, .attempts = 2, .reason = "why", .created = now - 2h, .died = now - 1h};
  const Submitted accepted = Accept(Copy(job, past));
  Restored other = past;
  other.created += 1ms;
  other.died -= 1ms;
  const Submitted again = Submit(Copy(job, other));
  EXPECT_EQ(again.outcome, SubmitOutcome::kDuplicate) << "a time may be shown a millisecond off";
  EXPECT_EQ(again.uid, accepted.uid);
  for (const int change : {0, 1, 2}) {
    other = past;
    if (change == 0) other.dead = false;
    if (change == 1) other.attempts = 3;
    if (change == 2) other.reason = "another";
    EXPECT_EQ(Submit(Copy(job, other)).outcome, SubmitOutcome::kConflict) << change;
  }
  EXPECT_EQ(Submit(job).outcome, SubmitOutcome::kConflict);
  Accept(Job("new", 1h));
  EXPECT_EQ(Submit(Copy(Job("new", 1h), {.created = now - 2h})).outcome, SubmitOutcome::kDuplicate) << "it has no past";
}

TEST_P(StoreContract, ACopyReplacesAJob) {
  const Time created = Now().utc - 2h;
  Accept(Job("a"));
  Accept(Asking(Copy(Job("a"), {.dead = true, .attempts = 1, .created = created}), OnConflict::kReplace));
  EXPECT_TRUE(ClaimIds().empty());
  harness_->Restart();
  EXPECT_EQ(Find("a").state, State::kDead);
  EXPECT_EQ(Find("a").created, created);
  Accept(Asking(Job("a"), OnConflict::kReplace));
  EXPECT_EQ(Find("a").attempt, 0U);
  ExpectNear(Find("a").created, Now().utc);
  EXPECT_EQ(TakeIds(), std::vector<std::string>{"a"});
}

TEST_P(StoreContract, CopiesAndNewJobsInOneCall) {
  const Time created = Now().utc - 2h;
  const auto outcomes = SubmitAll({Job("new"), Copy(Job("dead"), {.dead = true, .attempts = 1, .reason = "why"}),
                                   CountJob("count", 2), Copy(CountJob("copy", 1), {.created = created}),
                                   Copy(Job("tried", 1h), {.attempts = 1, .reason = "tail\xFF"}), Job()});
  for (const Submitted& each : outcomes) EXPECT_EQ(each.outcome, SubmitOutcome::kAccepted);
  EXPECT_EQ(List(State::kDead), std::multiset<std::string>{"dead"});
  EXPECT_EQ(Find("tried").reason, "tail\xFF");
  EXPECT_EQ(Find("copy").count_left, 1U);
  EXPECT_EQ(Count("copy", "event").outcome, CountOutcome::kFired);
  EXPECT_EQ(ClaimIds().size(), 3U);
}

TEST_P(StoreContract, CopiesAreFoundByTheTimesThatTheyBring) {
  const Time now = Now().utc;
  Accept(Job("new", 1h));
  Accept(Copy(Job("old", 1h), {.created = now - 48h}));
  Accept(Copy(Job("dead"), {.dead = true, .created = now - 24h, .died = now - 1h}));
  const auto created = [&](Millis from, Millis to) {
    return Select({.created = {.from = now + from, .to = now + to}});
  };
  EXPECT_EQ(created(-49h, -47h), std::multiset<std::string>{"old"});
  EXPECT_EQ(created(-25h, -23h), std::multiset<std::string>{"dead"});
  EXPECT_EQ(created(-1h, 1h), std::multiset<std::string>{"new"});
  EXPECT_EQ(Select({.died = {.from = now - 2h, .to = now - 30min}}), std::multiset<std::string>{"dead"});
}

TEST_P(StoreContract, ACopyNeedsRoomLikeAnyJob) {
  Set([](Topic& topic) { topic.capacity_jobs = 2; });
  Accept(Copy(Job("a"), {.dead = true}));
  Accept(Copy(Job("b"), {.dead = true}));
  EXPECT_EQ(Submit(Copy(Job("c"), {.dead = true})).outcome, SubmitOutcome::kOverCapacity);
  EXPECT_EQ(Sweep(SweepKind::kPurgeDead), 2U);
  Accept(Copy(Job("c"), {}));
}

}  // namespace
}  // namespace tocsin
