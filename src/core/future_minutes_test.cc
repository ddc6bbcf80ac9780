#include "core/future_minutes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/test_node.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class FutureMinutesTest : public testing::TestWithParam<size_t> {
 protected:
  void SubmitAt(Time due, size_t jobs) {
    for (size_t i = 0; i < jobs; ++i) {
      (void)node.Submit("orders", {NewJob{.timeline = Timeline::kUtc, .due = due, .payload = "x"}}, i);
    }
  }
  Result<FutureFinding> Search(uint64_t limit, std::string topic = "orders", ClearHours clear = {}) {
    TestNode::Reply<FutureFinding> reply;
    FindFullMinute(*node.service, node.at(0), {std::move(topic), limit, std::move(clear)}, Now(), reply.Catch());
    node.Run();
    return *std::move(reply.got);
  }
  std::optional<FutureMinute> Find(uint64_t limit) { return Search(limit).value().full; }
  size_t Loads() { return node.stores[0]->loads; }
  Time Now() { return node.clock.Now().utc; }
  Time Minute(Time time) { return std::chrono::floor<std::chrono::minutes>(time); }

  TestNode node{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Shards, FutureMinutesTest, testing::Values(1, 2));

TEST_P(FutureMinutesTest, FindsTheFirstMinuteWithMoreJobs) {
  const Time first = Minute(Now()) + 3h;
  SubmitAt(first, 4);
  SubmitAt(first + 59s, 2);
  SubmitAt(first + 1min, 9);
  SubmitAt(Minute(Now()) + 10min, 5);
  const auto found = Find(5);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->minute, first);
  EXPECT_EQ(found->jobs, 6U);
  EXPECT_EQ(Find(6).value().jobs, 9U);
  EXPECT_FALSE(Find(9));
}

TEST_P(FutureMinutesTest, AnHourMayHoldManyAndNoneOfItsMinutes) {
  for (int i = 1; i <= 5; ++i) SubmitAt(Minute(Now()) + i * 1min, 3);
  SubmitAt(Minute(Now()) + 5h, 4);
  EXPECT_EQ(Find(3).value().jobs, 4U);
}

TEST_P(FutureMinutesTest, LooksFromTheNextMinuteOnForADay) {
  SubmitAt(Now() + 1ms, 5);
  SubmitAt(Minute(Now()) + 1min + AlertWatch::kFutureLength, 5);
  EXPECT_FALSE(Find(4));
  SubmitAt(Minute(Now()) + 1min, 5);
  EXPECT_EQ(Find(4).value().minute, Minute(Now()) + 1min);
}

TEST_P(FutureMinutesTest, AStoreThatRefusesToCountSoMuchAtOnceIsAskedForLess) {
  const Time minute = Minute(Now()) + 23h;
  SubmitAt(minute, 5);
  for (const auto& store : node.stores) store->load_refused = 7;
  EXPECT_EQ(Find(4).value().minute, minute);
  for (const auto& store : node.stores) store->load_refused = 2;
  EXPECT_EQ(Find(4).value().minute, minute);
  for (const auto& store : node.stores) store->load_refused = 1;
  EXPECT_EQ(Search(4).error().code, Code::kInvalidArgument);
}

TEST_P(FutureMinutesTest, AnHourThatWasClearIsSearchedAgainOnlyIfThatMayHaveChanged) {
  const Time hour = std::chrono::floor<std::chrono::hours>(Now()) + 3h;
  for (int i = 0; i < 3; ++i) SubmitAt(hour + i * 1min, 3);
  const ClearHours clear = Search(4).value().clear;
  ASSERT_EQ(clear.size(), 1U);
  EXPECT_EQ(clear.begin()->first, hour);
  EXPECT_EQ(clear.begin()->second.fullest, 3U);
  const auto searched = [&](uint64_t limit) {
    const size_t before = Loads();
    EXPECT_EQ(Search(limit, "orders", clear).value().clear.size(), 1U);
    return Loads() - before > 1;  // more than the hours
  };
  EXPECT_FALSE(searched(4));
  SubmitAt(hour + 10min, 1);
  EXPECT_FALSE(searched(4)) << "no minute can have more than four";
  SubmitAt(hour + 11min, 1);
  EXPECT_TRUE(searched(4));
  node.clock.Advance(ClearHour::kKept);
  EXPECT_TRUE(searched(5)) << "jobs may have been moved";
}

TEST_P(FutureMinutesTest, ATopicThatIsGoneIsAnError) {
  EXPECT_EQ(Search(1, "none").error().code, Code::kTopicNotFound);
}

}  // namespace
}  // namespace tocsin
