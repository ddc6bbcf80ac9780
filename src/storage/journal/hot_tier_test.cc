#include "storage/journal/hot_tier.h"

#include <ctime>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// How long it takes to look up, enter and find again as many jobs with own ids.
double SecondsFor(size_t jobs, const std::function<std::string(size_t)>& id_of) {
  ChunkSource chunks;
  HotTier tier(chunks);
  const TopicNumber topic = tier.AddTopic(DefaultTopic("t"), std::make_shared<SharedUse>());
  std::vector<std::string> ids;
  for (size_t i = 0; i < jobs; ++i) ids.push_back(id_of(i));
  const double from = CpuSeconds();
  for (size_t i = 0; i < jobs; ++i) {
    const NewJob job{.id = ids[i], .delay = Millis(1'000)};
    EXPECT_EQ(tier.Find(topic, {.id = ids[i]}), 0U);
    const Index index = tier.Create(topic, i + 1, BodySize(job));
    EncodeBody(job, tier.BodyAt(index));
    tier.AddUse(topic, 1, 0);
    EXPECT_TRUE(tier.Link(index));
    EXPECT_EQ(tier.Find(topic, {.id = ids[i]}), index);
  }
  return CpuSeconds() - from;
}

TEST(HotTier, OwnIdsMadeToCollideCostNoMoreThanOthers) {
  constexpr size_t kJobs = 20'000;
  const double usual = SecondsFor(kJobs, [](size_t i) { return fmt::format("{:08}usual-id", i); });
  // These have one Hash64, whatever its seed: see hash_test.cc.
  const double chosen = SecondsFor(kJobs, [](size_t i) { return fmt::format("{:08}\x93\xFDYf\xB8\xFE\xE8\xD6", i); });
  EXPECT_LT(chosen, 10 * usual + 0.1);
}

TEST(HotTier, NoSingleReasonCostsMuchHoweverManyThereAre) {
  constexpr size_t kJobs = 400'000;
  ChunkSource chunks;
  HotTier tier(chunks);
  const TopicNumber topic = tier.AddTopic(DefaultTopic("t"), std::make_shared<SharedUse>());
  double longest = 0;
  for (size_t i = 0; i < kJobs; ++i) {
    const NewJob job{.payload = "p"};
    const Index index = tier.Create(topic, i + 1, BodySize(job));
    EncodeBody(job, tier.BodyAt(index));
    const double from = CpuSeconds();
    tier.ChangeDetails(index, [](Details& details) { details.reason = "no"; });
    longest = std::max(longest, CpuSeconds() - from);
  }
  for (Index index = 1; index < tier.end(); ++index) ASSERT_EQ(tier.DetailsOf(index)->reason, "no");
  EXPECT_LT(longest, 0.01);
}

/// Two topics in one tier.
struct TwoTopics {
  ChunkSource chunks;
  HotTier tier{chunks};
  TopicNumber many = tier.AddTopic(DefaultTopic("many"), std::make_shared<SharedUse>());
  TopicNumber few = tier.AddTopic(DefaultTopic("few"), std::make_shared<SharedUse>());

  Index Add(TopicNumber topic) {
    const NewJob job{.payload = "p"};
    const Index index = tier.Create(topic, ++uid, BodySize(job));
    EncodeBody(job, tier.BodyAt(index));
    tier.AddUse(topic, 1, 0);
    EXPECT_TRUE(tier.Link(index));
    return index;
  }
  /// Walks to the end with so much work in each call; the jobs met, and the number of calls.
  std::pair<std::vector<Index>, size_t> WalkAll(TopicNumber topic, size_t work) {
    std::vector<Index> met;
    size_t calls = 0;
    for (Index at = 1; at < tier.end(); ++calls) {
      at = tier.Walk(topic, at, work, [&](Index index) {
        met.push_back(index);
        return true;
      });
    }
    return {met, calls};
  }

  Uid uid = 0;
};

TEST(HotTier, AWalkMeetsTheTopicsJobsAndSkipsTheOthers) {
  TwoTopics two;
  std::vector<Index> expected;
  for (size_t i = 0; i < 100'000; ++i) {
    if (i % 25'000 == 7) expected.push_back(two.Add(two.few));
    two.Add(two.many);
  }
  EXPECT_EQ(two.WalkAll(two.few, 2'000), std::pair(expected, size_t{1})) << "in one step among 100,000 jobs";
  EXPECT_EQ(two.WalkAll(two.many, 1'000).first.size(), 100'000U);
  EXPECT_GE(two.WalkAll(two.many, 1'000).second, 90U) << "no step looks at more than it may";
}

TEST(HotTier, AWalkForgetsWhereJobsWereAndFindsNewOnes) {
  TwoTopics two;
  for (size_t i = 0; i < 50'000; ++i) two.Add(two.few);
  const Index last = two.tier.end() - 1;
  for (Index index = 1; index < last; ++index) two.tier.Erase(index);
  EXPECT_GE(two.WalkAll(two.few, 1'000).second, 40U) << "it has to look once";
  EXPECT_EQ(two.WalkAll(two.few, 1'000), std::pair(std::vector<Index>{last}, size_t{1})) << "but not twice";
  two.tier.Erase(last);
  const std::vector<Index> added{two.Add(two.few)};
  EXPECT_EQ(two.WalkAll(two.few, 1'000), std::pair(added, size_t{1}));
}

// Every block has jobs of nearly all of them, so no marks of topics could tell the blocks apart.
TEST(HotTier, ASmallTopicAmongManyIsWalkedInOneStep) {
  TwoTopics two;
  std::vector<TopicNumber> others;
  for (int i = 0; i < 500; ++i) {
    others.push_back(two.tier.AddTopic(DefaultTopic(fmt::format("t{}", i)), std::make_shared<SharedUse>()));
  }
  std::vector<Index> expected;
  for (size_t i = 0; i < 200'000; ++i) {
    if (i % 10'000 == 7) expected.push_back(two.Add(two.few));
    two.Add(others[i % others.size()]);
  }
  ASSERT_EQ(expected.size(), 20U);
  EXPECT_EQ(two.WalkAll(two.few, 8'192), std::pair(expected, size_t{1})) << "among 200,000 jobs";
  EXPECT_EQ(two.WalkAll(two.few, 600).first, expected) << "over several calls";
  EXPECT_EQ(two.WalkAll(others[0], 8'192).first.size(), 400U);
  const Index gone = expected.front();
  two.tier.Erase(gone);
  expected.erase(expected.begin());
  EXPECT_EQ(two.WalkAll(two.few, 8'192).first, expected);
  EXPECT_EQ(two.Add(two.few), gone) << "its place is used again";
  expected.insert(expected.begin(), gone);
  EXPECT_EQ(two.WalkAll(two.few, 8'192).first, expected);
}

TEST(HotTier, ATopicThatGrowsDuringAWalkIsMetAsAWhole) {
  TwoTopics two;
  std::vector<Index> expected;
  const auto add = [&](size_t blocks) {
    for (size_t i = 0; i < blocks * 256; ++i) {
      const bool few = i % 256 == 0;
      const Index index = two.Add(few ? two.few : two.many);
      if (few) expected.push_back(index);
    }
  };
  add(20);
  std::vector<Index> met;
  bool grown = false;
  for (Index at = 1; at < two.tier.end();) {
    at = two.tier.Walk(two.few, at, 1'000, [&](Index index) {
      met.push_back(index);
      return true;
    });
    if (!std::exchange(grown, true)) add(20);  // it is in more blocks now than are kept for a small one
  }
  EXPECT_EQ(met, expected);
}

TEST(HotTier, AWalkThatEndsWithinABlockGoesOnThere) {
  TwoTopics two;
  std::vector<Index> expected;
  for (size_t i = 0; i < 1'000; ++i) {
    const Index index = two.Add(i % 3 == 0 ? two.few : two.many);
    if (i % 3 == 0) expected.push_back(index);
  }
  std::vector<Index> met;
  for (Index at = 1; at < two.tier.end();) {
    at = two.tier.Walk(two.few, at, 8'192, [&](Index index) {
      met.push_back(index);
      two.tier.Erase(index);
      return false;
    });
  }
  EXPECT_EQ(met, expected);
  EXPECT_EQ(two.WalkAll(two.many, 8'192).first.size(), 666U);
}

// A step back of the clock takes a million ready jobs back, a few in each call.
TEST(HotTier, AfterAStepBackNoCallPutsBackManyJobs) {
  constexpr size_t kJobs = 1'000'000;
  constexpr Time kDue{Millis(1'000'000)};
  ChunkSource chunks;
  HotTier tier(chunks);
  const TopicNumber topic = tier.AddTopic(DefaultTopic("t"), std::make_shared<SharedUse>());
  const NewJob job{.payload = "p"};
  for (size_t i = 0; i < kJobs; ++i) {
    const Index index = tier.Create(topic, i + 1, BodySize(job));
    EncodeBody(job, tier.BodyAt(index));
    tier.AddUse(topic, 1, 0);
    ASSERT_TRUE(tier.Link(index));
    tier.at(index).flags &= static_cast<uint8_t>(~kOnSteady);
    tier.at(index).due_ms = ToMs(kDue) + static_cast<int64_t>(i % 1'000);
    tier.Schedule(index);
  }
  const auto look = [&](Time utc) { return tier.MakeDueReady({utc, Time{Millis(5'000)}}, 2 * kJobs, [](Index) {}); };
  const auto ready = [&] { return tier.topic(topic).figures.ready; };
  while (look(kDue + Millis(1'000))) {
  }
  ASSERT_EQ(ready(), kJobs);

  const Time back = kDue + Millis(499);  // half of them
  size_t calls = 0;
  for (bool more = true; more; ++calls) {
    const uint64_t before = ready();
    more = look(back);
    ASSERT_LE(before - ready(), HotTier::kHeldBackMax);
  }
  EXPECT_EQ(ready(), kJobs / 2);
  EXPECT_GE(calls, kJobs / 2 / HotTier::kHeldBackMax);
  EXPECT_LE(calls, kJobs / HotTier::kHeldBackMax) << "each of them gets on";
  EXPECT_FALSE(look(back)) << "once is enough";

  // Back again in the middle of a walk.
  EXPECT_TRUE(look(kDue + Millis(99)));
  EXPECT_TRUE(look(kDue - Millis(1)));
  while (look(kDue - Millis(1))) {
  }
  EXPECT_EQ(ready(), 0U);
  while (look(kDue + Millis(1'000))) {
  }
  EXPECT_EQ(ready(), kJobs);
}

TEST(HotTier, AHundredThousandTopicsAreMadeAndDroppedQuickly) {
  ChunkSource chunks;
  HotTier tier(chunks);
  const auto shared = std::make_shared<SharedUse>();
  constexpr size_t kTopics = 100'000;
  const double from = CpuSeconds();
  for (size_t i = 0; i < kTopics; ++i) EXPECT_EQ(tier.AddTopic(DefaultTopic(fmt::format("t{}", i)), shared), i);
  for (size_t i = 0; i < kTopics; i += 2) tier.DropTopic(static_cast<TopicNumber>(i));
  for (size_t i = 0; i < kTopics; i += 2) {
    EXPECT_LT(tier.AddTopic(DefaultTopic(fmt::format("again{}", i)), shared), kTopics) << "numbers are used again";
  }
  EXPECT_LT(CpuSeconds() - from, 10);  // quadratic, it took minutes
  EXPECT_EQ(tier.topic(tier.FindTopic("t99999")).settings.name, "t99999");
  EXPECT_EQ(tier.FindTopic("t99998"), kNoTopic);
}

TEST(HotTier, TopicsThatComeAndGoUseTheSameNumbersAgain) {
  constexpr size_t kRounds = 1'000;
  constexpr size_t kTopics = 8;
  TwoTopics two;
  for (size_t round = 0; round < kRounds; ++round) {
    std::vector<Index> left;
    for (size_t i = 0; i < kTopics; ++i) {
      const std::string name = fmt::format("r{}-{}", round, i);
      const TopicNumber number = two.tier.AddTopic(DefaultTopic(name), std::make_shared<SharedUse>());
      ASSERT_LT(number, 2 + kTopics);
      ASSERT_EQ(two.tier.FindTopic(name), number);
      if (i % 2 == 0) left.push_back(two.Add(number));  // it keeps its number until the job has gone
      two.tier.DropTopic(number);
      ASSERT_EQ(two.tier.FindTopic(name), kNoTopic);
    }
    for (const Index index : left) two.tier.Erase(index);
  }
  EXPECT_EQ(two.tier.topic(two.many).settings.name, "many");
}

}  // namespace
}  // namespace tocsin::journal
