// Many threads record, create, drop and scrape at once: nothing recorded is lost, and TSan has nothing to say.
#include <atomic>
#include <latch>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "metrics/registry.h"

namespace tocsin::metrics {
namespace {

TEST(RegistryRace, NothingRecordedIsLost) {
  constexpr int kThreads = 24;  // more than there are cells
  constexpr int kEach = 20'000;
  Registry registry;
  auto counter = registry.GetCounter("n_total", "N.");
  auto histogram = registry.GetHistogram("t_seconds", "T.");
  std::latch start(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        for (int i = 0; i < kEach; ++i) {
          counter->Add();
          histogram->Record(std::chrono::microseconds(i));
        }
      });
    }
  }
  EXPECT_EQ(counter->Value(), uint64_t{kThreads} * kEach);
  EXPECT_EQ(histogram->Read().count, uint64_t{kThreads} * kEach);
}

TEST(RegistryRace, ScrapesGoOnWhileSeriesComeAndGo) {
  Registry registry;
  std::latch start(3);
  std::jthread maker([&] {
    start.arrive_and_wait();
    for (int i = 0; i < 2000; ++i) {
      const Labels labels{{"topic", std::to_string(i % 7)}};
      registry.GetCounter("a_total", "A.", labels)->Add();
      registry.GetHistogram("b_seconds", "B.", labels)->Record(std::chrono::milliseconds(i));
      if (i % 5 == 0) registry.DropSeries("topic", std::to_string(i % 7));
    }
  });
  std::jthread registrar([&] {
    start.arrive_and_wait();
    for (int i = 0; i < 2000; ++i) {
      auto registration = registry.AddCollector([](Samples& samples) { samples.Add(Kind::kGauge, "g", "G.", {}, 1); });
    }
  });
  start.arrive_and_wait();
  for (int i = 0; i < 50; ++i) registry.RenderPrometheus();
}

TEST(RegistryRace, AnotherThreadRendersWhileSeriesComeAndGo) {
  Registry registry;
  std::atomic<bool> stop = false;
  std::jthread renders([&] {
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(registry.RenderPrometheus().contains("\n\n"));
    stop = true;
  });
  for (int i = 0; !stop; ++i) {
    const std::string topic = std::to_string(i % 100);
    registry.GetHistogram("late_seconds", "Late.", {{"topic", topic}})->Record(std::chrono::milliseconds(i));
    registry.GetCounter("in_total", "In.", {{"topic", topic}})->Add();
    if (i % 3 == 0) registry.DropSeries("topic", topic);
  }
}

// Shards abandon scrapes: they must not wait for another scrape's collectors.
TEST(RegistryRace, AnAbandonedRenderingWaitsForNobody) {
  Registry registry;
  std::optional<Registry::Rendering> abandoned(registry);
  std::latch collecting(1);
  std::binary_semaphore given_up(0);
  bool in_time = false;
  auto registration = registry.AddCollector([&](Samples&) {
    collecting.count_down();
    in_time = given_up.try_acquire_for(std::chrono::seconds(10));
  });
  std::jthread scrape([&] { Registry::Rendering rendering(registry); });
  collecting.wait();
  abandoned.reset();
  given_up.release();
  scrape.join();
  EXPECT_TRUE(in_time);
  registration = {};
  std::string text;
  Registry::Rendering next(registry);
  EXPECT_FALSE(next.Next(text));
}

}  // namespace
}  // namespace tocsin::metrics
