// Contract of Store: what a job remembers of its life.
#include <algorithm>

#include "spi/contract/store_contract.h"

namespace tocsin {

using namespace std::chrono_literals;

void StoreContract::ExpectNear(Time shown, Time expected) {
  constexpr Millis kNear{5};
  const Millis apart = std::chrono::abs(shown - expected);
  EXPECT_LE(apart, kNear) << "shown " << ToMs(shown) << ", expected " << ToMs(expected);
}

namespace {

TEST_P(StoreContract, AJobRemembersItsLife) {
  Set([](Topic& topic) {
    topic.max_attempts = 2;
    topic.retention = 24h;
  });
  const Time created = Now().utc;
  Accept(Job("a"));
  Pass(10s);
  JobView job = Find("a");
  ExpectNear(job.created, created);
  EXPECT_EQ(job.last_attempt, Time{});
  EXPECT_EQ(job.died, Time{});
  EXPECT_EQ(job.finished, Time{});
  EXPECT_EQ(job.leased, Time{});
  EXPECT_EQ(job.holder, "");

  const Time first = Now().utc;
  const JobView claimed = ClaimAs("ann", 1h);
  EXPECT_EQ(claimed.attempt, 1U);
  ExpectNear(claimed.created, created);
  const Token token = claimed.token;
  Pass(10s);
  EXPECT_EQ(Extend(token, 2h), SettleOutcome::kOk);
  Pass(10s);
  EXPECT_EQ(Extend(token, 2h), SettleOutcome::kOk);
  job = Find("a");
  EXPECT_EQ(job.state, State::kLeased);
  EXPECT_EQ(job.attempt, 1U) << "the number that the consumer saw";
  EXPECT_EQ(job.holder, "ann");
  EXPECT_EQ(job.extensions, 2U);
  ExpectNear(job.leased, first);
  ExpectNear(job.last_attempt, first);
  ExpectNear(job.lease_deadline, Now().utc + 2h);

  EXPECT_EQ(Nack(token, 10s, "first"), SettleOutcome::kOk);
  job = Find("a");
  EXPECT_EQ(job.attempt, 1U);
  EXPECT_EQ(job.reason, "first");
  ExpectNear(job.last_attempt, first);
  EXPECT_EQ(job.leased, Time{});
  EXPECT_EQ(job.holder, "");
  EXPECT_EQ(job.extensions, 0U);

  Pass(10s);
  const Time second = Now().utc;
  const Token again = ClaimAs("bob", 1h).token;
  Pass(10s);
  job = Find("a");
  EXPECT_EQ(job.attempt, 2U);
  EXPECT_EQ(job.holder, "bob");
  EXPECT_EQ(job.extensions, 0U);
  ExpectNear(job.leased, second);
  const Time died = Now().utc;
  EXPECT_EQ(Nack(again, 0ms, "second"), SettleOutcome::kDead);
  Pass(10s);
  const auto expect_dead = [&] {
    const JobView dead = Find("a");
    EXPECT_EQ(dead.state, State::kDead);
    EXPECT_EQ(dead.attempt, 2U);
    EXPECT_EQ(dead.reason, "second");
    ExpectNear(dead.created, created);
    ExpectNear(dead.last_attempt, second);
    ExpectNear(dead.died, died);
    EXPECT_EQ(dead.finished, Time{});
  };
  expect_dead();
  harness_->Restart();
  expect_dead();

  EXPECT_EQ(Change("a", AmendKind::kRedrive), AmendOutcome::kDone);
  job = Find("a");
  EXPECT_EQ(job.attempt, 0U);
  EXPECT_EQ(job.died, Time{}) << "it lives again";
  ExpectNear(job.last_attempt, second);
  Pass(10s);
  const Time third = Now().utc;
  const Token last = ClaimAs("cyd", 1h).token;
  Pass(10s);
  const Time finished = Now().utc;
  EXPECT_EQ(Ack(last), SettleOutcome::kOk);
  Pass(10s);
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    if (restarted) harness_->Restart();
    job = Find("a");
    EXPECT_EQ(job.state, State::kDone);
    EXPECT_EQ(job.attempt, 1U) << "the number that the consumer saw";
    ExpectNear(job.created, created);
    ExpectNear(job.last_attempt, third);
    ExpectNear(job.finished, finished);
    EXPECT_EQ(job.died, Time{});
    EXPECT_EQ(job.holder, "");
    EXPECT_EQ(job.leased, Time{});
  }
}

TEST_P(StoreContract, AJobThatWaitsRemembersItsLastAttemptAfterARestart) {
  Accept(Job("a"));
  const Time begun = Now().utc;
  const Token token = ClaimOne(1h).token;
  Pass(10s);
  EXPECT_EQ(Nack(token, 1h), SettleOutcome::kOk) << "without a reason";
  harness_->Restart();
  ExpectNear(Find("a").last_attempt, begun);
  EXPECT_EQ(Reschedule("a", 2h).outcome, AmendOutcome::kDone);
  harness_->Restart();
  ExpectNear(Find("a").last_attempt, begun);
  EXPECT_EQ(NewAttempts("a", 9), AmendOutcome::kDone);
  harness_->Restart();
  ExpectNear(Find("a").last_attempt, begun);
}

TEST_P(StoreContract, AnExpiredLeaseWasAnAttempt) {
  Set([](Topic& topic) { topic.max_attempts = 2; });
  Accept(Job("a"));
  Time begun = Now().utc;
  ClaimAs("ann", 30s);
  Pass(31s);
  EXPECT_EQ(Find("a").state, State::kScheduled);
  ExpectNear(Find("a").last_attempt, begun);
  EXPECT_EQ(Find("a").holder, "");
  Pass(24h);  // its back-off
  begun = Now().utc;
  ClaimAs("bob", 30s);
  Pass(31s);
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    if (restarted) harness_->Restart();
    const JobView job = Find("a");
    EXPECT_EQ(job.state, State::kDead);
    ExpectNear(job.last_attempt, begun);
    EXPECT_GE(job.died, begun + 30s);
    EXPECT_LE(job.died, Now().utc);
  }
}

