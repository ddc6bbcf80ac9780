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

}  // namespace
}  // namespace tocsin::journal
