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
  const uint16_t topic = tier.AddTopic(DefaultTopic("t"), std::make_shared<SharedUse>());
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
  const uint16_t topic = tier.AddTopic(DefaultTopic("t"), std::make_shared<SharedUse>());
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
  uint16_t many = tier.AddTopic(DefaultTopic("many"), std::make_shared<SharedUse>());
  uint16_t few = tier.AddTopic(DefaultTopic("few"), std::make_shared<SharedUse>());

  Index Add(uint16_t topic) {
    const NewJob job{.payload = "p"};
    const Index index = tier.Create(topic, ++uid, BodySize(job));
    EncodeBody(job, tier.BodyAt(index));
    tier.AddUse(topic, 1, 0);
    EXPECT_TRUE(tier.Link(index));
    return index;
  }
  /// Walks to the end with so much work in each call; the jobs met, and the number of calls.
  std::pair<std::vector<Index>, size_t> WalkAll(uint16_t topic, size_t work) {
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
  for (Index index = 1; index < two.tier.end(); ++index) two.tier.Erase(index);
  EXPECT_GE(two.WalkAll(two.few, 1'000).second, 40U) << "it has to look once";
  EXPECT_EQ(two.WalkAll(two.few, 1'000), std::pair(std::vector<Index>(), size_t{1})) << "but not twice";
  const std::vector<Index> added{two.Add(two.few)};
  EXPECT_EQ(two.WalkAll(two.few, 1'000).first, added);
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

}  // namespace
}  // namespace tocsin::journal
