// Contract of Store: the invariants of docs/reliability.md that one store can hold.
#include <algorithm>
#include <map>

#include "spi/contract/store_contract.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// Delays around the edges of every unit that a timer structure may be made of.
std::vector<Millis> EdgeDelays() {
  std::vector<Millis> delays{0ms, 1ms, 2ms};
  for (const Millis unit : {Millis(16), Millis(64), Millis(256), Millis(1000), Millis(1024), Millis(4096),
                            Millis(16'384), Millis(60'000), Millis(65'536), Millis(262'144), Millis(3'600'000),
                            Millis(4'194'304), Millis(86'400'000), Millis(1'073'741'824)}) {
    for (const int64_t near : {-1, 0, 1}) delays.push_back(unit + Millis(near));
  }
  std::ranges::sort(delays);
  return delays;
}

TEST_P(StoreContract, Invariant01_NeverEarlyAndNeverLate) {
  clock().Advance(Millis(12'345));  // not on an edge of any unit
  std::vector<std::string> ids;
  const std::vector<Millis> delays = EdgeDelays();
  for (const Millis delay : delays) ids.push_back(fmt::format("d{}", delay.count()));
  for (size_t i = 0; i < delays.size(); ++i) {
    Accept(i % 2 == 0 ? Job(ids[i], delays[i]) : JobAt(ids[i], Now().utc + delays[i]));
  }
  Millis passed{0};
  for (size_t i = 0; i < delays.size(); ++i) {
    if (delays[i] > passed + 1ms) {
      Pass(delays[i] - passed - 1ms);
      passed = delays[i] - 1ms;
      EXPECT_THAT(TakeIds(), IsEmpty()) << "early: " << ids[i];
    }
    Pass(delays[i] - passed);
    passed = delays[i];
    EXPECT_THAT(TakeIds(1), ElementsAre(ids[i]));
    if (HasFailure()) return;
  }
}

TEST_P(StoreContract, Invariant01_NeverEarlyWhenTimeJumps) {
  for (const Millis delay : EdgeDelays()) Accept(Job(fmt::format("d{}", delay.count()), delay));
  const Time start = Now().utc;
  for (const Millis jump : std::vector<Millis>{5ms, 300ms, 2s, 70s, 10min, 2h, 20h, 240h, 2400h}) {
    Pass(jump);
    for (const JobView& job : Claim().jobs) {
      EXPECT_LE(job.due, Now().utc);
      EXPECT_EQ(Ack(job.token), SettleOutcome::kOk);
    }
    for (const std::string& id : List(State::kScheduled)) {
      EXPECT_GT(start + Millis(std::stoll(id.substr(1))), Now().utc) << "late: " << id;
    }
  }
}

TEST_P(StoreContract, Invariant02_NothingAcknowledgedIsLostInACrash) {
  if (!harness_->durable()) GTEST_SKIP() << "this store promises no durability";
  Set([](Topic& topic) {
    topic.retention = 1h;
    topic.max_attempts = 1;
  });
  Accept(Job("scheduled", 1h));
  Accept(CountJob("count", 3));
  EXPECT_EQ(Count("count", "e1").outcome, CountOutcome::kCounted);
  Accept(Job("done"));
  EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
  Accept(Job("dead"));
  EXPECT_EQ(Nack(ClaimOne().token, {}, "broken"), SettleOutcome::kDead);
  Accept(Job("cancelled", 1h));
  EXPECT_EQ(Cancel("cancelled"), AmendOutcome::kDone);
  Accept(Job("payload", 1h, "old"));
  EXPECT_EQ(NewPayload("payload", "new"), AmendOutcome::kDone);
  Accept(Job("moved", 1h));
  EXPECT_EQ(Reschedule("moved", 2h).outcome, AmendOutcome::kDone);
  Accept(Job("leased"));
  const Token token = ClaimOne().token;
  const Time due = Find("moved").due;

  harness_->Crash();
  EXPECT_EQ(StateOf("scheduled"), State::kScheduled);
  EXPECT_EQ(StateOf("count"), State::kScheduled);
  EXPECT_EQ(Find("count").count_left, 2U);
  EXPECT_EQ(Count("count", "e1").outcome, CountOutcome::kRepeated);
  EXPECT_EQ(StateOf("done"), State::kDone);
  EXPECT_EQ(StateOf("dead"), State::kDead);
  EXPECT_EQ(Find("dead").reason, "broken");
  EXPECT_EQ(StateOf("cancelled"), State::kCancelled);
  EXPECT_EQ(Find("payload").payload, "new");
  EXPECT_EQ(Find("moved").due, due);
  if (harness_->keeps_leases()) {
    EXPECT_EQ(StateOf("leased"), State::kLeased);
    EXPECT_EQ(Ack(token), SettleOutcome::kOk);
    return;
  }
  EXPECT_EQ(StateOf("leased"), State::kScheduled);
  EXPECT_EQ(Ack(token), SettleOutcome::kStale);
  EXPECT_THAT(ClaimIds(), ElementsAre("leased"));
}

TEST_P(StoreContract, Invariant02_WhatWasNotAcknowledgedIsThereWhollyOrNotAtAll) {
  const std::vector<NewJob> jobs{Keyed(Job("a", 1h, "whole"), "key"), Keyed(Job("b", 1h, "whole"), "key")};
  auto acknowledged = std::make_shared<bool>(false);
  store().Submit(kTopic, jobs, Now(), [acknowledged](auto) { *acknowledged = true; });
  const bool before = *acknowledged;
  harness_->Crash();
  for (const char* id : {"a", "b"}) {
    const JobView job = Find(id, "key");
    if (before && harness_->durable()) EXPECT_NE(job.uid, 0U);
    if (job.uid != 0) EXPECT_EQ(job.payload, "whole");
  }
}

TEST_P(StoreContract, Invariant03_EveryJobIsDeliveredWithinADrain) {
  std::multiset<std::string> submitted;
  for (int i = 0; i < 300; ++i) {
    const std::string id = fmt::format("j{}", i);
    Accept(Job(id, Millis(i * 37 % 5000)));
    submitted.insert(id);
    if (i == 100) harness_->Restart();
    if (i == 200) clock().Advance(1s);
  }
  EXPECT_EQ(Drain(60, 100ms), submitted);
}

TEST_P(StoreContract, Invariant04_NoPhantoms) {
  std::map<std::string, std::string> payloads;
  for (int i = 0; i < 200; ++i) {
    std::string payload(static_cast<size_t>(i * 7 % 900), static_cast<char>('a' + i % 26));
    payloads.emplace(fmt::format("j{}", i), std::move(payload));
  }
  for (const auto& [id, payload] : payloads) Accept(Job(id, 1s, payload));
  harness_->Restart();
  Pass(1s);
  const JobBatch batch = Claim();
  EXPECT_EQ(batch.jobs.size(), payloads.size());
  for (const JobView& job : batch.jobs) EXPECT_EQ(job.payload, payloads.at(job.Id()));
}

TEST_P(StoreContract, Invariant05_WithoutAFaultEachJobComesOnceAndNeverAfterItsAck) {
  for (int i = 0; i < 100; ++i) Accept(Job(fmt::format("j{}", i), Millis(i)));
  EXPECT_EQ(Drain(20, 10ms).size(), 100U);
  harness_->Restart();
  Pass(24h);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  if (!harness_->durable()) return;
  harness_->Crash();
  Pass(24h);
  EXPECT_THAT(ClaimIds(), IsEmpty());
}

TEST_P(StoreContract, Invariant06_OnlyTheCurrentTokenSettles) {
  Accept(Job("a"));
  const Token old = ClaimOne().token;
  EXPECT_EQ(Release(old), SettleOutcome::kOk);
  const Token current = ClaimOne().token;
  EXPECT_NE(old, current);
  for (const SettleKind kind :
       {SettleKind::kAck, SettleKind::kNack, SettleKind::kExtend, SettleKind::kRelease, SettleKind::kBury}) {
    EXPECT_EQ(Settle({.token = old, .kind = kind}), SettleOutcome::kStale);
  }
  EXPECT_EQ(StateOf("a"), State::kLeased);
  EXPECT_EQ(Ack(current), SettleOutcome::kOk);
}

TEST_P(StoreContract, Invariant06_ATokenIsGoodOnceInACallToo) {
  const auto ack = [&](const std::vector<Token>& tokens) {
    std::vector<Settlement> settlements;
    for (const Token& token : tokens) settlements.push_back({.token = token});
    return *Await<std::vector<SettleOutcome>>(
        [&](auto done) { store().Settle(kTopic, settlements, Now(), std::move(done)); });
  };
  const auto tokens = [&](size_t max) {
    std::vector<Token> all;
    for (const JobView& job : Claim(max).jobs) all.push_back(job.token);
    EXPECT_EQ(all.size(), max);
    all.resize(max);
    return all;
  };
  for (const bool again : {false, true}) {
    SubmitAll({Job("a"), Job("b"), Job("c"), Job("d")});
    if (again) {
      for (const Token& token : tokens(4)) EXPECT_EQ(Nack(token, 0ms), SettleOutcome::kOk);
    }
    const auto first = tokens(2);
    const auto second = tokens(1);
    EXPECT_THAT(ack({first[0], second[0], first[0], first[0], first[1]}),
                ElementsAre(SettleOutcome::kOk, SettleOutcome::kOk, SettleOutcome::kStale, SettleOutcome::kStale,
                            SettleOutcome::kOk));
    EXPECT_THAT(ack(tokens(1)), ElementsAre(SettleOutcome::kOk));
    EXPECT_EQ(Figures().bytes, 0U);
  }
  EXPECT_EQ(Figures().acked, 8U);
}

// Anybody can write a token. One with a made-up fence must not meet what a store writes for jobs that are not leased.
TEST_P(StoreContract, Invariant06_NoMadeUpFenceSettlesAJobThatIsNotLeased) {
  Set([](Topic& topic) {
    topic.retention = 1h;
    topic.max_attempts = 2;
  });
  Accept(Job("a"));
  Token token = ClaimOne().token;
  const auto refused = [&](State state) {
    for (const SettleKind kind : {SettleKind::kAck, SettleKind::kNack, SettleKind::kExtend, SettleKind::kRelease}) {
      for (const uint64_t fence : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3}, token.fence}) {
        const Token forged{.slot = token.slot, .handle = token.handle, .fence = fence};
        EXPECT_EQ(Settle({.token = forged, .kind = kind}), SettleOutcome::kStale) << "fence " << fence;
      }
    }
    EXPECT_EQ(StateOf("a"), state);
  };
  EXPECT_EQ(Release(token), SettleOutcome::kOk);
  refused(State::kScheduled);
  token = ClaimOne().token;
  EXPECT_EQ(Nack(token, 1s), SettleOutcome::kOk);
  refused(State::kScheduled);
  Pass(1s);
  token = ClaimOne().token;
  EXPECT_EQ(Nack(token, 0ms), SettleOutcome::kDead);
  refused(State::kDead);
  EXPECT_EQ(Sweep(SweepKind::kRedrive), 1U);
  token = ClaimOne().token;
  EXPECT_EQ(Ack(token), SettleOutcome::kOk);
  refused(State::kDone);
}

TEST_P(StoreContract, Invariant06_TokensOfBeforeARestartStayStale) {
  std::vector<Token> tokens;
  for (int round = 0; round < 4; ++round) {
    if (round == 0) Accept(Job("a"));
    const Token token = ClaimOne().token;
    for (const Token& old : tokens) {
      EXPECT_NE(old, token);
      EXPECT_EQ(Ack(old), SettleOutcome::kStale);
      EXPECT_EQ(Extend(old, 1h), SettleOutcome::kStale);
    }
    tokens.push_back(token);
    if (harness_->keeps_leases()) EXPECT_EQ(Release(token), SettleOutcome::kOk);
    round % 2 == 0 ? harness_->Restart() : harness_->Crash();
  }
  EXPECT_EQ(StateOf("a"), State::kScheduled);
}

TEST_P(StoreContract, Invariant07_CancelIsDefinite) {
  for (const int64_t near : {-2, -1, 0, 1, 2}) {  // around the due time
    const std::string id = fmt::format("race{}", near);
    Accept(Job(id, 1s));
    clock().Advance(1s + Millis(near));
    const std::vector<std::string> before = ClaimIds();
    const AmendOutcome cancelled = Cancel(id);
    Pass(1s);
    const std::vector<std::string> after = ClaimIds();
    EXPECT_EQ(before.size() + after.size(), cancelled == AmendOutcome::kDone ? 0U : 1U);
    EXPECT_EQ(cancelled, near < 0 ? AmendOutcome::kDone : AmendOutcome::kInFlight);
  }
}

TEST_P(StoreContract, Invariant07_ACancelOutlivesACrash) {
  if (!harness_->durable()) GTEST_SKIP() << "this store promises no durability";
  Accept(Job("a", 1s));
  EXPECT_EQ(Cancel("a"), AmendOutcome::kDone);
  harness_->Crash();
  Pass(1s);
  EXPECT_THAT(ClaimIds(), IsEmpty());
}

TEST_P(StoreContract, Invariant09_AttemptsAreBoundedAndEndInOneDeadLetter) {
  Set([](Topic& topic) {
    topic.max_attempts = 4;
    topic.backoff_base = topic.backoff_max = 0ms;
  });
  Accept(Job("a"));
  uint32_t deliveries = 0;
  for (int i = 0; i < 20; ++i) {
    const JobBatch batch = Claim(10, 1s);
    deliveries += static_cast<uint32_t>(batch.jobs.size());
    for (const JobView& job : batch.jobs) {
      EXPECT_EQ(job.attempt, deliveries);
      if (i % 2 == 0) Nack(job.token, 0ms);
    }
    Pass(1s);
  }
  EXPECT_EQ(deliveries, 4U);
  EXPECT_THAT(List(State::kDead), ElementsAre("a"));
  EXPECT_EQ(Figures().died, 1U);
}

TEST_P(StoreContract, Invariant09_ARestartCostsNoAttempt) {
  NewJob job = Job("a");
  job.max_attempts = 2;
  Accept(job);
  EXPECT_EQ(Nack(ClaimOne().token, 0ms), SettleOutcome::kOk);
  for (int i = 0; i < 5; ++i) {
    const JobView claimed = ClaimOne();
    EXPECT_EQ(claimed.attempt, 2U);
    i % 2 == 0 ? harness_->Restart() : harness_->Crash();
    if (harness_->keeps_leases()) EXPECT_EQ(Release(claimed.token), SettleOutcome::kOk) << "the lease goes on";
    EXPECT_EQ(Find("a").attempt, 1U) << "the attempts that failed are remembered";
  }
  EXPECT_EQ(Nack(ClaimOne().token), SettleOutcome::kDead);
}

TEST_P(StoreContract, Invariant10_AFullTopicStillDeliversAndFreesItself) {
  Set([](Topic& topic) { topic.capacity_jobs = 2; });
  Accept(Job("a"));
  Accept(Job("b", 1h));
  EXPECT_EQ(Submit(Job("c")).outcome, SubmitOutcome::kOverCapacity);
  const JobView job = ClaimOne();
  EXPECT_EQ(Nack(job.token, 0ms), SettleOutcome::kOk);
  EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
  EXPECT_EQ(Cancel("b"), AmendOutcome::kDone);
  EXPECT_EQ(Figures().scheduled + Figures().leased + Figures().dead, 0U);
}

TEST_P(StoreContract, Invariant10_CapacityHoldsAcrossARestart) {
  Set([](Topic& topic) { topic.capacity_jobs = 2; });
  SubmitAll({Job("a", 1h), Job("b", 1h)});
  const uint64_t bytes = Figures().bytes;
  harness_->Restart();
  EXPECT_EQ(Figures().bytes, bytes);
  EXPECT_EQ(Submit(Job("c")).outcome, SubmitOutcome::kOverCapacity);
}

TEST_P(StoreContract, Invariant11_ExactlyOneOfTimeAndCountWins) {
  for (const int64_t near : {-1, 0, 1}) {
    const std::string id = fmt::format("either{}", near);
    Accept(CountJob(id, 1, Trigger::kEither, 1s));
    Pass(1s + Millis(near));
    const CountOutcome counted = Count(id, "e").outcome;
    EXPECT_EQ(counted, near < 0 ? CountOutcome::kFired : CountOutcome::kNotCounted);
    EXPECT_EQ(Drain(3, 1s).count(id), 1U);
  }
}

TEST_P(StoreContract, Invariant12_FirstAttemptsLeaveInTheOrderOfDueAndSubmission) {
  std::multimap<int, std::string> expected;  // equal keys stay in the order of insertion
  for (int i = 0; i < 200; ++i) {
    const int delay_ms = i * 7919 % 50;
    const std::string id = fmt::format("j{}", i);
    Accept(i % 2 == 0 ? Job(id, Millis(delay_ms)) : JobAt(id, Now().utc + Millis(delay_ms)));
    expected.emplace(delay_ms, id);
  }
  clock().Advance(50ms);
  std::vector<std::string> ids;
  for (;;) {
    const std::vector<std::string> some = ClaimIds(7);
    if (some.empty()) break;
    ids.insert(ids.end(), some.begin(), some.end());
  }
  std::vector<std::string> in_order;
  for (const auto& [delay_ms, id] : expected) in_order.push_back(id);
  EXPECT_EQ(ids, in_order);
}

TEST_P(StoreContract, Invariant13_AStepForwardLeavesRelativeJobsAlone) {
  if (!harness_->supports_clock_steps()) GTEST_SKIP() << "this store's clock cannot be stepped";
  Accept(Job("relative", 1h));
  Accept(JobAt("absolute", Now().utc + 1h));
  Accept(Job("leased"));
  ClaimOne(30s);
  clock().Step(24h);
  EXPECT_THAT(ClaimIds(), ElementsAre("absolute"));
  EXPECT_EQ(StateOf("leased"), State::kLeased) << "nor do leases run out";
  EXPECT_EQ(Find("relative").due, Now().utc + 1h) << "shown as it will be";
  Pass(1h - 1ms);
  EXPECT_EQ(StateOf("relative"), State::kScheduled);
  EXPECT_EQ(Find("relative").due, Now().utc + 1ms);
}

TEST_P(StoreContract, Invariant13_AStepBackFiresNothingTwiceOrEarly) {
  if (!harness_->supports_clock_steps()) GTEST_SKIP() << "this store's clock cannot be stepped";
  Accept(JobAt("fired", Now().utc + 1s));
  const Time due = Now().utc + 2h;
  Accept(JobAt("absolute", due));
  Accept(Job("relative", 2h));
  Pass(1s);
  EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
  clock().Step(-1h);
  Scan();
  EXPECT_THAT(ClaimIds(), IsEmpty());
  harness_->Restart();
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(2h - 1s - 1ms);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(1ms);
  EXPECT_THAT(ClaimIds(), ElementsAre("relative"));
  Pass(1h - 1ms);
  EXPECT_EQ(StateOf("absolute"), State::kScheduled);
  Pass(1ms);
  EXPECT_THAT(ClaimIds(), ElementsAre("absolute"));
}

TEST_P(StoreContract, Invariant13_ACorrectedGlitchLeavesNoTrace) {
  if (!harness_->supports_clock_steps()) GTEST_SKIP() << "this store's clock cannot be stepped";
  Accept(JobAt("soon", Now().utc + 30min));
  Accept(JobAt("later", Now().utc + 2h));
  Accept(Job("relative", 45min));
  clock().Step(1h);
  Scan();
  EXPECT_EQ(Figures().ready, 1U);
  clock().Step(-1h);
  Scan();
  EXPECT_EQ(Figures().ready, 0U) << "it is not due by the clock as it is now";
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Accept(JobAt("new", Now().utc + 20min));
  Accept(JobAt("cancelled", Now().utc + 20min));
  Accept(JobAt("moved", Now().utc + 20min));
  EXPECT_EQ(Cancel("cancelled"), AmendOutcome::kDone);
  Reschedule("moved", 25min);
  EXPECT_GT(found_.next_utc, Now().utc);
  harness_->Restart();
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(20min - 1ms);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(1ms);
  EXPECT_THAT(TakeIds(), ElementsAre("new"));
  Pass(25min);
  EXPECT_THAT(TakeIds(), ElementsAre("moved", "soon", "relative"));
  Pass(75min - 1ms);
  EXPECT_THAT(TakeIds(), IsEmpty());
  Pass(1ms);
  EXPECT_THAT(TakeIds(), ElementsAre("later"));
}

TEST_P(StoreContract, Invariant13_AJobThatAGlitchDeliveredWaitsForItsTimeOnceReleased) {
  if (!harness_->supports_clock_steps()) GTEST_SKIP() << "this store's clock cannot be stepped";
  for (const char* id : {"acked", "released", "ready"}) Accept(JobAt(id, Now().utc + 30min));
  clock().Step(1h);
  EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
  const JobView job = ClaimOne();
  clock().Step(-1h);
  EXPECT_EQ(Release(job.token), SettleOutcome::kOk);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(30min - 1ms);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(1ms);
  EXPECT_THAT(ClaimIds(), UnorderedElementsAre("released", "ready"));
}

TEST_P(StoreContract, Invariant13_AStepForwardIsNotTakenForTimeThatPassed) {
  if (!harness_->supports_clock_steps()) GTEST_SKIP() << "this store's clock cannot be stepped";
  Accept(Job("relative", 1h));
  clock().Step(24h);
  Scan();
  harness_->Pump();
  // Nothing but the scan has seen the step: it alone has to write it down.
  harness_->Crash();
  EXPECT_THAT(ClaimIds(), IsEmpty());
  harness_->Restart();
  EXPECT_THAT(ClaimIds(), IsEmpty());
  Pass(1h);
  EXPECT_THAT(ClaimIds(), ElementsAre("relative"));
}

TEST_P(StoreContract, Invariant14_IdsRiseAcrossRestartsAndClockSteps) {
  Uid before = 0;
  std::set<Uid> seen;
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 50; ++i) {
      const Uid uid = Accept(Job({}, 1h)).uid;
      EXPECT_GT(uid, before);
      EXPECT_TRUE(seen.insert(uid).second);
      before = uid;
    }
    if (round == 3) EXPECT_EQ(Sweep(SweepKind::kPurge), 200U);  // also ids whose jobs are gone stay used
    round % 2 == 0 ? harness_->Restart() : harness_->Crash();
    if (harness_->supports_clock_steps()) clock().Step(-1h);
  }
}

