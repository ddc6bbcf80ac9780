// What is pushed: outcomes, bounds, changes of the topic, probes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/push_test.h"

namespace tocsin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class DispatcherTest : public PushTest {
 protected:
  std::vector<std::string> DeadReasons() {
    TestNode::Reply<Page> reply;
    node.service->List(node.at(0), {"t", OfState(State::kDead), "", 100}, reply.Catch());
    node.Run();
    std::vector<std::string> reasons;
    for (const JobView& job : reply.got->value().jobs.jobs) reasons.emplace_back(job.reason);
    return reasons;
  }
  Result<Probed> Probe(const std::string& topic, size_t shard = 0) {
    TestNode::Reply<Probed> reply;
    node.service->Probe(node.at(shard), topic, reply.Catch());
    node.Run();
    return std::move(*reply.got);
  }
};

INSTANTIATE_TEST_SUITE_P(Shards, DispatcherTest, testing::Combine(testing::Values(1, 2, 4), testing::Bool()),
                         PushTestName);

TEST_P(DispatcherTest, WhatIsConfirmedIsDone) {
  Put(Pushed("t"));
  Submit(40);
  EXPECT_EQ(sinks.jobs.size(), 40U);
  EXPECT_EQ(FiguresOf().leased, 40U);
  EXPECT_EQ(InFlight(), 40);
  AnswerAll(kYes);
  EXPECT_EQ(FiguresOf().acked, 40U);
  EXPECT_EQ(Outcomes("confirmed"), 40U);
  EXPECT_EQ(InFlight(), 0);
  node.Pass(Millis(60'000));
  EXPECT_EQ(sinks.jobs.size(), 40U);
}

TEST_P(DispatcherTest, AJobIsHandedOverWhenItIsDue) {
  Put(Pushed("t"));
  ASSERT_TRUE(node.Submit("t", {NewJob{.id = "a", .delay = Millis(2345)}}));
  node.Pass(Millis(2344));
  EXPECT_EQ(sinks.jobs.size(), 0U);
  node.Pass(Millis(1));
  ASSERT_EQ(sinks.jobs.size(), 1U);
  EXPECT_EQ(sinks.jobs[0].id, "a");
  EXPECT_EQ(sinks.jobs[0].attempt, 1U);
}

TEST_P(DispatcherTest, WhatIsToBeRetriedComesAgainAfterTheTopicsBackOff) {
  Put(Pushed("t"));
  Submit(1);
  AnswerAll(Later());
  EXPECT_EQ(FiguresOf().nacked, 1U);
  node.Pass(Millis(999));
  EXPECT_EQ(sinks.jobs.size(), 1U);
  node.Pass(Millis(251));
  ASSERT_EQ(sinks.jobs.size(), 2U);
  EXPECT_EQ(sinks.jobs[1].attempt, 2U);
  EXPECT_EQ(Outcomes("retry"), 1U);
}

TEST_P(DispatcherTest, FailuresInARowAreCountedUntilAConfirmationOrAnotherSink) {
  Put(Pushed("t"));
  Submit(3);
  AnswerAll(Later());
  EXPECT_EQ(FailuresInARow(), 3);
  Submit(1);
  AnswerAll(Refuse("no"));
  EXPECT_EQ(FailuresInARow(), 4);
  Submit(1);
  AnswerAll(kYes);
  EXPECT_EQ(FailuresInARow(), 0);
  Submit(1);
  AnswerAll(Later());
  EXPECT_EQ(FailuresInARow(), 1);
  Topic topic = DefaultTopic("t");
  topic.delivery = {.sink = "kafka", .settings = {}};
  Put(topic);
  EXPECT_EQ(FailuresInARow(), 0);
}

TEST_P(DispatcherTest, LatenessIsFromTheDueTimeOfTheAttemptAndOnlyOfWhatIsConfirmed) {
  Put(Pushed("t", {{"in_flight", "1"}}));
  Submit(3);
  node.Pass(Millis(120));
  AnswerAll(kYes);
  node.Pass(Millis(80));
  AnswerAll(kYes);  // it had waited for the first one
  node.Pass(Millis(30));
  AnswerAll(Later(Millis(1'000)));
  node.Pass(Millis(1'000));
  node.Pass(Millis(40));
  AnswerAll(kYes);
  EXPECT_NEAR(SecondsOf("tocsin_push_seconds"), 0.120 + 0.080 + 0.030 + 0.040, 1e-6);
  EXPECT_NEAR(SecondsOf("tocsin_push_lateness_seconds"), 0.120 + 0.200 + 0.040, 1e-6);
}

TEST_P(DispatcherTest, TheDelayThatAReceiverAsksForIsHonoured) {
  Put(Pushed("t"));
  Submit(1);
  AnswerAll(Later(Millis(5'000)));
  node.Pass(Millis(4'999));
  EXPECT_EQ(sinks.jobs.size(), 1U);
  node.Pass(Millis(1));
  EXPECT_EQ(sinks.jobs.size(), 2U);
}

TEST_P(DispatcherTest, ADelayOutOfRangeIsBroughtIntoIt) {
  Put(Pushed("t"));
  Submit(1);
  AnswerAll(Later(Millis(-5)));
  ASSERT_EQ(sinks.jobs.size(), 2U);
  AnswerAll(Later(Millis::max()));
  EXPECT_EQ(FiguresOf().scheduled, 1U);
  EXPECT_EQ(Outcomes("retry"), 2U);
}

TEST_P(DispatcherTest, WhatIsRefusedIsADeadLetterAtOnceWithTheReason) {
  Put(Pushed("t"));
  Submit(1);
  AnswerAll(Never("422 unknown customer"));
  EXPECT_EQ(FiguresOf().dead, 1U);
  EXPECT_THAT(DeadReasons(), ElementsAre("422 unknown customer"));
  EXPECT_EQ(Outcomes("refused"), 1U);
  node.Pass(Millis(60'000));
  EXPECT_EQ(sinks.jobs.size(), 1U);
}

TEST_P(DispatcherTest, ALongReasonIsCutAtACharacter) {
  Put(Pushed("t"));
  Submit(1);
  std::string reason = "x";
  for (int i = 0; i < 1000; ++i) reason += "\xc3\xa9";
  AnswerAll(Never(reason));
  EXPECT_THAT(DeadReasons(), ElementsAre(reason.substr(0, 1023)));
}

TEST_P(DispatcherTest, NoAttemptIsBeyondTheMaximum) {
  Topic topic = Pushed("t");
  topic.max_attempts = 3;
  Put(topic);
  sinks.script = [](const auto&) { return Later(Millis(10)); };
  Submit(20);
  node.Pass(Millis(60'000));
  EXPECT_EQ(sinks.jobs.size(), 60U);
  EXPECT_EQ(std::ranges::max(sinks.jobs, {}, &TestSinks::Job::attempt).attempt, 3U);
  EXPECT_EQ(FiguresOf().dead, 20U);
}

TEST_P(DispatcherTest, NoMoreThanInFlightAreHeld) {
  Put(Pushed("t", {{"in_flight", "7"}}));
  Submit(500);
  for (size_t i = 0; i < 500; ++i) {
    const auto next = std::ranges::find(sinks.jobs, false, &TestSinks::Job::answered);
    ASSERT_NE(next, sinks.jobs.end());
    sinks.Answer(*next, kYes);
    if (i % 3 != 0 && sinks.under_way > 0) continue;  // several answers in one turn
    node.Run();
    ASSERT_LE(Sum(&TopicFigures::leased), 7U);
  }
  node.Run();
  EXPECT_EQ(FiguresOf().acked, 500U);
  EXPECT_EQ(sinks.under_way_max, 7U);
}

TEST_P(DispatcherTest, AReceiverDoesNotWaitForTheDisk) {
  std::vector<Task> held;
  for (auto& store : node.stores) store->held_settles = &held;
  Put(Pushed("t", {{"in_flight", "5"}}));
  Submit(3000);
  for (int i = 0; i < 1000; ++i) AnswerAll(kYes);
  EXPECT_EQ(sinks.under_way_max, 5U);
  EXPECT_EQ(sinks.jobs.size(), 1005U) << "a thousand that are being settled, and in_flight";
  for (auto& store : node.stores) store->held_settles = nullptr;
  for (Task& task : std::exchange(held, {})) task();
  for (int i = 0; i < 1000; ++i) AnswerAll(kYes);
  EXPECT_EQ(FiguresOf().acked, 3000U);
  EXPECT_EQ(sinks.under_way_max, 5U);
}

TEST_P(DispatcherTest, BytesAreBoundedToo) {
  Put(Pushed("t", {{"in_flight", "10000"}}));
  for (auto& store : node.stores) store->cut_claims = true;
  const std::string payload(1 << 20, 'p');
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(node.Submit("t", {NewJob{.payload = payload}}));
  EXPECT_EQ(sinks.jobs.size(), 64U);
  AnswerAll(kYes);
  EXPECT_EQ(sinks.jobs.size(), 100U);
}

TEST_P(DispatcherTest, TheRateIsKept) {
  Put(Pushed("t", {{"rate", "100"}}));
  sinks.script = [](const auto&) { return kYes; };
  Submit(300);
  EXPECT_EQ(sinks.jobs.size(), 10U);
  node.Pass(Millis(1'000));
  EXPECT_GE(sinks.jobs.size(), 105U);
  EXPECT_LE(sinks.jobs.size(), 110U);
  node.Pass(Millis(1'000));
  EXPECT_GE(sinks.jobs.size(), 205U);
  EXPECT_LE(sinks.jobs.size(), 210U);
  node.Pass(Millis(1'000));
  EXPECT_EQ(FiguresOf().acked, 300U);
}

TEST_P(DispatcherTest, JobsOfASlotKeepTheirOrder) {
  Topic topic = Pushed("t", {{"in_flight", "10"}});
  topic.slots = 1;
  Put(topic);
  sinks.script = [](const auto&) { return kYes; };
  Submit(300);
  ASSERT_EQ(sinks.jobs.size(), 300U);
  for (size_t i = 0; i < 300; ++i) ASSERT_EQ(sinks.jobs[i].payload, std::to_string(i));
}

TEST_P(DispatcherTest, AHangingSinkHoldsNoOtherTopic) {
  Put(Pushed("t"));
  Put(Pushed("u"));
  Submit(1000, "t");
  sinks.script = [](const auto& job) { return job.topic == "u" ? std::optional(kYes) : std::nullopt; };
  Submit(1000, "u");
  node.Pass(Millis(10));
  EXPECT_EQ(FiguresOf("u").acked, 1000U);
  EXPECT_EQ(sinks.CountOf("t"), 64U);
  EXPECT_EQ(FiguresOf("t").acked, 0U);
}

TEST_P(DispatcherTest, APausedTopicIsNotPushed) {
  Topic topic = Pushed("t", {{"in_flight", "5"}});
  Put(topic);
  Submit(10);
  ASSERT_EQ(sinks.jobs.size(), 5U);
  topic.paused = true;
  Put(topic);
  AnswerAll(kYes);
  EXPECT_EQ(FiguresOf().acked, 5U) << "what was under way is settled";
  node.Pass(Millis(10'000));
  EXPECT_EQ(sinks.jobs.size(), 5U);
  topic.paused = false;
  Put(topic);
  EXPECT_EQ(sinks.jobs.size(), 10U);
  EXPECT_EQ(sinks.made, 1U) << "the sink stays";
}

TEST_P(DispatcherTest, AChangeOfTheDeliveryClosesTheOldSinkFirst) {
  Put(Pushed("t", {{"in_flight", "5"}}));
  Submit(10);
  sinks.hold_close = true;
  Put(Pushed("t", {{"in_flight", "6"}}));
  node.Pass(Millis(3'000));
  EXPECT_EQ(sinks.made, 1U);
  EXPECT_EQ(sinks.jobs.size(), 5U) << "nothing new goes to a sink that is closing";
  AnswerAll(kYes);
  EXPECT_EQ(FiguresOf().acked, 5U);
  sinks.FinishClosing();
  node.Run();
  EXPECT_EQ(sinks.made, 2U);
  EXPECT_EQ(sinks.jobs.size(), 10U);
  EXPECT_EQ(sinks.jobs.back().sink, 2U);
  AnswerAll(kYes);
  EXPECT_EQ(FiguresOf().acked, 10U);
}

TEST_P(DispatcherTest, NothingIsShownInFlightOfASinkThatIsNoMore) {
  Put(Pushed("t"));
  Submit(10);
  EXPECT_EQ(InFlight(), 10);
  Topic topic = DefaultTopic("t");
  topic.delivery = {.sink = "kafka", .settings = {}};
  Put(topic);
  EXPECT_EQ(sinks.made, 2U);
  EXPECT_EQ(InFlight(), 0);
}

TEST_P(DispatcherTest, ATopicThatIsDroppedUnderWayIsForgotten) {
  Put(Pushed("t"));
  Submit(10);
  sinks.hold_close = true;
  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(0), "t", dropped.Catch());
  node.Run();
  ASSERT_TRUE(dropped.got && *dropped.got);
  AnswerAll(kYes);
  sinks.FinishClosing();
  node.Run();
  EXPECT_EQ(sinks.open, 0U);
  EXPECT_THAT(node.metrics.RenderPrometheus(), Not(HasSubstr("topic=\"t\"")));
  sinks.hold_close = false;
  Put(Pushed("t"));
  Submit(3);
  AnswerAll(kYes);
  EXPECT_EQ(FiguresOf().acked, 3U);
}

TEST_P(DispatcherTest, ATopicThatIsMadeAgainWhileItsSinkClosesIsPushedAgain) {
  Put(Pushed("t"));
  Submit(10);
  sinks.hold_close = true;
  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(0), "t", dropped.Catch());
  node.Run();
  Put(Pushed("t"));
  Submit(2);
  EXPECT_EQ(sinks.jobs.size(), 10U);
  sinks.FinishClosing();
  node.Run();
  EXPECT_EQ(sinks.jobs.size(), 12U);
  AnswerAll(kYes);
  EXPECT_EQ(FiguresOf().acked, 2U);
}

TEST_P(DispatcherTest, ATopicThatAnotherNodeDropsAndMakesAgainGetsAnotherSink) {
  SharedTopics shared;
  for (auto& store : node.stores) store->shared = &shared;
  Put(Pushed("t"));
  Topic again = Pushed("t");
  again.slots = 1;
  again.version = 1;
  shared["t"] = again;
  node.memory[0]->PutTopic(again, [](Result<void>) {});
  node.stores[0]->topic_changes = {.changed = {HeardTopic{again}}, .dropped = {"t"}};
  node.stores[0]->changed();
  node.Run();
  EXPECT_EQ(sinks.made, 2U);
  EXPECT_THAT(node.metrics.RenderPrometheus(), HasSubstr("tocsin_push_in_flight{topic=\"t\""));
}

TEST_P(DispatcherTest, ConsumersAndASinkExcludeEachOther) {
  Put(DefaultTopic("t"));
  TestNode::Reply<JobBatch> parked;
  node.service->Reserve(node.at(1), {"t", 1, Millis(60'000), Millis(0)}, parked.Catch());
  node.Run();
  ASSERT_FALSE(parked.got);
  Put(Pushed("t"));
  ASSERT_TRUE(parked.got) << "it would wait in vain";
  EXPECT_TRUE(parked.got->value().jobs.empty());
  Submit(2);
  ASSERT_EQ(sinks.jobs.size(), 2U);
  const auto refused = node.Reserve("t", 1, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("webhook"));
  AnswerAll(kYes);
  Put(DefaultTopic("t"));
  EXPECT_EQ(sinks.open, 0U);
  Submit(2);
  EXPECT_EQ(sinks.jobs.size(), 2U);
  EXPECT_FALSE(node.Reserve("t", 2)->jobs.empty());
}

TEST_P(DispatcherTest, ATopicWithASinkIsPushedFromTheStart) {
  Put(Pushed("t"));
  ASSERT_TRUE(node.Submit("t", {NewJob{.delay = Millis(1000)}}));
  ASSERT_TRUE(node.Stop());
  EXPECT_EQ(sinks.open, 0U);
  node.Open();
  EXPECT_EQ(sinks.open, 1U);
  node.Pass(Millis(1000));
  EXPECT_EQ(sinks.jobs.size(), 1U);
}

TEST_P(DispatcherTest, WhatTheSinksCannotServeIsRefused) {
  sinks.check = Error{Code::kInvalidArgument, "no secret orders", "delivery.secret"};
  const auto refused = node.PutTopic(Pushed("t"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "delivery.secret");
  sinks.check.reset();
  Put(Pushed("t"));
  // What does not name the delivery is not refused for it.
  sinks.check = Error{Code::kInvalidArgument, "no secret orders", "delivery.secret"};
  TestNode::Reply<ChangedTopic> reply;
  node.service->ChangeTopic(node.at(0), {"t", TopicChange().Set("paused", 1)}, reply.Catch());
  node.Run();
  EXPECT_TRUE(reply.got->has_value());
}

TEST(NodeWithoutSinks, RefusesATopicWithOne) {
  TestNode node(1);
  Topic topic = DefaultTopic("t");
  topic.delivery = {.sink = "webhook", .settings = {{"url", "http://receiver/"}}};
  const auto refused = node.PutTopic(topic);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_EQ(refused.error().field, "delivery.sink");
  EXPECT_THAT(refused.error().message, HasSubstr("this server has no sinks"));
}

TEST(DispatcherOnOneShard, AnswersOfOneTurnAreSettledTogether) {
  TestSinks sinks;
  TestNode node(1, false, {}, &sinks);
  Topic topic = DefaultTopic("t");
  topic.delivery = {.sink = "webhook", .settings = {{"url", "http://receiver/"}, {"in_flight", "50"}}};
  ASSERT_TRUE(node.PutTopic(topic));
  ASSERT_TRUE(node.Submit("t", std::vector<NewJob>(100)));
  ASSERT_EQ(sinks.jobs.size(), 50U);
  const size_t claims = node.stores[0]->claims;
  sinks.AnswerAll({});
  node.Run();
  EXPECT_EQ(node.stores[0]->settles, 1U);
  EXPECT_EQ(node.stores[0]->claims, claims + 1);
  EXPECT_EQ(sinks.jobs.size(), 100U);
}

TEST(DispatcherOnOneShard, ItsReserveTakesNoConsumersPlace) {
  TestSinks sinks;
  TestNode node(1, false, {.waiters = 1}, &sinks);
  Topic topic = DefaultTopic("t");
  topic.delivery = {.sink = "webhook", .settings = {{"url", "http://receiver/"}}};
  ASSERT_TRUE(node.PutTopic(topic));
  TestNode::Reply<JobBatch> first;
  TestNode::Reply<JobBatch> second;
  node.service->Reserve(node.at(0), {"u", 1, Millis(1000), Millis(0)}, first.Catch());
  node.service->Reserve(node.at(0), {"u", 1, Millis(1000), Millis(0)}, second.Catch());
  topic.name = "v";
  ASSERT_TRUE(node.PutTopic(topic));
  EXPECT_FALSE(first.got);
  ASSERT_TRUE(second.got);
  EXPECT_EQ(second.got->error().code, Code::kOverloaded);
  ASSERT_TRUE(node.Submit("t", {NewJob{}}));
  ASSERT_TRUE(node.Submit("v", {NewJob{}}));
  EXPECT_EQ(sinks.jobs.size(), 2U) << "nor is it refused";
}

TEST_P(DispatcherTest, AProbeGoesThroughTheSinkAndIsNotStored) {
  Put(Pushed("t"));
  TestNode::Reply<Probed> reply;
  node.service->Probe(node.at(1), "t", reply.Catch());
  node.Run();
  ASSERT_EQ(sinks.jobs.size(), 1U);
  EXPECT_EQ(sinks.jobs[0].id, "probe");
  EXPECT_EQ(sinks.jobs[0].payload, R"({"probe":true})");
  EXPECT_THAT(sinks.jobs[0].headers, ElementsAre(testing::Pair("tocsin-probe", "true")));
  ASSERT_FALSE(reply.got);
  node.Pass(Millis(120));
  AnswerAll(Never("404 no such path"));
  ASSERT_TRUE(reply.got && *reply.got);
  EXPECT_EQ((*reply.got)->took, Millis(120));
  EXPECT_EQ((*reply.got)->delivered.outcome, DeliverOutcome::kRefused);
  EXPECT_EQ((*reply.got)->delivered.reason, "404 no such path");
  EXPECT_EQ(FiguresOf().accepted, 0U);
  EXPECT_EQ(Outcomes("refused"), 0U);
}

TEST_P(DispatcherTest, AProbeDoesNotWaitForeverForASinkThatDoes) {
  Put(Pushed("t"));
  TestNode::Reply<Probed> reply;
  node.service->Probe(node.at(1), "t", reply.Catch());
  node.Pass(Millis(5900));
  ASSERT_FALSE(reply.got);
  node.Pass(Millis(200));
  ASSERT_TRUE(reply.got && *reply.got);
  EXPECT_EQ((*reply.got)->delivered.outcome, DeliverOutcome::kRetry);
  EXPECT_THAT((*reply.got)->delivered.reason, HasSubstr("still waiting"));
  AnswerAll(kYes);  // nobody listens any more
  EXPECT_EQ(Outcomes("confirmed"), 0U);
}

TEST_P(DispatcherTest, AProbeWaitsForTheSinkThatIsBeingChanged) {
  sinks.hold_close = true;
  Topic topic = Pushed("t");
  Put(topic);
  topic.delivery.settings["in_flight"] = "7";
  Put(topic);
  TestNode::Reply<Probed> reply;
  node.service->Probe(node.at(1), "t", reply.Catch());
  node.Run();
  ASSERT_TRUE(sinks.jobs.empty());
  ASSERT_FALSE(reply.got);
  sinks.FinishClosing();
  node.Run();
  ASSERT_EQ(sinks.jobs.size(), 1U);
  EXPECT_EQ(sinks.jobs[0].sink, 2U);
  sinks.hold_close = false;
  AnswerAll(kYes);
  ASSERT_TRUE(reply.got && *reply.got);
}

TEST_P(DispatcherTest, AProbeNeedsASink) {
  EXPECT_EQ(Probe("nobody").error().code, Code::kTopicNotFound);
  Put(DefaultTopic("u"));
  EXPECT_EQ(Probe("u", 1).error().code, Code::kConflict);
  sinks.refuse_open = Error{Code::kInvalidArgument, "no secret orders", {}};
  Put(Pushed("t"));
  const auto closed = Probe("t", 1);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::kUnavailable);
  EXPECT_THAT(closed.error().message, HasSubstr("no secret orders"));
}

TEST_P(DispatcherTest, AProbeOfATopicThatIsPulledSinceAMomentNeedsASinkToo) {
  sinks.hold_close = true;
  Put(Pushed("t"));
  Put(DefaultTopic("t"));
  EXPECT_EQ(Probe("t", 1).error().code, Code::kConflict) << "although its sink is not closed yet";
  sinks.hold_close = false;
  sinks.FinishClosing();
  node.Run();
  EXPECT_EQ(Probe("t", 1).error().code, Code::kConflict);
}

TEST_P(DispatcherTest, ProbesAreBounded) {
  Put(Pushed("t"));
  std::vector<TestNode::Reply<Probed>> replies(9);
  for (auto& reply : replies) node.service->Probe(node.at(0), "t", reply.Catch());
  node.Run();
  EXPECT_EQ(sinks.jobs.size(), 8U);
  ASSERT_TRUE(replies[8].got);
  EXPECT_EQ(replies[8].got->error().code, Code::kOverloaded);
  AnswerAll(kYes);
  for (auto& reply : replies) EXPECT_TRUE(reply.got);
}

TEST_P(DispatcherTest, TheHolderOfWhatIsPushedIsTheSink) {
  Put(Pushed("t"));
  Submit(3);
  node.Run();
  std::set<std::string> holders;
  for (const auto& store : node.stores) holders.insert(store->holders.begin(), store->holders.end());
  EXPECT_EQ(holders, std::set<std::string>{"webhook"});
}

}  // namespace
}  // namespace tocsin
