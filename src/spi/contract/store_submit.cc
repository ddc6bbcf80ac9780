// Contract of Store: submit.
#include "spi/contract/store_contract.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(StoreContract, SubmitKeepsAllThatWasAskedFor) {
  NewJob asked = Keyed(Job("own", 5s, "bytes\0with\n"), "key");
  asked.payload = std::string_view("bytes\0with\n", 11);
  asked.headers = {{"a", "1"}, {"empty", ""}, {"a", "2"}};
  asked.max_attempts = 3;
  const Submitted submitted = Accept(asked);
  EXPECT_EQ(submitted.due, Now().utc + 5s);
  Pass(5s);
  const JobView job = ClaimOne(10s);
  EXPECT_EQ(job.uid, submitted.uid);
  EXPECT_EQ(job.own_id, "own");
  EXPECT_EQ(job.Id(), "own");
  EXPECT_EQ(job.key, "key");
  EXPECT_EQ(job.payload, asked.payload);
  ASSERT_EQ(job.headers.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(job.headers[i].name, asked.headers[i].name);
    EXPECT_EQ(job.headers[i].value, asked.headers[i].value);
  }
  EXPECT_EQ(job.state, State::kLeased);
  EXPECT_EQ(job.due, submitted.due);
  EXPECT_EQ(job.attempt, 1U);
  EXPECT_EQ(job.max_attempts, 3U);
  EXPECT_EQ(job.lease_deadline, Now().utc + 10s);
}

TEST_P(StoreContract, SubmitWithoutAnIdGivesADifferentOneEachTime) {
  const Submitted one = Accept(Job());
  const Submitted two = Accept(Job());
  EXPECT_NE(one.uid, two.uid);
  const JobView job = Find(UidText(two.uid));
  EXPECT_EQ(job.uid, two.uid);
  EXPECT_EQ(job.own_id, "");
  EXPECT_EQ(job.Id(), UidText(two.uid));
  EXPECT_EQ(job.max_attempts, Figures().topic.max_attempts);
  EXPECT_EQ(Find(UidText(two.uid), "any key").uid, two.uid) << "a server id needs no key";
}

TEST_P(StoreContract, SubmitCarriesTheSlotInTheId) {
  Topic topic = DefaultTopic("slots");
  topic.slots = 1024;
  Put(topic);
  NewJob job = Job();
  job.slot = 1023;
  EXPECT_EQ(SlotOf(Accept(job, "slots").uid), 1023U);
}

TEST_P(StoreContract, SubmitWithAnAbsoluteDue) {
  const Time due = Now().utc + 5s;
  EXPECT_EQ(Accept(JobAt("a", due)).due, due);
  Pass(4999ms);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(1ms);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
}

TEST_P(StoreContract, SubmitWithAPastAbsoluteDueCountsAsNow) {
  Accept(Job("earlier"));
  Pass(1ms);
  EXPECT_EQ(Accept(JobAt("past", Now().utc - 1h)).due, Now().utc);
  EXPECT_EQ(Accept(JobAt("epoch", FromMs(0))).due, Now().utc);
  EXPECT_THAT(ClaimIds(), ElementsAre("earlier", "past", "epoch"));
}

TEST_P(StoreContract, SubmitOfNothingAnswersNothing) { EXPECT_THAT(SubmitAll({}), IsEmpty()); }

TEST_P(StoreContract, SubmitOfTheSameContentIsADuplicate) {
  const Submitted first = Accept(Job("a", 5s));
  clock().Advance(1s);
  const Submitted again = Submit(Job("a", 5s));
  EXPECT_EQ(again.outcome, SubmitOutcome::kDuplicate);
  EXPECT_EQ(again.uid, first.uid);
  EXPECT_EQ(again.due, first.due) << "the timer of the first one runs";
  EXPECT_EQ(Figures().accepted, 1U);
}

TEST_P(StoreContract, SubmitOfOtherContentIsAConflictAndChangesNothing) {
  const Submitted first = Accept(Job("a", 5s, "one"));
  for (const NewJob& other : {Job("a", 5s, "two"), Job("a", 6s, "one"), CountJob("a", 1), JobAt("a", Now().utc + 5s)}) {
    const Submitted refused = Submit(other);
    EXPECT_EQ(refused.outcome, SubmitOutcome::kConflict);
    EXPECT_EQ(refused.uid, first.uid);
  }
  EXPECT_EQ(Find("a").payload, "one");
  EXPECT_EQ(Find("a").due, first.due);
}

