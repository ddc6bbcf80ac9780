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
  TestNode::TopicList list;
  list.Ask(node, 1, "t012");
  EXPECT_LE(LongestTurn(), 64U);
  ASSERT_EQ(list.figures.size(), 10U);
  EXPECT_EQ(list.figures[3].topic.name, "t0123");
  EXPECT_EQ(node.Topics().size(), kTopics);
}

TEST_P(TopicReportsTest, TopicsWithLeasedJobsAreFoundAmongManyWithoutALongTurn) {
  for (const char* name : {"t0003", "t0004", "t0777", "u"}) {
    if (name[0] == 'u') (void)node.Submit(name, {NewJob{.payload = "x"}});
    ASSERT_EQ(node.Reserve(name)->jobs.size(), 1U);
  }
  const auto found_behind = [this](std::string after) {
    std::vector<std::string> found;
    do {
      TestNode::Reply<NextTopics> next;
      node.service->NextLeased(node.at(0), "t", after, next.Catch());
      EXPECT_LE(LongestTurn(), 64U);
      for (const std::string& name : next.got->value().names) found.push_back(name);
      after = next.got->value().last;
    } while (!after.empty());
    return found;
  };
  EXPECT_EQ(found_behind("t0003").size(), kTopics - 4)
      << "other nodes that share the store may have leased jobs of any";
  node.shares_store = false;
  node.Open();
  EXPECT_EQ(found_behind("t0003"), (std::vector<std::string>{"t0004", "t0777"}));
}

TEST_P(TopicReportsTest, AListEndsWhereItsCallerWantsNoMore) {
  size_t taken = 0;
  TestNode::Reply<void> reply;
  const auto take = [&](const TopicReport&) -> Status {
    if (++taken < 10) return {};
    return Fail(Code::kOverloaded, "enough");
  };
  node.service->Topics(node.at(0), "", take, reply.Catch());
  LongestTurn();
  EXPECT_EQ(reply.got->error().message, "enough");
  EXPECT_EQ(taken, 10U);
  for (const auto& store : node.stores) EXPECT_LE(store->looks, 64U);
}

TEST_P(TopicReportsTest, AScanForLostWakeUpsWaitsForNoLists) {
  node.clock.Advance(Millis(1000));
  FaultyStore& store = *node.stores[0];
  while (store.walked == 0) ASSERT_TRUE(node.loops[0]->RunOne());
  TestNode::TopicList lists[50];
  for (auto& list : lists) list.Ask(node, 0);
  const size_t topics = store.Topics().size();
  size_t turns = 0;
  for (Reset(); store.walked < topics - 256; ++turns) ASSERT_TRUE(node.loops[0]->RunOne());
  EXPECT_LE(turns, 10U);
  node.Run();
}

TEST_P(TopicReportsTest, CallersShareTheWalkForTheTotalsAndNoTurnIsLong) {
  std::vector<TestNode::Reply<Totals>> replies(50);
  for (auto& reply : replies) node.service->Total(node.at(0), reply.Catch());
  TestNode::TopicList lists[5];
  for (auto& list : lists) list.Ask(node, 0);
  EXPECT_LE(LongestTurn(), 64U) << "also if several walks are under way";
  for (auto& reply : replies) {
    EXPECT_EQ(reply.got->value().topics, kTopics);
    EXPECT_EQ(reply.got->value().figures.accepted, kTopics);
  }
  for (auto& list : lists) EXPECT_EQ(list.figures.size(), kTopics);
  for (const auto& store : node.stores)
    EXPECT_EQ(store->looks, (1 + 1 + 5) * kTopics) << "one walk, and one for the rest";
}