TEST_P(StoreContract, Invariant15_ResubmittingAfterACrashGivesTheSameAnswer) {
  if (!harness_->durable()) GTEST_SKIP() << "this store promises no durability";
  const Submitted first = Accept(Job("a", 1h));
  const Submitted amended = Accept(Job("b", 1h));
  EXPECT_EQ(NewPayload("b", "changed since"), AmendOutcome::kDone);
  harness_->Crash();
  Submitted again = Submit(Job("a", 1h));
  EXPECT_EQ(again.outcome, SubmitOutcome::kDuplicate);
  EXPECT_EQ(again.uid, first.uid);
  EXPECT_EQ(again.due, first.due);
  EXPECT_EQ(Submit(Job("a", 2h)).outcome, SubmitOutcome::kConflict);
  again = Submit(Job("b", 1h));
  EXPECT_EQ(again.outcome, SubmitOutcome::kDuplicate) << "what was asked for counts, not what was amended";
  EXPECT_EQ(again.uid, amended.uid);
}

TEST_P(StoreContract, Invariant16_AJobThatAlwaysFailsDelaysNoOther) {
  NewJob bad = Job("bad");
  bad.max_attempts = 1000;
  Accept(bad);
  for (int i = 0; i < 20; ++i) {
    const std::string id = fmt::format("good{}", i);
    Accept(Job(id, 1s));
    Pass(1s);
    bool delivered = false;
    for (const JobView& job : Claim().jobs) {
      delivered |= job.own_id == id;
      EXPECT_EQ(job.own_id == "bad" ? Nack(job.token, 0ms) : Ack(job.token), SettleOutcome::kOk);
    }
    EXPECT_TRUE(delivered) << "on time";
  }
}

