// What is pushed while something fails: slow sinks and lost leases, stores that cannot settle, sinks that cannot be
// opened, the end of the node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/push_test.h"

namespace tocsin {
namespace {

class PushFailureTest : public PushTest {
 protected:
  size_t Settles() const {
    size_t sum = 0;
    for (const auto& store : node.stores) sum += store->settles;
    return sum;
  }

  /// As the last scan of the topic's home shard has it.
  PushTrouble TroubleOf() const {
    const FiguresBoard::Rows latest = node.service->figures().Latest();
    for (const FiguresRow* row : latest.rows()) {
      if (row->push.failures > 0 || row->push.broken_at != kNever) return row->push;
    }
    return {};
  }

  bool stopped = false;
  void Stop() {
    node.service->Stop(node.at(0), [this] { stopped = true; });
    node.Run();
  }
};

INSTANTIATE_TEST_SUITE_P(Shards, PushFailureTest, testing::Combine(testing::Values(1, 2, 4), testing::Bool()),
                         PushTestName);

TEST_P(PushFailureTest, LeasesAreExtendedWhileTheSinkIsSlow) {
  for (const Millis lease : {Millis(30'000), Millis(3'000)}) {
    sinks.jobs.clear();
    Topic topic = Pushed("t");
    topic.lease = lease;
    Put(topic);
    const uint64_t acked = FiguresOf().acked;
    Submit(20);
    node.Pass(Millis(600'000));
    EXPECT_EQ(sinks.jobs.size(), 20U) << "no job is delivered twice";
    AnswerAll(kYes);
    EXPECT_EQ(FiguresOf().acked - acked, 20U);
    EXPECT_EQ(FiguresOf().expired, 0U);
  }
}

TEST_P(PushFailureTest, ExtensionsAreFew) {
  Put(Pushed("t"));  // a lease of 30 s
  Submit(20);
  node.Pass(Millis(1'000));
  const size_t before = Settles();
  node.Pass(Millis(60'000));
  EXPECT_LE(Settles() - before, 7 * node.stores.size()) << "about every 10 s";
  EXPECT_GE(Settles() - before, 4U);
}

TEST_P(PushFailureTest, AnAnswerAfterTheLeaseIsStaleAndCounted) {
  Put(Pushed("t"));
  Submit(1);
  FailSettles(Code::kUnavailable);  // the lease cannot be extended
  node.Pass(Millis(40'000));
  ASSERT_EQ(sinks.jobs.size(), 2U) << "the lease ran out, and the job came again";
  EXPECT_EQ(sinks.jobs[1].attempt, 2U);
  FailSettles(std::nullopt);
  node.Pass(Millis(2'000));
  const size_t settles = Settles();
  node.Pass(Millis(8'000));
  EXPECT_LE(Settles() - settles, 1U) << "the lost lease is not extended again and again";
  sinks.Answer(sinks.jobs[0], kYes);
  node.Run();
  EXPECT_EQ(Outcomes("stale"), 1U);
  EXPECT_EQ(Outcomes("confirmed"), 0U);
  EXPECT_EQ(FiguresOf().leased, 1U) << "the second delivery is not touched";
  sinks.Answer(sinks.jobs[1], kYes);
  node.Run();
  EXPECT_EQ(FiguresOf().acked, 1U);
  EXPECT_EQ(Outcomes("confirmed"), 1U);
  EXPECT_EQ(InFlight(), 0);
}

TEST_P(PushFailureTest, ASettlementThatFailsForAWhileIsTriedAgain) {
  Put(Pushed("t", {{"in_flight", "4"}}));
  Submit(20);
  FailSettles(Code::kUnavailable);
  AnswerAll(kYes);  // where the store's answer takes a while, others are handed over before it
  for (int i = 0; i < 3; ++i) {
    AnswerAll(kYes);
    node.Pass(Millis(1'000));
  }
  EXPECT_LE(sinks.jobs.size(), 8U) << "what cannot be settled holds its room";
  EXPECT_EQ(FiguresOf().acked, 0U);
  FailSettles(std::nullopt);
  node.Pass(Millis(200));
  EXPECT_LE(4U, FiguresOf().acked);
  for (int i = 0; i < 5; ++i) AnswerAll(kYes);
  node.Pass(Millis(120'000));
  EXPECT_EQ(FiguresOf().acked, 20U);
  EXPECT_EQ(sinks.jobs.size(), 20U) << "none was delivered twice";
}

TEST_P(PushFailureTest, AStoreThatIsFullForAWhileForgetsNothingThatWasConfirmed) {
  Put(Pushed("t"));
  Submit(5);
  FailSettles(Code::kStorageFull);  // as a Redis whose disk is full: MISCONF
  AnswerAll(kYes);
  node.Pass(Millis(5'000));
  EXPECT_EQ(FiguresOf().acked, 0U);
  FailSettles(std::nullopt);
  node.Pass(Millis(120'000));
  EXPECT_EQ(FiguresOf().acked, 5U);
  EXPECT_EQ(sinks.jobs.size(), 5U) << "none was delivered twice";
}

// A Redis that takes no writes ends no leases either.
TEST_P(PushFailureTest, AStoreThatIsAwayForLongerThanALeaseForgetsNothingThatWasConfirmed) {
  for (const Code code : {Code::kStorageFull, Code::kUnavailable}) {
    sinks.jobs.clear();
    Put(Pushed("t", {{"in_flight", "5"}}));
    const uint64_t acked = FiguresOf().acked;
    Submit(5);
    FailSettles(code);
    for (auto& store : node.stores) store->fail_advances = code;
    AnswerAll(kYes);
    node.Pass(Millis(300'000));
    EXPECT_EQ(Outcomes("stale"), 0U);
    EXPECT_EQ(InFlight(), 0) << "only the answers are kept: others have room";
    FailSettles(std::nullopt);
    node.Pass(Millis(200));
    EXPECT_EQ(FiguresOf().acked - acked, 5U);
    for (auto& store : node.stores) store->fail_advances.reset();
    node.Pass(Millis(60'000));
    EXPECT_EQ(sinks.jobs.size(), 5U) << "none was delivered twice";
  }
}

// The store alone knows whether a lease has ended. This one has ended it, and the late answer changes nothing.
TEST_P(PushFailureTest, ASettlementIsTriedAfterItsLeaseAndTheStoreDecides) {
  Put(Pushed("t"));
  Submit(1);
  FailSettles(Code::kUnavailable);
  AnswerAll(kYes);
  node.Pass(Millis(30'250));
  EXPECT_EQ(Outcomes("stale"), 0U);
  EXPECT_EQ(InFlight(), 0) << "before the job comes again";
  FailSettles(std::nullopt);
  node.Pass(Millis(5'000));
  EXPECT_EQ(Outcomes("stale"), 1U);
  EXPECT_EQ(sinks.jobs.size(), 2U);
  AnswerAll(kYes);
  EXPECT_EQ(FiguresOf().acked, 1U);
}

TEST_P(PushFailureTest, AFullMailboxOnlyDelays) {
  Put(Pushed("t", {{"in_flight", "200"}}));
  for (size_t shard = 0; shard < node.loops.size(); ++shard) Submit(50, "t", shard);
  const size_t count = sinks.jobs.size();
  ASSERT_EQ(count, 50 * node.loops.size());
  for (auto& loop : node.loops) loop->full = true;
  AnswerAll(kYes);
  node.Pass(Millis(1'000));
  for (auto& loop : node.loops) loop->full = false;
  node.Pass(Millis(200));
  EXPECT_EQ(FiguresOf().acked, count);
  EXPECT_EQ(Outcomes("confirmed"), count);
}

TEST_P(PushFailureTest, AStoreThatWasAwayIsPushedFromAgain) {
  Put(Pushed("t"));
  for (auto& store : node.stores) store->fail = Code::kUnavailable;
  node.Pass(Millis(10'000));
  for (auto& store : node.stores) store->fail.reset();
  Submit(10);
  node.Pass(Millis(2'000));
  EXPECT_EQ(sinks.jobs.size(), 10U);
}

TEST_P(PushFailureTest, AClaimThatFailsOtherwiseIsMadeAgain) {
  Put(Pushed("t"));
  const auto claims = [this] {
    size_t sum = 0;
    for (const auto& store : node.stores) sum += store->claims;
    return sum;
  };
  for (auto& store : node.stores) store->fail_claims = Code::kOverloaded;
  const size_t before = claims();
  Submit(3);
  node.Pass(Millis(10'000));
  EXPECT_GE(claims() - before, 5U);
  EXPECT_LE(claims() - before, 12U) << "and not all the time";
  for (auto& store : node.stores) store->fail_claims.reset();
  node.Pass(Millis(2'000));
  EXPECT_EQ(sinks.jobs.size(), 3U);
}

TEST_P(PushFailureTest, ASinkThatCannotBeOpenedIsTriedAgain) {
  sinks.refuse_open = Error{Code::kInvalidArgument, "no secret orders", {}};
  const Time since = node.clock.Now().steady;
  Put(Pushed("t"));
  Submit(5);
  EXPECT_EQ(FiguresOf().ready, 5U) << "jobs are taken all the same";
  const auto broken = node.metrics.GetGauge("tocsin_push_broken", "", {{"topic", "t"}, {"sink", "webhook"}});
  EXPECT_EQ(broken->Value(), 1);
  const size_t opens = sinks.opens;
  node.Pass(Millis(20'000));
  EXPECT_EQ(sinks.opens - opens, 4U) << "every 5 s";
  EXPECT_EQ(TroubleOf().broken_at, since) << "as alerts see it";
  sinks.refuse_open.reset();
  node.Pass(Millis(5'000));
  EXPECT_EQ(broken->Value(), 0);
  EXPECT_EQ(sinks.jobs.size(), 5U);
  node.Pass(Millis(2'000));
  EXPECT_EQ(TroubleOf().broken_at, kNever);
}

TEST_P(PushFailureTest, FailuresAreInTheFiguresWithTheTimeOfTheLast) {
  Put(Pushed("t"));
  Submit(3);
  AnswerAll(Later(Millis(60'000)));
  const Time last = node.clock.Now().steady;
  node.Pass(Millis(10'000));
  EXPECT_EQ(TroubleOf().failures, 3U);
  EXPECT_EQ(TroubleOf().failed_at, last);
}

TEST_P(PushFailureTest, TheNodeStopsWhenItsSinksHaveClosed) {
  Put(Pushed("t", {{"in_flight", "10"}}));
  Submit(20);
  sinks.Answer(sinks.jobs[0], kYes);  // not settled yet
  sinks.hold_close = true;
  Stop();
  EXPECT_FALSE(stopped);
  EXPECT_EQ(sinks.jobs.size(), 10U) << "nothing new is claimed";
  sinks.Answer(sinks.jobs[1], kYes);
  node.Run();
  EXPECT_FALSE(stopped);
  sinks.FinishClosing();  // the others are to be tried again
  node.Run();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(Sum(&TopicFigures::acked), 2U);
  EXPECT_EQ(Sum(&TopicFigures::nacked), 8U);
  EXPECT_EQ(Sum(&TopicFigures::leased), 0U);
  EXPECT_EQ(Sum(&TopicFigures::scheduled), 18U);
}

TEST_P(PushFailureTest, WhatASinkNeverSentCostsNoAttempt) {
  Topic topic = Pushed("t", {{"in_flight", "10"}});
  topic.max_attempts = 1;
  Put(topic);
  Submit(5);
  sinks.closes_unsent = true;
  topic.delivery.settings["in_flight"] = "11";
  Put(topic);
  EXPECT_EQ(FiguresOf().dead, 0U) << "no receiver has seen it";
  ASSERT_EQ(sinks.jobs.size(), 10U) << "due again at once, for the next sink";
  EXPECT_EQ(sinks.jobs.back().attempt, 1U);
  AnswerAll(kYes);
  EXPECT_EQ(FiguresOf().acked, 5U);
}

TEST_P(PushFailureTest, AReceiverThatFailsIsLoggedAndSoIsItsFirstConfirmation) {
  Topic topic = Pushed("t", {{"url", "https://receiver:8443/hooks/SECRET?key=SECRET"}});
  topic.backoff_base = topic.backoff_max = Millis(0);
  Put(topic);
  Submit(7);
  node.Run();
  ASSERT_EQ(sinks.jobs.size(), 7U);
  size_t next = 0;
  const auto answer = [&](const Delivered& delivered) {
    testing::internal::CaptureStderr();
    sinks.Answer(sinks.jobs[next++], delivered);
    return testing::internal::GetCapturedStderr();
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(answer(Later()), "");
  const std::string begun = answer(Later());
  EXPECT_TRUE(
      begun.ends_with(" warning receiver_failing state=begin topic=t sink=webhook to=https://receiver:8443 "
                      "error=\"the receiver is busy\"\n"))
      << begun;
  EXPECT_EQ(answer(Later()), "");
  const std::string ended = answer(kYes);
  EXPECT_TRUE(
      ended.contains(" warning receiver_failing state=end topic=t sink=webhook to=https://receiver:8443 "
                     "lasted_ms="))
      << ended;
}

TEST_P(PushFailureTest, FourHoursWithoutAReceiverCostNoAttemptAndFewTries) {
  Topic topic = Pushed("t", {{"in_flight", "1"}});
  topic.max_attempts = 1;
  Put(topic);
  sinks.script = [](const TestSinks::Job&) { return Unsent("no connection"); };
  Submit(20);
  const auto unreachable = node.metrics.GetGauge("tocsin_push_unreachable", "", {{"topic", "t"}, {"sink", "webhook"}});
  EXPECT_EQ(unreachable->Value(), 1);
  node.Pass(std::chrono::hours(4));
  EXPECT_EQ(FiguresOf().dead, 0U);
  EXPECT_EQ(FiguresOf().scheduled, 20U) << "they wait in the store";
  EXPECT_EQ(InFlight(), 0);
  EXPECT_LE(sinks.jobs.size(), 4U * 3600 / 5 + 100) << "a try every 5 s";
  EXPECT_GE(sinks.jobs.size(), 4U * 3600 / 6);
  sinks.script = [](const TestSinks::Job&) { return kYes; };
  node.Pass(Millis(6'000));
  EXPECT_EQ(FiguresOf().acked, 20U) << "all of them, as soon as one is confirmed";
  EXPECT_EQ(sinks.jobs.back().attempt, 1U);
  EXPECT_EQ(unreachable->Value(), 0);
}

TEST_P(PushFailureTest, AReceiverThatIsBackSoonIsFoundSoon) {
  Put(Pushed("t"));
  bool away = true;
  sinks.script = [&](const TestSinks::Job&) { return away ? Unsent("no connection") : kYes; };
  Submit(10);
  away = false;
  node.Pass(Millis(1'500));
  EXPECT_EQ(FiguresOf().acked, 10U);
  away = true;
  Submit(10);
  node.Pass(Millis(60'000));
  away = false;
  TestNode::Reply<Probed> reply;  // somebody tries it by hand
  node.service->Probe(node.at(0), "t", reply.Catch());
  node.Pass(Millis(1'500));
  EXPECT_EQ(FiguresOf().acked, 20U);
}

TEST_P(PushFailureTest, AfterTheWaitThatTheTopicChoseEachTryCostsAnAttempt) {
  for (const std::string_view wait : {"30000", "0"}) {
    Topic topic = Pushed("t", {{"outage_ms", std::string(wait)}});
    topic.max_attempts = 2;
    topic.backoff_max = Millis(1'000);
    Put(topic);
    sinks.script = [](const TestSinks::Job&) { return Unsent("no connection"); };
    const uint64_t dead = FiguresOf().dead;
    Submit(5);
    if (wait != "0") {
      node.Pass(Millis(29'000));
      EXPECT_EQ(FiguresOf().dead, dead);
    }
    node.Pass(Millis(10'000));
    EXPECT_EQ(FiguresOf().dead, dead + 5);
    EXPECT_EQ(FiguresOf().nacked, 2 * FiguresOf().dead) << "two attempts each";
  }
}

TEST_P(PushFailureTest, WhatDoesNotGetThroughRestsWhileOthersDo) {
  Topic topic = Pushed("t", {{"in_flight", "4"}});
  topic.max_attempts = 1;
  Put(topic);
  sinks.script = [](const TestSinks::Job& job) { return std::stoi(job.payload) < 2 ? Unsent("no leader") : kYes; };
  for (int second = 0; second < 20; ++second) {
    Submit(20);
    node.Pass(Millis(1'000));
  }
  node.Pass(Millis(30'000));
  EXPECT_EQ(FiguresOf().acked, 18U * 20) << "they take no room from the others";
  EXPECT_EQ(FiguresOf().dead, 0U);
  EXPECT_LE(sinks.jobs.size(), 18U * 20 + 40U * 51) << "not more than once a second each";
  sinks.script = [](const TestSinks::Job&) { return kYes; };
  node.Pass(Millis(10'000));
  EXPECT_EQ(FiguresOf().acked, 400U);
}

// A partition of Kafka that is away alone, say: the receiver is there, so its jobs keep their attempts.
TEST_P(PushFailureTest, WhatDoesNotGetThroughCostsNoAttemptWhileTheReceiverIsHeard) {
  Topic topic = Pushed("t", {{"outage_ms", "30000"}});
  topic.max_attempts = 1;
  Put(topic);
  sinks.script = [](const TestSinks::Job& job) { return job.payload == "0" ? Unsent("no leader") : kYes; };
  for (int round = 0; round < 10; ++round) {
    Submit(2);
    node.Pass(Millis(20'000));
  }
  EXPECT_EQ(FiguresOf().acked, 10U);
  EXPECT_EQ(FiguresOf().dead, 0U);
  node.Pass(Millis(20'000));  // nothing is heard for longer than outage_ms
  EXPECT_EQ(FiguresOf().dead, 10U);
}

TEST_P(PushFailureTest, AStopDoesNotWaitForAStoreThatIsAwayForLong) {
  Put(Pushed("t"));
  Submit(10);
  FailSettles(Code::kUnavailable);
  Stop();
  EXPECT_FALSE(stopped) << "it is tried for a while";
  node.Pass(Millis(3'000));
  EXPECT_TRUE(stopped);
}

TEST_P(PushFailureTest, AStopSettlesWhatAStoreTakesAfterAWhile) {
  Put(Pushed("t"));
  Submit(10);
  FailSettles(Code::kUnavailable);
  sinks.AnswerAll(kYes);
  Stop();
  node.Pass(Millis(500));
  FailSettles(std::nullopt);
  node.Pass(Millis(500));
  EXPECT_TRUE(stopped);
  EXPECT_EQ(Sum(&TopicFigures::acked), 10U);
}

TEST_P(PushFailureTest, AProbeIsAnsweredWhenTheNodeStops) {
  Put(Pushed("t"));
  TestNode::Reply<Probed> reply;
  node.service->Probe(node.at(1), "t", reply.Catch());
  node.Run();
  Stop();
  EXPECT_TRUE(stopped);
  ASSERT_TRUE(reply.got && *reply.got);
  EXPECT_EQ((*reply.got)->delivered.outcome, DeliverOutcome::kRetry);
}

TEST_P(PushFailureTest, AClaimThatComesBackAfterTheSinkClosedIsReleased) {
  Put(Pushed("t"));
  std::vector<Task> held;
  for (auto& store : node.stores) store->held = &held;
  Submit(1);
  node.Pass(Millis(1'000));
  ASSERT_FALSE(held.empty());
  Put(DefaultTopic("t"));
  for (auto& store : node.stores) store->held = nullptr;
  for (Task& task : std::exchange(held, {})) task();
  node.Run();
  EXPECT_EQ(sinks.jobs.size(), 0U);
  EXPECT_EQ(FiguresOf().leased, 0U);
  const auto reserved = node.Reserve("t");
  ASSERT_EQ(reserved->jobs.size(), 1U);
  EXPECT_EQ(reserved->jobs[0].attempt, 1U) << "no attempt was used up";
}

TEST_P(PushFailureTest, ACallerOfAPrefixChangesNoDeliveryWithWhatIsNotGivenToIt) {
  sinks.given = false;
  const auto change = [this](std::string prefix, TopicChange what) {
    TestNode::Reply<ChangedTopic> reply;
    node.service->ChangeTopic(node.at(0), {.topic = "shop-t", .change = std::move(what), .prefix = std::move(prefix)},
                              reply.Catch());
    node.Run();
    return reply.got->has_value() ? Code::kInternal : reply.got->error().code;
  };
  constexpr Code kDone = Code::kInternal;  // no error
  const auto delivery = [](std::string url) {
    TopicChange what;
    what.delivery = DeliveryChange{.sink = "webhook", .settings = {{"url", std::move(url)}, {"secret", "shop"}}};
    return what;
  };
  EXPECT_EQ(change("shop-", delivery("http://mine/")), Code::kForbidden);
  EXPECT_FALSE(node.service->Knows(node.at(0), "shop-t"));
  EXPECT_EQ(change("", delivery("http://receiver/")), kDone) << "who may use all topics may use everything";
  TopicChange url;
  url.delivery = DeliveryChange{.sink = {}, .settings = {{"url", "http://mine/"}}};
  EXPECT_EQ(change("shop-", url), Code::kForbidden) << "the secret would sign for another receiver";
  EXPECT_EQ(change("shop-", delivery("http://receiver/")), kDone) << "nothing changes";
  EXPECT_EQ(change("shop-", TopicChange().Set("paused", 1)), kDone);
  TopicChange pull;
  pull.delivery = DeliveryChange{.sink = "pull", .settings = {}};
  EXPECT_EQ(change("shop-", pull), kDone);
}

}  // namespace
}  // namespace tocsin
