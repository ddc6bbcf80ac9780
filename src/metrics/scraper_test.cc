#include "metrics/scraper.h"

#include <atomic>
#include <latch>

#include <gtest/gtest.h>

#include "sim/manual_loop.h"

namespace tocsin::metrics {
namespace {

TEST(Scraper, HandsOverTheTextOnItsOwnThreadAndAnswersOnTheLoop) {
  Registry registry;
  registry.GetGauge("depth", "Depth.")->Set(7);
  ManualLoop loop;
  Scraper scraper(registry);
  std::string text;
  std::thread::id taken_by;
  std::thread::id answered_by;
  const auto scrape = scraper.Begin();
  scrape->Next(
      loop,
      [&](std::string taken, bool last) {
        text = std::move(taken);
        EXPECT_TRUE(last);
        taken_by = std::this_thread::get_id();
      },
      [&](const Status& status) {
        EXPECT_TRUE(status);
        answered_by = std::this_thread::get_id();
      });
  while (!loop.RunOne()) std::this_thread::yield();
  EXPECT_EQ(text, "# HELP depth Depth.\n# TYPE depth gauge\ndepth 7\n");
  EXPECT_NE(taken_by, std::this_thread::get_id());
  EXPECT_EQ(answered_by, std::this_thread::get_id());
}

TEST(Scraper, HandsOverALongTextInPieces) {
  Registry registry;
  const auto registration = registry.AddCollector([](Samples& samples) {
    Table table{.label = "topic", .columns = {{Kind::kGauge, "depth", "Depth."}}};
    for (int i = 0; i < 10'000; ++i) table.rows.push_back(std::to_string(100'000 + i));
    table.values.assign(table.rows.size(), 1);
    samples.Add(std::move(table));
  });
  ManualLoop loop;
  std::string text;
  size_t pieces = 0;
  auto scraper = std::make_unique<Scraper>(registry);
  const auto scrape = scraper->Begin();
  for (bool ended = false; !ended; ++pieces) {
    scrape->Next(
        loop,
        [&](std::string piece, bool last) {
          EXPECT_LT(piece.size(), 64U << 10);
          text += piece;
          ended = last;
        },
        [](const Status& status) { EXPECT_TRUE(status); });
    while (!loop.RunOne()) std::this_thread::yield();
  }
  EXPECT_GT(pieces, 5U);
  EXPECT_EQ(text, registry.RenderPrometheus());
  scraper.reset();  // the scrape may end after it
}

TEST(Scraper, RefusesMoreThanAFewAtOnceAndDropsWhatWaitsAtTheEnd) {
  Registry registry;
  ManualLoop loop;
  std::latch rendering(1);
  std::latch go(1);
  std::atomic<int> rendered = 0;
  const auto registration = registry.AddCollector([&](Samples&) {
    if (rendered++ > 0) return;
    rendering.count_down();
    go.wait();
  });
  int answered = 0;
  int refused = 0;
  std::vector<std::unique_ptr<Scraper::Scrape>> scrapes;
  {
    Scraper scraper(registry);
    const auto scrape = [&] {
      scrapes.push_back(scraper.Begin());
      scrapes.back()->Next(
          loop, [](const std::string&, bool) {},
          [&](const Status& status) {
            ++answered;
            if (!status && status.error().code == Code::kOverloaded) ++refused;
          });
    };
    scrape();
    rendering.wait();  // the first is under way, and no longer waits
    for (size_t i = 0; i < Scraper::kWaitingMax; ++i) scrape();
    EXPECT_EQ(loop.RunAll(), 0U);
    scrape();
    EXPECT_EQ(loop.RunAll(), 1U);
    EXPECT_EQ(refused, 1);
    go.count_down();
  }
  loop.RunAll();
  EXPECT_EQ(answered, rendered + 1);
  EXPECT_EQ(refused, 1);
}

TEST(Scraper, RendersWhileSeriesComeAndGo) {
  Registry registry;
  ManualLoop loop;
  Scraper scraper(registry);
  std::atomic<bool> stop = false;
  std::jthread other([&] {
    for (int i = 0; !stop; ++i) {
      const std::string topic = std::to_string(i % 100);
      registry.GetHistogram("late_seconds", "Late.", {{"topic", topic}})->Record(std::chrono::milliseconds(i));
      registry.GetCounter("in_total", "In.", {{"topic", topic}})->Add();
      if (i % 3 == 0) registry.DropSeries("topic", topic);
    }
  });
  for (int i = 0; i < 50; ++i) {
    const auto scrape = scraper.Begin();
    bool ended = false;
    while (!ended) {
      scrape->Next(
          loop, [&](const std::string&, bool last) { ended = last; },
          [](const Status& status) { EXPECT_TRUE(status); });
      while (!loop.RunOne()) std::this_thread::yield();
    }
  }
  stop = true;
}

}  // namespace
}  // namespace tocsin::metrics
