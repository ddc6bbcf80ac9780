#include "metrics/registry.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::metrics {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

TEST(Registry, OneObjectForANameAndLabels) {
  Registry registry;
  auto one = registry.GetCounter("a_total", "A.", {{"topic", "x"}});
  EXPECT_EQ(one, registry.GetCounter("a_total", "A.", {{"topic", "x"}}));
  EXPECT_NE(one, registry.GetCounter("a_total", "A.", {{"topic", "y"}}));
}

TEST(Registry, RendersTheTextFormatExactly) {
  Registry registry;
  registry.GetCounter("b_total", "Line one\nback\\slash \"quoted\".", {{"topic", "q\"\\\n"}, {"shard", "0"}})->Add(3);
  registry.GetGauge("a", "First by name.")->Set(1.5);
  registry.GetGauge("c", "Odd values.", {{"k", "nan"}})->Set(std::nan(""));
  registry.GetGauge("c", "Odd values.", {{"k", "inf"}})->Set(-INFINITY);
  EXPECT_EQ(registry.RenderPrometheus(),
            "# HELP a First by name.\n"
            "# TYPE a gauge\n"
            "a 1.5\n"
            "# HELP b_total Line one\\nback\\\\slash \"quoted\".\n"
            "# TYPE b_total counter\n"
            "b_total{topic=\"q\\\"\\\\\\n\",shard=\"0\"} 3\n"
            "# HELP c Odd values.\n"
            "# TYPE c gauge\n"
            "c{k=\"inf\"} -Inf\n"
            "c{k=\"nan\"} NaN\n");
}

TEST(Registry, RendersHistogramsInSeconds) {
  Registry registry;
  auto histogram = registry.GetHistogram("late_seconds", "Late.", {{"topic", "t"}});
  histogram->Record(milliseconds(1));
  histogram->Record(milliseconds(3));
  histogram->Record(std::chrono::hours(5));
  const std::string text = registry.RenderPrometheus();
  EXPECT_THAT(text, HasSubstr("# TYPE late_seconds histogram\n"
                              "late_seconds_bucket{topic=\"t\",le=\"1.6e-05\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("late_seconds_bucket{topic=\"t\",le=\"0.001024\"} 1\n"
                              "late_seconds_bucket{topic=\"t\",le=\"0.002048\"} 1\n"
                              "late_seconds_bucket{topic=\"t\",le=\"0.004096\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("late_seconds_bucket{topic=\"t\",le=\"2147.483648\"} 2\n"
                              "late_seconds_bucket{topic=\"t\",le=\"+Inf\"} 3\n"
                              "late_seconds_sum{topic=\"t\"} 18000.004\n"
                              "late_seconds_count{topic=\"t\"} 3\n"));
}

TEST(Registry, AHistogramWithoutLabelsHasOnlyLe) {
  Registry registry;
  registry.GetHistogram("x_seconds", "X.")->Record(milliseconds(1));
  EXPECT_THAT(registry.RenderPrometheus(), HasSubstr("x_seconds_bucket{le=\"+Inf\"} 1\nx_seconds_sum 0.001\n"));
}

TEST(Registry, DroppedSeriesAreGone) {
  Registry registry;
  auto kept = registry.GetCounter("a_total", "A.", {{"topic", "x"}});
  registry.GetCounter("a_total", "A.", {{"topic", "y"}})->Add(7);
  registry.GetHistogram("b_seconds", "B.", {{"topic", "x"}});
  registry.DropSeries("topic", "x");
  kept->Add();
  const std::string text = registry.RenderPrometheus();
  EXPECT_THAT(text, Not(HasSubstr("topic=\"x\"")));
  EXPECT_THAT(text, Not(HasSubstr("b_seconds")));
  EXPECT_THAT(text, HasSubstr("a_total{topic=\"y\"} 7\n"));
}

TEST(Registry, CardinalityIsBounded) {
  Registry registry(2);
  for (int i = 0; i < 10; ++i) registry.GetCounter("a_total", "A.", {{"topic", std::to_string(i)}})->Add();
  const std::string text = registry.RenderPrometheus();
  EXPECT_THAT(text, HasSubstr("a_total{topic=\"0\"} 1\n"
                              "a_total{topic=\"1\"} 1\n"
                              "a_total{topic=\"other\"} 8\n"));
}

TEST(Registry, ATableIsShownFamilyByFamily) {
  Registry registry;
  registry.GetGauge("b", "B.")->Set(5);
  const auto registration = registry.AddCollector([](Samples& samples) {
    samples.Add(Table{.label = "topic",
                      .columns = {{Kind::kGauge, "c", "C."}, {Kind::kCounter, "a_total", "A."}},
                      .rows = {"x", "y\""},
                      .values = {1, 2, 3, 4}});
  });
  EXPECT_EQ(registry.RenderPrometheus(),
            "# HELP a_total A.\n# TYPE a_total counter\na_total{topic=\"x\"} 2\na_total{topic=\"y\\\"\"} 4\n"
            "# HELP b B.\n# TYPE b gauge\nb 5\n"
            "# HELP c C.\n# TYPE c gauge\nc{topic=\"x\"} 1\nc{topic=\"y\\\"\"} 3\n");
}

TEST(Registry, ARenderingGoesOnThoughSeriesComeAndGo) {
  Registry registry;
  std::vector<std::string> rows;
  for (int i = 0; i < 20'000; ++i) rows.push_back(std::to_string(10'000 + i));
  const auto registration = registry.AddCollector([&](Samples& samples) {
    Table table{.label = "topic", .columns = {{Kind::kGauge, "depth", "Depth."}}, .rows = rows};
    table.values.assign(rows.size(), 1);
    samples.Add(std::move(table));
  });
  for (int i = 0; i < 100; ++i) registry.GetHistogram("late_seconds", "Late.", {{"topic", std::to_string(100 + i)}});
  Registry::Rendering rendering(registry);
  std::string text;
  ASSERT_TRUE(rendering.Next(text));
  rows.erase(rows.begin() + 10, rows.begin() + 19'900);
  const Registry::Rendering other(registry);  // reads the table again: the first goes on in it
  registry.DropSeries("topic", "150");
  while (rendering.Next(text)) {
  }
  EXPECT_THAT(text, HasSubstr("depth{topic=\"10000\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("depth{topic=\"29999\"} 1\n# HELP late_seconds"));
  EXPECT_THAT(text, HasSubstr("late_seconds_count{topic=\"199\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("late_seconds_count{topic=\"150\"}")));
  EXPECT_EQ(text.find("# TYPE depth"), text.rfind("# TYPE depth"));
}

TEST(Registry, CollectorsFillFiguresAtTheScrape) {
  Registry registry;
  double value = 1;
  {
    auto registration = registry.AddCollector([&](Samples& samples) {
      samples.Add(Kind::kGauge, "depth", "Depth.", {{"topic", "t"}}, value);
      samples.Add(Kind::kCounter, "in_total", "In.", {}, 12);
    });
    EXPECT_THAT(registry.RenderPrometheus(), HasSubstr("depth{topic=\"t\"} 1\n"));
    value = 2;
    EXPECT_EQ(registry.RenderPrometheus(),
              "# HELP depth Depth.\n# TYPE depth gauge\ndepth{topic=\"t\"} 2\n"
              "# HELP in_total In.\n# TYPE in_total counter\nin_total 12\n");
  }
  EXPECT_EQ(registry.RenderPrometheus(), "");
}

}  // namespace
}  // namespace tocsin::metrics
