#include "core/topic_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/test_node.h"

namespace tocsin {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr size_t kTopics = 1000;

class TopicReportsTest : public testing::TestWithParam<size_t> {
 protected:
  TopicReportsTest() {
    for (size_t i = 0; i < kTopics; ++i) (void)node.Submit(fmt::format("t{:04}", i), {NewJob{.payload = "x"}}, i);
    node.Pass(Millis(2000));
    Reset();
  }
  void Reset() {
    for (auto& store : node.stores) store->looks = store->walked = 0;
  }
  /// Runs the loops until none has anything to do. The most topics that one task of a loop has looked at.
  size_t LongestTurn() {
    size_t longest = 0;
    for (bool ran = true; ran;) {
      ran = false;
      for (size_t i = 0; i < node.loops.size(); ++i) {
        FaultyStore& store = *node.stores[i];
        const size_t before = store.looks + store.walked;
        ran = node.loops[i]->RunOne() || ran;
        longest = std::max(longest, store.looks + store.walked - before);
      }
    }
    return longest;
  }

  TestNode node{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Shards, TopicReportsTest, testing::Values(1, 2, 4));

TEST_P(TopicReportsTest, OneTopicCostsOneLookInEachStore) {
  TestNode::Reply<TopicReport> reply;
  node.service->ShowTopic(node.at(0), "t0500", reply.Catch());
  node.Run();
  EXPECT_EQ(reply.got->value().figures.accepted, 1U);
  for (const auto& store : node.stores) {
    EXPECT_EQ(store->looks, 1U);
    EXPECT_EQ(store->walked, 0U);
  }
  TestNode::Reply<TopicReport> unknown;
  node.service->ShowTopic(node.at(0), "none", unknown.Catch());
  node.Run();
  EXPECT_EQ(unknown.got->error().code, Code::kTopicNotFound);
}

TEST_P(TopicReportsTest, AListHasTheTopicsOfThePrefixByName) {
  TestNode::Reply<TopicReports> reply;
  node.service->Topics(node.at(1), "t012", reply.Catch());
  EXPECT_LE(LongestTurn(), 64U);
  ASSERT_EQ(reply.got->value().size(), 10U);
  EXPECT_EQ(reply.got->value()[3].figures.topic.name, "t0123");
  EXPECT_EQ(node.Topics().size(), kTopics);
}

TEST_P(TopicReportsTest, AScanForLostWakeUpsWaitsForNoLists) {
  node.clock.Advance(Millis(1000));
  FaultyStore& store = *node.stores[0];
  while (store.walked == 0) ASSERT_TRUE(node.loops[0]->RunOne());
  TestNode::Reply<TopicReports> lists[50];
  for (auto& list : lists) node.service->Topics(node.at(0), "", list.Catch());
  const size_t topics = store.Topics().size();
  size_t turns = 0;
  for (Reset(); store.walked < topics - 256; ++turns) ASSERT_TRUE(node.loops[0]->RunOne());
  EXPECT_LE(turns, 10U);
  node.Run();
}

TEST_P(TopicReportsTest, CallersShareTheWalkForTheTotalsAndNoTurnIsLong) {
  std::vector<TestNode::Reply<Totals>> replies(50);
  for (auto& reply : replies) node.service->Total(node.at(0), reply.Catch());
  TestNode::Reply<TopicReports> lists[5];
  for (auto& list : lists) node.service->Topics(node.at(0), "", list.Catch());
  EXPECT_LE(LongestTurn(), 64U) << "also if several walks are under way";
  for (auto& reply : replies) {
    EXPECT_EQ(reply.got->value().topics, kTopics);
    EXPECT_EQ(reply.got->value().figures.accepted, kTopics);
  }
  for (auto& list : lists) EXPECT_EQ(list.got->value().size(), kTopics);
  for (const auto& store : node.stores)
    EXPECT_EQ(store->looks, (1 + 1 + 5) * kTopics) << "one walk, and one for the rest";
}

TEST_P(TopicReportsTest, AScanReadsTheTopicsInParts) {
  node.clock.Advance(Millis(1000));
  EXPECT_LE(LongestTurn(), 256U);
  for (const auto& store : node.stores) EXPECT_EQ(store->walked, kTopics);
  EXPECT_THAT(node.metrics.RenderPrometheus(), HasSubstr("tocsin_jobs_accepted_total{topic=\"t0999\"} 1\n"));
}

TEST_P(TopicReportsTest, ATopicThatIsDroppedDuringAScanIsNotShownAgain) {
  node.clock.Advance(Millis(1000));
  for (auto& loop : node.loops) loop->RunOne();  // each has begun its scan
  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(0), "t0001", dropped.Catch());
  node.Run();
  EXPECT_THAT(node.metrics.RenderPrometheus(), Not(HasSubstr("t0001")));
  node.Pass(Millis(3000));
  EXPECT_THAT(node.metrics.RenderPrometheus(), Not(HasSubstr("t0001")));
  (void)node.Submit("t0001", {NewJob{.payload = "x"}});
  node.Pass(Millis(3000));
  EXPECT_THAT(node.metrics.RenderPrometheus(), HasSubstr("tocsin_jobs_accepted_total{topic=\"t0001\"} 1\n"));
}

TEST_P(TopicReportsTest, AStopWaitsForAWalk) {
  TestNode::Reply<Totals> reply;
  node.service->Total(node.at(0), reply.Catch());
  EXPECT_TRUE(node.Stop());
  EXPECT_EQ(reply.got->value().topics, kTopics);
}

TEST_P(TopicReportsTest, ACursorOfAnotherTopicIsRefused) {
  (void)node.Submit("t0001", {NewJob{.payload = "x"}, NewJob{.payload = "y"}});
  TestNode::Reply<Page> page;
  node.service->List(node.at(0), {.topic = "t0001", .limit = 1}, page.Catch());
  node.Run();
  const std::string cursor = page.got->value().cursor;
  ASSERT_FALSE(cursor.empty());
  TestNode::Reply<Page> own;
  node.service->List(node.at(0), {.topic = "t0001", .cursor = cursor, .limit = 10}, own.Catch());
  TestNode::Reply<Page> other;
  node.service->List(node.at(0), {.topic = "t0002", .cursor = cursor, .limit = 10}, other.Catch());
  node.Run();
  EXPECT_EQ(own.got->value().jobs.jobs.size(), 2U);
  EXPECT_EQ(other.got->error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace tocsin