TEST_P(StoreContract, SubmitDuplicatesWithinOneBatch) {
  const auto outcomes = SubmitAll({Job("a"), Job("b"), Job("a"), Job("a", 1s)});
  EXPECT_EQ(outcomes[0].outcome, SubmitOutcome::kAccepted);
  EXPECT_EQ(outcomes[1].outcome, SubmitOutcome::kAccepted);
  EXPECT_EQ(outcomes[2].outcome, SubmitOutcome::kDuplicate);
  EXPECT_EQ(outcomes[2].uid, outcomes[0].uid);
  EXPECT_EQ(outcomes[3].outcome, SubmitOutcome::kConflict);
  EXPECT_THAT(ClaimIds(), ElementsAre("a", "b"));
}

TEST_P(StoreContract, SubmitOfOneIdUnderTwoKeysMakesTwoJobs) {
  const Submitted one = Accept(Keyed(Job("a", 0s, "one"), "k1"));
  const Submitted two = Accept(Keyed(Job("a", 0s, "two"), "k2"));
  const Submitted none = Accept(Job("a", 0s, "none"));
  EXPECT_EQ(Find("a", "k1").uid, one.uid);
  EXPECT_EQ(Find("a", "k2").uid, two.uid);
  EXPECT_EQ(Find("a").uid, none.uid);
  EXPECT_EQ(Find("a", "k3").uid, 0U);
  EXPECT_EQ(Cancel("a", "k2"), AmendOutcome::kDone);
  EXPECT_EQ(Find("a", "k1").payload, "one");
}

TEST_P(StoreContract, SubmitOfAServerIdMeansThatJob) {
  const Submitted first = Accept(Job({}, 5s));
  const std::string id = UidText(first.uid);
  const Submitted other = Submit(Job(id, 6s));
  EXPECT_EQ(other.outcome, SubmitOutcome::kConflict);
  EXPECT_EQ(other.uid, first.uid);
  const Submitted kept = Submit(Asking(Job(id, 6s), OnConflict::kKeep));
  EXPECT_EQ(kept.outcome, SubmitOutcome::kDuplicate);
  EXPECT_EQ(kept.uid, first.uid);
  EXPECT_EQ(List(State::kScheduled).size(), 1U);
}

TEST_P(StoreContract, SubmitAcceptsAnOwnIdInTheFormOfAServerId) {
  const std::string id = UidText(12345);
  const Submitted first = Accept(Job(id));
  EXPECT_EQ(Find(id).uid, first.uid);
  EXPECT_EQ(Submit(Job(id)).outcome, SubmitOutcome::kDuplicate);
  EXPECT_EQ(ClaimOne().Id(), id);
}

TEST_P(StoreContract, ReplacePutsANewJobInTheOldOnesPlace) {
  const Submitted old = Accept(Job("a", 5s, "old"));
  clock().Advance(1s);
  const Submitted replaced = Accept(Asking(Job("a", 5s, "new"), OnConflict::kReplace));
  EXPECT_GT(replaced.uid, old.uid);
  EXPECT_EQ(replaced.due, Now().utc + 5s);
  EXPECT_EQ(Find(UidText(old.uid)).uid, 0U);
  Pass(4999ms);
  EXPECT_THAT(ClaimIds(), IsEmpty()) << "the old one's timer is gone";
  Pass(1ms);
  const JobView job = ClaimOne();
  EXPECT_EQ(job.payload, "new");
  EXPECT_EQ(job.uid, replaced.uid);
  Pass(1h);
  EXPECT_EQ(Figures().accepted, 2U);
  EXPECT_EQ(Figures().cancelled, 1U);
}

TEST_P(StoreContract, ReplaceWithTheSameContentStartsTheTimerAnew) {
  Accept(Job("a", 5s));
  clock().Advance(3s);
  Accept(Asking(Job("a", 5s), OnConflict::kReplace));
  Pass(3s);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(2s);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
}

TEST_P(StoreContract, ReplaceOfAJobInFlightIsRefused) {
  Accept(Job("a"));
  const JobView job = ClaimOne();
  const Submitted refused = Submit(Asking(Job("a", 0s, "new"), OnConflict::kReplace));
  EXPECT_EQ(refused.outcome, SubmitOutcome::kInFlight);
  EXPECT_EQ(refused.uid, job.uid);
  EXPECT_EQ(Submit(Job("a")).outcome, SubmitOutcome::kDuplicate);
  EXPECT_EQ(Submit(Job("a", 1s)).outcome, SubmitOutcome::kConflict);
  EXPECT_EQ(Ack(job.token), SettleOutcome::kOk);
  Accept(Asking(Job("a", 0s, "new"), OnConflict::kReplace));
}

TEST_P(StoreContract, ReplaceOfADeadJobStartsANewOne) {
  NewJob job = Job("a");
  job.max_attempts = 1;
  Accept(job);
  EXPECT_EQ(Nack(ClaimOne().token), SettleOutcome::kDead);
  EXPECT_EQ(Submit(job).outcome, SubmitOutcome::kDuplicate);
  Accept(Asking(Job("a", 0s, "new"), OnConflict::kReplace));
  EXPECT_EQ(List(State::kDead).size(), 0U);
  EXPECT_EQ(ClaimOne().attempt, 1U);
}

