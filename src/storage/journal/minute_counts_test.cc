#include "storage/journal/minute_counts.h"

#include <ctime>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

/// The same in a std::map.
struct Model {
  std::map<uint32_t, uint64_t> minutes;

  uint64_t CountIn(uint32_t from, uint32_t to) const {
    uint64_t jobs = 0;
    for (auto at = minutes.lower_bound(from); at != minutes.end() && at->first < to; ++at) jobs += at->second;
    return jobs;
  }
};

TEST(MinuteCounts, AnEmptyOneCountsNothing) {
  const MinuteCounts counts;
  EXPECT_EQ(counts.CountIn(0, UINT32_MAX), 0U);
  EXPECT_EQ(counts.held_bytes(), 0U);
}

TEST(MinuteCounts, CountsAsAMapDoes) {
  std::mt19937 random(7);
  for (const uint32_t spread : {50U, 3'000U, UINT32_MAX}) {
    MinuteCounts counts;
    Model model;
    std::vector<uint32_t> jobs;
    for (int i = 0; i < 40'000; ++i) {
      // First they come, then they go.
      const bool comes = jobs.empty() || random() % 100 < (i < 20'000 ? 70 : 20);
      if (comes) {
        const auto minute = static_cast<uint32_t>(random() % (uint64_t{spread} + 1));
        counts.Add(minute);
        ++model.minutes[minute];
        jobs.push_back(minute);
      } else {
        std::swap(jobs[random() % jobs.size()], jobs.back());
        counts.Remove(jobs.back());
        if (--model.minutes[jobs.back()] == 0) model.minutes.erase(jobs.back());
        jobs.pop_back();
      }
      if (i % 100 != 0) continue;
      const auto from = static_cast<uint32_t>(random() % (uint64_t{spread} + 1));
      const auto to = from + static_cast<uint32_t>(random() % (uint64_t{spread} - from + 1));
      ASSERT_EQ(counts.CountIn(from, to), model.CountIn(from, to)) << spread << ' ' << i;
      ASSERT_EQ(counts.CountIn(from, from + (from < UINT32_MAX)), model.CountIn(from, from + (from < UINT32_MAX)));
    }
    ASSERT_EQ(counts.CountIn(0, UINT32_MAX) + model.minutes[UINT32_MAX], jobs.size());
    for (const uint32_t minute : jobs) counts.Remove(minute);
    EXPECT_EQ(counts.CountIn(0, UINT32_MAX), 0U);
    EXPECT_LE(counts.held_bytes(), 200U);  // what was empty has been given back
  }
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// The CPU time of two rounds in which a job comes and goes in each of these windows of 64 minutes.
double SecondsFor(const std::vector<uint32_t>& windows) {
  MinuteCounts counts;
  for (const uint32_t window : windows) counts.Add(window * 64);
  const double from = CpuSeconds();
  for (int round = 0; round < 2; ++round) {
    for (const uint32_t window : windows) {
      counts.Add(window * 64);
      counts.Remove(window * 64);
    }
  }
  return CpuSeconds() - from;
}

TEST(MinuteCounts, MinutesThatAClientChoosesCostNoMoreThanOthers) {
  constexpr size_t kWindows = 49'000;  // a table of 65,536 is just not doubled
  std::vector<uint32_t> usual;
  std::vector<uint32_t> chosen;  // for 60 % of the places of a table that multiplies by the golden ratio
  for (uint32_t window = 0; chosen.size() < kWindows; ++window) {
    if (usual.size() < kWindows) usual.push_back(window);
    if ((window * uint64_t{0x9E3779B97F4A7C15}) >> 48 < 65'536 * 6 / 10) chosen.push_back(window);
  }
  EXPECT_LT(SecondsFor(chosen), 10 * SecondsFor(usual) + 0.1);
}

TEST(MinuteCounts, TakesLittleMemory) {
  constexpr uint32_t kMinutes = 100'000;
  MinuteCounts counts;
  for (uint32_t i = 0; i < kMinutes; ++i) counts.Add(i * 7919 % kMinutes);
  EXPECT_EQ(counts.CountIn(0, kMinutes), kMinutes);
  EXPECT_LE(counts.held_bytes(), kMinutes * 6);
  for (uint32_t i = 0; i < kMinutes; ++i) counts.Add(i * 7919 % kMinutes);  // the same minutes again
  EXPECT_LE(counts.held_bytes(), kMinutes * 6);
}

}  // namespace
}  // namespace tocsin::journal
