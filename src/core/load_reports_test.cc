#include "core/load_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/test_node.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Result<LoadSpan> SpanOf(const LoadRequest& request) {
  const Moment now{FromMs(3'600'123), FromMs(0)};
  return LoadSpanOf(request, now);
}

TEST(LoadSpan, BeginsWithTheMinuteAndEndsWithAWholeStep) {
  const auto next_hour = SpanOf({});
  ASSERT_TRUE(next_hour);
  EXPECT_EQ(next_hour->from, FromMs(3'600'000));
  EXPECT_EQ(next_hour->steps, 60U);
  const auto odd = SpanOf({.from = FromMs(119'999), .to = FromMs(360'001), .step = 2min});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->from, FromMs(60'000));
  EXPECT_EQ(odd->step, 2min);
  EXPECT_EQ(odd->steps, 3U);
  EXPECT_EQ(odd->To(), FromMs(420'000));
}

TEST(LoadSpan, RefusesWhatCannotBeCounted) {
  const auto refusal = [](const LoadRequest& request) {
    const auto span = SpanOf(request);
    EXPECT_FALSE(span);
    return span ? Error{} : span.error();
  };
  EXPECT_EQ(refusal({.step = 90s}).field, "step");
  EXPECT_EQ(refusal({.step = 0min}).field, "step");
  EXPECT_EQ(refusal({.from = FromMs(60'000), .to = FromMs(60'000)}).field, "to");
  EXPECT_EQ(refusal({.from = FromMs(60'000), .to = FromMs(0)}).field, "to");
  EXPECT_EQ(refusal({.to = kLoadLast + 1ms, .step = 10'000h}).field, "to");
  const Error many = refusal({.from = FromMs(0), .to = FromMs(0) + 10'000min + 1ms});
  EXPECT_EQ(many.field, "step");
  EXPECT_THAT(many.message, HasSubstr("10001 steps"));
  EXPECT_TRUE(SpanOf({.from = FromMs(0), .to = FromMs(0) + 10'000min}));
}

class LoadReportsTest : public testing::TestWithParam<size_t> {
 protected:
  static NewJob JobIn(Millis delay) { return {.delay = delay, .payload = "x"}; }
  /// 12 topics, b00 to b11; the topic of number n has n jobs in the second hour, in several batches.
  LoadReportsTest() {
    for (size_t n = 0; n < 12; ++n) {
      for (size_t i = 0; i < n; ++i) (void)node.Submit(fmt::format("b{:02}", n), {JobIn(90min)}, i);
    }
    (void)node.Submit("a", {JobIn(90min), JobIn(150min), JobIn(0ms)});
    (void)node.Submit("b00", {JobIn(10h)});
    node.Pass(10ms);
  }
  LoadRequest ThreeHours(std::string topic = {}) {
    return {.topic = std::move(topic), .to = node.clock.Now().utc + 3h, .step = 1h};
  }
  Result<LoadReport> Ask(LoadRequest request, size_t shard = 0) {
    TestNode::Reply<LoadReport> reply;
    node.service->Load(node.at(shard), std::move(request), reply.Catch());
    node.Run();
    EXPECT_TRUE(reply.got);
    return std::move(*reply.got);
  }

  TestNode node{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Shards, LoadReportsTest, testing::Values(1, 2, 4));

TEST_P(LoadReportsTest, OneTopicIsSummedOverTheShards) {
  const auto report = Ask(ThreeHours("b11"), 1);
  ASSERT_TRUE(report);
  EXPECT_THAT(report->counts.jobs, SizeIs(4));  // the first step begins before now
  EXPECT_EQ(report->counts.jobs[1], 11U);
  EXPECT_EQ(report->counts.due, 0U);
  EXPECT_THAT(report->largest, SizeIs(0));
  EXPECT_EQ(Ask(ThreeHours("none")).error().code, Code::kTopicNotFound);
}

TEST_P(LoadReportsTest, AllTopicsAreOneCallOfEachStore) {
  for (const auto& store : node.stores) store->loads = 0;
  const auto report = Ask(ThreeHours());
  ASSERT_TRUE(report);
  EXPECT_THAT(report->counts.jobs, ElementsAre(0, 67, 1, 0));
  EXPECT_EQ(report->counts.due, 1U);
  for (const auto& store : node.stores) EXPECT_EQ(store->loads, 1U);
}

TEST_P(LoadReportsTest, APrefixSeesItsTopicsAlone) {
  LoadRequest request = ThreeHours();
  request.prefix = "b";
  const auto report = Ask(request);
  ASSERT_TRUE(report);
  EXPECT_THAT(report->counts.jobs, ElementsAre(0, 66, 0, 0));
  EXPECT_EQ(report->counts.due, 0U);
  request.prefix = "none";
  const auto none = Ask(request);
  ASSERT_TRUE(none);
  EXPECT_THAT(none->counts.jobs, SizeIs(4));
  EXPECT_THAT(none->counts.jobs, Each(0));
}

TEST_P(LoadReportsTest, TheLargestTopicsComeFirst) {
  for (const char* prefix : {"", "b"}) {
    LoadRequest request = ThreeHours();
    request.by_topic = true;
    request.prefix = prefix;
    const auto report = Ask(request);
    ASSERT_TRUE(report);
    ASSERT_THAT(report->largest, SizeIs(kLoadTopicsMax));
    EXPECT_EQ(report->largest.front().topic, "b11");
    EXPECT_THAT(report->largest.front().counts.jobs, ElementsAre(0, 11, 0, 0));
    EXPECT_EQ(report->largest.back().topic, *prefix == 0 ? "a" : "b02");  // a has 2 too, and comes first
  }
}

TEST_P(LoadReportsTest, AStoreMayCountAFewStepsAtATime) {
  for (const auto& store : node.stores) {
    store->load_max = 7;
    store->loads = 0;
  }
  LoadRequest request = ThreeHours();
  request.step = 1min;
  const auto report = Ask(request);
  ASSERT_TRUE(report);
  ASSERT_GE(report->counts.jobs.size(), 180U);
  EXPECT_EQ(report->counts.jobs[90] + report->counts.jobs[91], 67U);
  for (const auto& store : node.stores) EXPECT_EQ(store->loads, (report->counts.jobs.size() + 6) / 7);
}

TEST_P(LoadReportsTest, AFailureIsTheAnswer) {
  node.stores.back()->fail = Code::kUnavailable;
  for (const bool by_topic : {false, true}) {
    for (const char* prefix : {"", "b"}) {
      LoadRequest request = ThreeHours();
      request.by_topic = by_topic;
      request.prefix = prefix;
      EXPECT_EQ(Ask(request).error().code, Code::kUnavailable);
    }
  }
  EXPECT_EQ(Ask(ThreeHours("b11")).error().code, Code::kUnavailable);
}

TEST_P(LoadReportsTest, VeryManyTopicsOfAPrefixHaveLongerSteps) {
  for (size_t i = 0; i < 200; ++i) (void)node.Submit(fmt::format("c{}", i), {JobIn(90min)});
  LoadRequest request = ThreeHours();
  request.prefix = "c";
  request.step = 1min;
  request.to = node.clock.Now().utc + 10'000min - 1min;
  EXPECT_GT(Ask(request)->span.step, 1min) << "a shared store has no counts";
  node.shares_store = false;
  node.Open();
  EXPECT_EQ(Ask(request)->span.step, 1min);
  (void)node.Submit("c200", {JobIn(90min)});
  const auto longer = Ask(request);
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->span.step, 2min);
  EXPECT_THAT(longer->counts.jobs, SizeIs(5'000));
  EXPECT_GE(longer->span.To(), *request.to);
  EXPECT_EQ(longer->counts.jobs[45], 201U);
  request.prefix = "";
  EXPECT_EQ(Ask(request)->span.step, 1min);
}

}  // namespace
}  // namespace tocsin