TEST_P(StoreContract, KeepLeavesWhatIsThere) {
  const Submitted first = Accept(Job("a", 5s, "first"));
  const Submitted kept = Submit(Asking(Job("a", 9s, "second"), OnConflict::kKeep));
  EXPECT_EQ(kept.outcome, SubmitOutcome::kDuplicate);
  EXPECT_EQ(kept.uid, first.uid);
  EXPECT_EQ(kept.due, first.due);
  EXPECT_EQ(Find("a").payload, "first");
  Accept(Asking(Job("b"), OnConflict::kKeep));
}

TEST_P(StoreContract, CapacityInJobsCountsScheduledLeasedAndDead) {
  Set([](Topic& topic) {
    topic.capacity_jobs = 3;
    topic.max_attempts = 1;
  });
  Accept(Job("dead"));
  EXPECT_EQ(Nack(ClaimOne().token), SettleOutcome::kDead);
  Accept(Job("leased"));
  const Token leased = ClaimOne().token;
  Accept(Job("scheduled", 1h));

  const Submitted refused = Submit(Job("more"));
  EXPECT_EQ(refused.outcome, SubmitOutcome::kOverCapacity);
  EXPECT_EQ(refused.uid, 0U);
  EXPECT_EQ(Find("more").uid, 0U);
  EXPECT_EQ(Submit(Job("scheduled", 1h)).outcome, SubmitOutcome::kDuplicate) << "it needs no room";
  Accept(Asking(Job("scheduled", 2h), OnConflict::kReplace));
  EXPECT_EQ(Submit(Job("more")).outcome, SubmitOutcome::kOverCapacity);

  EXPECT_EQ(Ack(leased), SettleOutcome::kOk);
  Accept(Job("one", 1h));
  EXPECT_EQ(Cancel("scheduled"), AmendOutcome::kDone);
  Accept(Job("two", 1h));
  EXPECT_EQ(Sweep(SweepKind::kPurgeDead), 1U);
  Accept(Job("three", 1h));
  EXPECT_EQ(Submit(Job("more")).outcome, SubmitOutcome::kOverCapacity);
}

TEST_P(StoreContract, CapacityInBytes) {
  Set([](Topic& topic) { topic.capacity_bytes = 2500; });
  const std::string thousand(1000, 'x');
  const std::string two_thousand(2000, 'y');
  Accept(Job("a", 1h, thousand));
  Accept(Job("b", 1h, thousand));
  EXPECT_EQ(Submit(Job("c", 1h, thousand)).outcome, SubmitOutcome::kOverCapacity);
  EXPECT_EQ(Submit(Asking(Job("a", 1h, two_thousand), OnConflict::kReplace)).outcome, SubmitOutcome::kOverCapacity);
  EXPECT_EQ(Find("a").payload, thousand) << "a refused replace removes nothing";
  EXPECT_EQ(NewPayload("a", two_thousand), AmendOutcome::kOverCapacity);
  EXPECT_EQ(Find("a").payload, thousand);
  EXPECT_EQ(NewPayload("a", "small"), AmendOutcome::kDone);
  Accept(Job("c", 1h, thousand));
  EXPECT_EQ(Cancel("b"), AmendOutcome::kDone);
  EXPECT_EQ(Cancel("c"), AmendOutcome::kDone);
  Accept(Job("d", 1h, two_thousand));
  EXPECT_GE(Figures().bytes, 2005U);
  EXPECT_LE(Figures().bytes, 2500U);
}

TEST_P(StoreContract, CapacityThatWasLoweredRefusesOnlyWhatIsNew) {
  SubmitAll({Job("a"), Job("b"), Job("c")});
  Set([](Topic& topic) { topic.capacity_jobs = 1; });
  EXPECT_EQ(Submit(Job("d")).outcome, SubmitOutcome::kOverCapacity);
  EXPECT_THAT(ClaimIds(), ElementsAre("a", "b", "c"));
}

TEST_P(StoreContract, CapacityIsSharedOutInTheOrderOfTheBatch) {
  Set([](Topic& topic) { topic.capacity_jobs = 2; });
  const auto outcomes = SubmitAll({Job("a"), Job("b"), Job("c"), Job("a")});
  EXPECT_EQ(outcomes[0].outcome, SubmitOutcome::kAccepted);
  EXPECT_EQ(outcomes[1].outcome, SubmitOutcome::kAccepted);
  EXPECT_EQ(outcomes[2].outcome, SubmitOutcome::kOverCapacity);
  EXPECT_EQ(outcomes[3].outcome, SubmitOutcome::kDuplicate);
}

}  // namespace
}  // namespace tocsin