TEST_P(TopicReportsTest, NoTurnAnswersAllCallersOfTheTotals) {
  std::vector<size_t> answered;
  constexpr size_t kCallers = 200;
  for (size_t i = 0; i < kCallers; ++i) {
    node.service->Total(node.at(0), [&answered, i](const Result<Totals>&) { answered.push_back(i); });
  }
  size_t longest = 0;
  for (bool ran = true; ran;) {
    ran = false;
    for (auto& loop : node.loops) {
      const size_t before = answered.size();
      ran = loop->RunOne() || ran;
      longest = std::max(longest, answered.size() - before);
    }
  }
  EXPECT_LE(longest, 16U);
  EXPECT_EQ(answered.size(), kCallers);
  EXPECT_TRUE(std::ranges::is_sorted(answered));
}

TEST_P(TopicReportsTest, AStopWaitsForTheAnswersOfAllCallers) {
  constexpr size_t kCallers = 200;
  std::vector<TestNode::Reply<Totals>> replies(kCallers);
  for (auto& reply : replies) node.service->Total(node.at(0), reply.Catch());
  EXPECT_TRUE(node.Stop());
  for (auto& reply : replies) EXPECT_TRUE(reply.got);
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

TEST(TopicLimits, ThereAreSoManyTopicsAndSoManyOfAPrefix) {
  TestNode node(2, false, {.topics = 6, .topics_per_prefix = 3});
  const auto submit = [&](const std::string& topic, const std::string& prefix) {
    TestNode::Reply<std::vector<Submitted>> reply;
    node.service->Submit(node.at(1), {.topic = topic, .jobs = {NewJob{.payload = "x"}}, .bytes = {}, .prefix = prefix},
                         reply.Catch());
    node.Run();
    return reply.got->has_value() ? std::string() : reply.got->error().message;
  };
  for (const char* topic : {"shop.a", "shop.b", "shop.c"}) EXPECT_EQ(submit(topic, "shop."), "");
  EXPECT_THAT(submit("shop.d", "shop."), HasSubstr("limits.topics_per_prefix"));
  EXPECT_EQ(submit("shop.a", "shop."), "") << "those that exist are served";
  TestNode::Reply<ChangedTopic> changed;
  node.service->ChangeTopic(node.at(0), {.topic = "shop.e", .change = {}, .prefix = "shop."}, changed.Catch());
  node.Run();
  EXPECT_EQ(changed.got->error().code, Code::kOverCapacity);
  EXPECT_EQ(submit("bank.a", "bank."), "") << "others are not held up";
  EXPECT_EQ(submit("shop.f", ""), "") << "nor is who may use all topics";
  EXPECT_EQ(submit("bank.b", "bank."), "");
  EXPECT_THAT(submit("bank.c", "bank."), HasSubstr("(limits.topics)"));
  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(1), "shop.b", dropped.Catch());
  node.Run();
  EXPECT_THAT(submit("shop.d", "shop."), HasSubstr("limits.topics_per_prefix")) << "shop.a, shop.c, shop.f";
  EXPECT_EQ(submit("bank.c", "bank."), "");
}

TEST(TopicLimits, ThoseThatAreBeingCreatedCount) {
  TestNode node(2, false, {.topics = 6, .topics_per_prefix = 4});
  std::vector<TestNode::Reply<std::vector<Submitted>>> replies(20);
  for (size_t i = 0; i < replies.size(); ++i) {
    node.service->Submit(node.at(i % 2),
                         {.topic = fmt::format("{}{}", i < 10 ? "shop." : "bank.", i),
                          .jobs = {NewJob{.payload = "x"}},
                          .bytes = {},
                          .prefix = i < 10 ? "shop." : ""},
                         replies[i].Catch());
  }
  node.Run();
  const auto stored = [](const auto& reply) { return reply.got->has_value(); };
  EXPECT_EQ(std::ranges::count_if(std::span(replies).first(10), stored), 4);
  EXPECT_EQ(std::ranges::count_if(std::span(replies).last(10), stored), 2);
  EXPECT_EQ(node.Topics().size(), 6U);
}

}  // namespace
}  // namespace tocsin