TEST_P(StoreContract, AReleasedDeliveryWasNoAttempt) {
  Accept(Job("a"));
  EXPECT_EQ(Release(ClaimAs("ann").token), SettleOutcome::kOk);
  EXPECT_EQ(Find("a").last_attempt, Time{});
  EXPECT_EQ(Find("a").attempt, 0U);
  Pass(10s);
  const Time begun = Now().utc;
  EXPECT_EQ(Nack(ClaimAs("ann").token, 0ms), SettleOutcome::kOk);
  Pass(10s);
  EXPECT_EQ(Release(ClaimAs("bob").token), SettleOutcome::kOk);
  ExpectNear(Find("a").last_attempt, begun);
  EXPECT_EQ(Find("a").attempt, 1U);
}

TEST_P(StoreContract, ARevokedDeliveryWasAnAttempt) {
  Accept(Job("a"));
  const Time begun = Now().utc;
  ClaimAs("ann", 1h);
  Pass(10s);
  EXPECT_EQ(Change("a", AmendKind::kRevoke), AmendOutcome::kDone);
  ExpectNear(Find("a").last_attempt, begun);
}

TEST_P(StoreContract, ACancelledJobRemembersItsEnd) {
  Set([](Topic& topic) { topic.retention = 24h; });
  Accept(Job("a", 1h));
  Accept(CountJob("count", 2));
  Pass(10s);
  const Time cancelled = Now().utc;
  EXPECT_EQ(Cancel("a"), AmendOutcome::kDone);
  EXPECT_EQ(Cancel("count"), AmendOutcome::kDone);
  Pass(10s);
  EXPECT_EQ(Cancel("a"), AmendOutcome::kDone) << "again: nothing changes";
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    if (restarted) harness_->Restart();
    for (const char* id : {"a", "count"}) {
      const JobView job = Find(id);
      ExpectNear(job.finished, cancelled);
      EXPECT_EQ(job.last_attempt, Time{});
      EXPECT_EQ(job.attempt, 0U);
    }
  }
}

TEST_P(StoreContract, ASweepThatRedrivesForgetsTheDeath) {
  Accept(Job("a"));
  const Time begun = Now().utc;
  EXPECT_EQ(Bury(ClaimOne().token, "no"), SettleOutcome::kDead);
  ExpectNear(Find("a").died, begun);
  EXPECT_EQ(Sweep(SweepKind::kRedrive), 1U);
  harness_->Restart();
  EXPECT_EQ(Find("a").died, Time{});
  ExpectNear(Find("a").last_attempt, begun);
}

TEST_P(StoreContract, AReplacedJobIsCreatedAgain) {
  Accept(Job("a", 1h));
  Pass(10s);
  Accept(Asking(Job("a", 2h), OnConflict::kReplace));
  ExpectNear(Find("a").created, Now().utc);
  Pass(10s);
  EXPECT_EQ(NewPayload("a", "new"), AmendOutcome::kDone);
  ExpectNear(Find("a").created, Now().utc - 10s);
}

TEST_P(StoreContract, HoldersOfOneClaimAndOfMany) {
  for (int i = 0; i < 6; ++i) Accept(Job(fmt::format("j{}", i)));
  Scan();
  const JobMax three{.jobs = 3, .holder = "ann"};
  const auto claimed = Await<JobBatch>([&](auto done) { store().Claim(kTopic, three, 1h, Now(), std::move(done)); });
  ASSERT_TRUE(claimed);
  ASSERT_EQ(claimed->jobs.size(), 3U);
  const std::string longest(kHolderBytesMax, 'x');
  ClaimAs(longest + "y", 1h);
  ClaimAs("", 1h);
  ClaimAs("ann", 1h);
  EXPECT_EQ(Select({.holder = "ann"}), (std::multiset<std::string>{"j0", "j1", "j2", "j5"}));
  EXPECT_EQ(Find("j3").holder, longest) << "cut off";
  EXPECT_EQ(Find("j4").holder, "");
  EXPECT_EQ(Ack(claimed->jobs[1].token), SettleOutcome::kOk);
  EXPECT_EQ(Select({.holder = "ann"}), (std::multiset<std::string>{"j0", "j2", "j5"}));
  EXPECT_EQ(Release(claimed->jobs[0].token), SettleOutcome::kOk);
  EXPECT_EQ(Release(claimed->jobs[2].token), SettleOutcome::kOk);
  EXPECT_EQ(Select({.holder = "ann"}), std::multiset<std::string>{"j5"});
}

}  // namespace
}  // namespace tocsin