TEST_P(StoreContract, Invariant17_SpaceFollowsWhatIsLive) {
  if (!harness_->DiskBytes()) GTEST_SKIP() << "this store does not know its space";
  const std::string payload(10'000, 'x');
  Accept(Job("far future", 24h * 3650, payload));
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 100; ++i) Accept(Job({}, 0ms, payload));
    for (const JobView& job : Claim().jobs) EXPECT_EQ(Ack(job.token), SettleOutcome::kOk);
    Pass(10s);
  }
  const uint64_t after_5000 = *harness_->DiskBytes();
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 100; ++i) Accept(Job({}, 0ms, payload));
    for (const JobView& job : Claim().jobs) EXPECT_EQ(Ack(job.token), SettleOutcome::kOk);
    Pass(10s);
  }
  EXPECT_LE(*harness_->DiskBytes(), after_5000 + after_5000 / 10) << "it does not grow with what has passed through";
  EXPECT_EQ(Find("far future").payload, payload);
}

TEST_P(StoreContract, EffectsAreVisibleAtOnceInTheOrderOfTheCalls) {
  std::vector<SubmitOutcome> submitted;
  std::vector<AmendOutcome> amended;
  std::vector<Uid> found;
  const NewJob job = Job("a", 1h);
  const JobRef ref{"a", {}};
  const Amendment cancel{.job = ref, .kind = AmendKind::kCancel};
  const auto on_submit = [&](Result<std::vector<Submitted>> r) { submitted.push_back(r.value()[0].outcome); };
  const auto on_find = [&](Result<JobBatch> r) { found.push_back(r.value().jobs[0].uid); };
  store().Submit(kTopic, {&job, 1}, Now(), on_submit);
  store().Find(kTopic, {&ref, 1}, nullptr, Now(), on_find);
  store().Submit(kTopic, {&job, 1}, Now(), on_submit);
  store().Amend(kTopic, {&cancel, 1}, Now(), [&](auto r) { amended.push_back(r.value()[0].outcome); });
  store().Find(kTopic, {&ref, 1}, nullptr, Now(), on_find);
  store().Submit(kTopic, {&job, 1}, Now(), on_submit);
  harness_->Pump();
  EXPECT_THAT(submitted, ElementsAre(SubmitOutcome::kAccepted, SubmitOutcome::kDuplicate, SubmitOutcome::kAccepted));
  EXPECT_THAT(amended, ElementsAre(AmendOutcome::kDone));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0], 0U);
  EXPECT_EQ(found[1], 0U);
}

}  // namespace
}  // namespace tocsin
