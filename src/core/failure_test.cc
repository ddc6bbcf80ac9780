// Stop, overload and failing stores.
#include <gtest/gtest.h>

#include "core/figures.h"
#include "core/test_node.h"
#include "model/names.h"

namespace tocsin {
namespace {

class FailureTest : public testing::TestWithParam<std::tuple<size_t, bool>> {
 protected:
  TestNode node{std::get<0>(GetParam()), std::get<1>(GetParam())};
  const size_t shards = std::get<0>(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Shards, FailureTest, testing::Combine(testing::Values(1, 2, 4), testing::Bool()),
                         [](const auto& info) {
                           return fmt::format("{}{}", std::get<0>(info.param),
                                              std::get<1>(info.param) ? "late" : "at_once");
                         });

TEST_P(FailureTest, StopAnswersEveryoneAndThenNothingRuns) {
  ASSERT_TRUE(node.Submit("t", std::vector<NewJob>(10, NewJob{.delay = Millis(50)})));
  std::vector<TestNode::Reply<JobBatch>> waiting(10);
  for (size_t i = 0; i < 10; ++i) {
    node.service->Reserve(node.at(i), {i % 2 ? "t" : "unknown", 1, Millis(10'000), Millis(0)}, waiting[i].Catch());
  }
  TestNode::Reply<std::vector<Submitted>> last;
  node.service->Submit(node.at(1), {"brand-new", std::vector<NewJob>(3), nullptr}, last.Catch());
  bool stopped = false;
  node.service->Stop(node.at(shards - 1), [&] {
    stopped = true;
    for (auto& reply : waiting) EXPECT_TRUE(reply.got);
    EXPECT_TRUE(last.got);
  });
  TestNode::Reply<JobBatch> refused;
  node.service->Reserve(node.at(0), {"t", 1, Millis(10'000), Millis(0)}, refused.Catch());
  EXPECT_EQ(refused.got->error().code, Code::kShuttingDown);
  node.Run();
  ASSERT_TRUE(stopped);
  for (auto& reply : waiting) EXPECT_TRUE((*reply.got)->jobs.empty());
  size_t advances = 0;
  for (auto& store : node.stores) advances += store->advances;
  node.service.reset();
  node.Pass(Millis(5000));
  for (auto& store : node.stores) advances -= store->advances;
  EXPECT_EQ(advances, 0U);
}

TEST_P(FailureTest, StopWaitsForAClaimAndGivesItsJobsBack) {
  (void)node.PutTopic(DefaultTopic("t"));
  std::vector<Task> held;
  TestNode::Reply<JobBatch> waiting;
  node.service->Reserve(node.at(0), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  node.Run();
  for (auto& store : node.stores) store->held = &held;
  ASSERT_TRUE(node.Submit("t", std::vector<NewJob>(1)));
  ASSERT_EQ(held.size(), 1U);
  bool stopped = false;
  node.service->Stop(node.at(0), [&] { stopped = true; });
  node.Run();
  EXPECT_TRUE((*waiting.got)->jobs.empty());
  EXPECT_FALSE(stopped);
  held[0]();
  node.Run();
  EXPECT_TRUE(stopped);
  for (auto& store : node.stores) {
    for (const TopicFigures& figures : store->Topics()) EXPECT_EQ(figures.leased, 0U);
  }
}

TEST_P(FailureTest, AFailedStoreFailsEveryCallAndIsToldOnce) {
  int told = 0;
  node.service->OnFailed([&](const Error& error) {
    ++told;
    EXPECT_EQ(error.code, Code::kStorageFailed);
  });
  (void)node.PutTopic(DefaultTopic("t"));
  for (auto& store : node.stores) store->fail = Code::kStorageFailed;
  EXPECT_EQ(node.Submit("t", std::vector<NewJob>(1)).error().code, Code::kStorageFailed);
  for (auto& store : node.stores) store->fail.reset();
  EXPECT_EQ(node.Submit("t", std::vector<NewJob>(1)).error().code, Code::kStorageFailed);
  EXPECT_EQ(node.Reserve("t").error().code, Code::kStorageFailed);
  EXPECT_EQ(node.PutTopic(DefaultTopic("u")).error().code, Code::kStorageFailed);
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(node.Stop());
}

TEST_P(FailureTest, AFailureOfTheScanIsToldToo) {
  int told = 0;
  node.service->OnFailed([&](const Error&) { ++told; });
  node.stores.back()->fail = Code::kStorageFailed;
  node.Pass(Millis(1000));
  EXPECT_EQ(told, 1);
}

TEST_P(FailureTest, AScanThatFailedIsTriedAgain) {
  ASSERT_TRUE(node.Submit("t", std::vector<NewJob>(1, NewJob{.delay = Millis(100)})));
  TestNode::Reply<JobBatch> waiting;
  node.service->Reserve(node.at(0), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  for (auto& store : node.stores) store->fail = Code::kIo;
  node.Pass(Millis(2500));
  for (auto& store : node.stores) store->fail.reset();
  node.Pass(Millis(1000));
  ASSERT_TRUE(waiting.got);
}

TEST_P(FailureTest, AStoreThatCannotTakeATopicLeavesItUnknown) {
  node.stores.back()->fail = Code::kStorageFull;
  EXPECT_EQ(node.Submit("t", std::vector<NewJob>(1)).error().code, Code::kStorageFull);
  node.stores.back()->fail.reset();
  EXPECT_TRUE(node.Submit("t", std::vector<NewJob>(1)));
}

TEST_P(FailureTest, ATopicThatOneStoreRefusesIsInNone) {
  ASSERT_TRUE(node.Stop());
  node.service.reset();
  node.shares_store = false;
  node.Open();
  for (auto& refusing : node.stores) {
    refusing->fail_puts = Code::kStorageFull;
    EXPECT_EQ(node.Submit("t", std::vector<NewJob>(1)).error().code, Code::kStorageFull);
    EXPECT_EQ(node.PutTopic(DefaultTopic("t")).error().code, Code::kStorageFull);
    for (auto& store : node.memory) EXPECT_TRUE(store->Topics().empty());
    refusing->fail_puts.reset();
  }
  EXPECT_TRUE(node.Submit("t", std::vector<NewJob>(1)));
  Topic changed = DefaultTopic("t");
  changed.max_attempts = 7;
  node.stores.back()->fail_puts = Code::kStorageFull;
  EXPECT_EQ(node.PutTopic(changed).error().code, Code::kStorageFull);
  EXPECT_EQ(node.Topics().at(0).scheduled, 1U) << "a refused change drops nothing";
}

// The disk fills up between two shards.
TEST_P(FailureTest, AChangeThatOneStoreRefusesTakesEffectInNone) {
  ASSERT_TRUE(node.Stop());
  node.service.reset();
  node.shares_store = false;
  node.Open();
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  Topic changed = DefaultTopic("t");
  changed.max_attempts = 7;
  const auto settings_after_a_start = [&] {
    uint64_t newest = 0;
    uint32_t max_attempts = 0;
    for (auto& store : node.memory) {
      const Topic topic = store->FindFigures("t")->topic;
      if (std::exchange(newest, std::max(newest, topic.version)) < topic.version) max_attempts = topic.max_attempts;
    }
    return max_attempts;
  };
  for (auto& refusing : node.stores) {
    refusing->fail_puts = Code::kStorageFull;
    EXPECT_EQ(node.PutTopic(changed).error().code, Code::kStorageFull);
    for (auto& store : node.memory) {
      EXPECT_EQ(store->FindFigures("t")->topic.max_attempts, DefaultTopic("t").max_attempts);
    }
    EXPECT_EQ(settings_after_a_start(), DefaultTopic("t").max_attempts);
    EXPECT_EQ(node.Topics().at(0).topic.max_attempts, DefaultTopic("t").max_attempts);
    refusing->fail_puts.reset();
  }
  const auto again = node.PutTopic(changed);
  ASSERT_TRUE(again) << again.error().message;
  for (auto& store : node.memory) EXPECT_EQ(store->FindFigures("t")->topic.max_attempts, 7U);
}

TEST_P(FailureTest, SettingsThatCannotBePutBackAreOwed) {
  if (shards == 1) return;  // no other store can refuse
  ASSERT_TRUE(node.Stop());
  node.service.reset();
  node.shares_store = false;
  node.Open();
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  Topic changed = DefaultTopic("t");
  changed.max_attempts = 7;
  const auto max_attempts = [&](size_t shard) { return node.memory[shard]->FindFigures("t")->topic.max_attempts; };
  size_t puts = 0;
  node.stores[0]->before_put = [&](const Topic&) {
    if (++puts == 2) node.stores[0]->fail_puts = Code::kStorageFull;
  };
  node.stores[1]->fail_puts = Code::kStorageFull;
  EXPECT_EQ(node.PutTopic(changed).error().code, Code::kStorageFull);
  node.Pass(Millis(2000));
  EXPECT_EQ(max_attempts(0), 7U);
  for (auto& store : node.stores) store->fail_puts.reset();
  node.Pass(Millis(2000));
  for (size_t i = 0; i < shards; ++i) EXPECT_EQ(max_attempts(i), DefaultTopic("t").max_attempts) << i;
  const size_t before = puts;
  node.Pass(Millis(2000));
  EXPECT_EQ(puts, before) << "nothing is owed any more";
  ASSERT_TRUE(node.PutTopic(changed));
  for (size_t i = 0; i < shards; ++i) EXPECT_EQ(max_attempts(i), 7U) << i;
}

TEST_P(FailureTest, AChangeThatAllStoresRefuseWritesNothing) {
  ASSERT_TRUE(node.Stop());
  node.service.reset();
  node.shares_store = false;
  node.Open();
  ASSERT_TRUE(node.PutTopic(DefaultTopic("t")));
  Topic changed = DefaultTopic("t");
  changed.max_attempts = 7;
  size_t puts = 0;
  for (auto& store : node.stores) {
    store->before_put = [&](const Topic&) { ++puts; };
    store->fail_puts = Code::kStorageFull;
  }
  EXPECT_EQ(node.PutTopic(changed).error().code, Code::kStorageFull);
  EXPECT_EQ(puts, shards) << "a full disk has little room to put settings back that nobody took";
  EXPECT_EQ(node.PutTopic(DefaultTopic("t")).error().code, Code::kStorageFull);
  EXPECT_EQ(puts, 2 * shards);
}

// Other nodes may have created it at the same time, and given it jobs.
TEST_P(FailureTest, ATopicThatASharedStoreMayHaveIsNotTakenBack) {
  size_t drops = 0;
  for (auto& store : node.stores) {
    store->before_drop = [&](const std::string&) {
      ++drops;
      return Status();
    };
  }
  node.stores.back()->fail_puts = Code::kUnavailable;
  EXPECT_EQ(node.Submit("t", std::vector<NewJob>(1)).error().code, Code::kUnavailable);
  EXPECT_EQ(drops, 0U);
}

TEST_P(FailureTest, ADropThatFailedCanBeRepeated) {
  (void)node.PutTopic(DefaultTopic("t"));
  node.stores.back()->fail = Code::kStorageFull;
  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(0), "t", dropped.Catch());
  node.Run();
  EXPECT_EQ(dropped.got->error().code, Code::kStorageFull);
  node.stores.back()->fail.reset();
  node.service->DropTopic(node.at(0), "t", dropped.Catch());
  node.Run();
  EXPECT_TRUE(*dropped.got);
  EXPECT_TRUE(node.Topics().empty());
}

// Other nodes go on with it.
TEST_P(FailureTest, ATopicThatCouldNotBeDroppedAtAllIsStillServed) {
  (void)node.PutTopic(DefaultTopic("t"));
  TestNode::Reply<JobBatch> waiting;
  node.service->Reserve(node.at(0), {"t", 1, Millis(10'000), Millis(0)}, waiting.Catch());
  for (auto& store : node.stores) store->fail = Code::kUnavailable;
  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(0), "t", dropped.Catch());
  node.Run();
  EXPECT_FALSE(*dropped.got);
  for (auto& store : node.stores) store->fail.reset();
  for (size_t i = 0; i < shards; ++i) EXPECT_TRUE(node.service->Knows(node.at(i), "t"));
  for (auto& store : node.memory) {
    const NewJob job{};
    store->Submit("t", std::span(&job, 1), node.clock.Now(), [](auto) {});
  }
  node.Pass(Millis(2000));
  ASSERT_TRUE(waiting.got);
  EXPECT_EQ((*waiting.got)->jobs.size(), 1U);
}

TEST_P(FailureTest, TopicsAreBounded) {
  TestNode small(shards, std::get<1>(GetParam()), {.topics = 2});
  EXPECT_TRUE(small.Submit("a", std::vector<NewJob>(1)));
  EXPECT_TRUE(small.Submit("b", std::vector<NewJob>(1)));
  EXPECT_EQ(small.Submit("c", std::vector<NewJob>(1)).error().code, Code::kOverCapacity);
  EXPECT_TRUE(small.Submit("a", std::vector<NewJob>(1)));
}

class OverloadTest : public testing::Test {
 protected:
  OverloadTest() {
    for (int i = 0; i < 40; ++i) ids.push_back(std::to_string(i));
    for (const std::string& id : ids) jobs.push_back({.id = id});
    EXPECT_TRUE(node.PutTopic(DefaultTopic("t")));
  }
  TestNode node{2};
  std::vector<std::string> ids;
  std::vector<NewJob> jobs;
};

TEST_F(OverloadTest, OnlyThePartOfAFullShardIsRefused) {
  node.loops[1]->full = true;
  const auto submitted = node.Submit("t", jobs, 0);
  ASSERT_TRUE(submitted);
  size_t refused = 0;
  for (const Submitted& one : *submitted) {
    refused += one.outcome == SubmitOutcome::kOverloaded;
    EXPECT_TRUE(one.outcome == SubmitOutcome::kOverloaded || one.outcome == SubmitOutcome::kAccepted);
  }
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, 40U);
  EXPECT_EQ(node.Topics()[0].accepted, 40 - refused);
  node.loops[1]->full = false;
  const auto again = node.Submit("t", jobs, 0);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ((*again)[i].outcome, (*submitted)[i].outcome == SubmitOutcome::kOverloaded ? SubmitOutcome::kAccepted
                                                                                         : SubmitOutcome::kDuplicate);
  }
}

TEST_F(OverloadTest, OnlyThePartOfAShardWhoseStoreFailsSaysSo) {
  const std::pair<Code, SubmitOutcome> failures[] = {{Code::kUnavailable, SubmitOutcome::kUnavailable},
                                                     {Code::kStorageFull, SubmitOutcome::kStorageFull}};
  for (const auto& [code, outcome] : failures) {
    node.stores[1]->fail = code;
    const auto submitted = node.Submit("t", jobs, 0);
    ASSERT_TRUE(submitted) << "an error would hide what the other shard has stored";
    for (const Submitted& one : *submitted) EXPECT_TRUE(one.outcome == outcome || IsStored(one.outcome));
    EXPECT_GT(std::ranges::count(*submitted, outcome, &Submitted::outcome), 0);
    EXPECT_GT(std::ranges::count_if(*submitted, IsStored, &Submitted::outcome), 0);
  }
  node.stores[0]->fail = Code::kUnavailable;
  EXPECT_EQ(node.Submit("t", jobs, 0).error().code, Code::kUnavailable) << "one part knows that nothing was done";
  for (auto& store : node.stores) store->fail.reset();
  const auto all = node.Submit("t", jobs, 0);
  for (const Submitted& one : *all) EXPECT_TRUE(IsStored(one.outcome));
}

TEST_F(OverloadTest, AFindNeedsAllItsParts) {
  node.loops[1]->full = true;
  std::vector<JobRef> refs;
  for (const std::string& id : ids) refs.push_back({.id = id});
  TestNode::Reply<JobBatch> found;
  node.service->Find(node.at(0), {"t", refs, nullptr}, found.Catch());
  node.Run();
  EXPECT_EQ(found.got->error().code, Code::kOverloaded);
}

TEST_F(OverloadTest, ACallOfWhichNoPartGetsThroughIsRefusedAsAWhole) {
  Topic topic = DefaultTopic("one-slot");
  topic.slots = 1;
  ASSERT_TRUE(node.PutTopic(topic));
  TestNode::Reply<JobBatch> where;
  const uint32_t home = node.service->Reserve(node.at(0), {"one-slot", 1, Millis(0), Millis(0)}, where.Catch()).shard;
  node.Run();
  node.loops[home]->full = true;
  EXPECT_EQ(node.Submit("one-slot", jobs, home + 1).error().code, Code::kOverloaded);
  EXPECT_EQ(node.Reserve("one-slot", 1, home + 1).error().code, Code::kOverloaded);
  EXPECT_TRUE(node.Submit("one-slot", jobs, home));  // its own callers need no mailbox
}

}  // namespace
}  // namespace tocsin
