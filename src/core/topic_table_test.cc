#include "core/topic_table.h"

#include <chrono>
#include <ctime>

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(TopicTable, CountsTheNamesWithAPrefix) {
  metrics::Registry metrics;
  TopicTable table(Placement{1}, metrics, 10);
  for (const char* name :
       {"a", "shop", "shop.", "shop.a", "shop.\xf4\x8f\xbf\xbf", "shop.é", "shop/", "shoq", "\xf4\x8f\xbf\xbf"}) {
    table.Put(DefaultTopic(name));
    table.Put(DefaultTopic(name));
  }
  EXPECT_EQ(table.CountOf(""), 9U);
  EXPECT_EQ(table.CountOf("shop"), 6U);
  EXPECT_EQ(table.CountOf("shop."), 4U);
  EXPECT_EQ(table.CountOf("shop.a"), 1U);
  EXPECT_EQ(table.CountOf("shop.b"), 0U);
  EXPECT_EQ(table.CountOf("z"), 0U);
  EXPECT_EQ(table.CountOf("\xf4"), 1U);
  table.Erase("shop.");
  table.Erase("shop.");
  EXPECT_EQ(table.CountOf("shop."), 3U);
  EXPECT_EQ(table.NamesAfter("shop", "shop", 2), (std::vector<std::string>{"shop.a", "shop.é"}));
}

TEST(RankedNames, CountingDoesNotWalk) {
  constexpr size_t kNames = 50'000;
  RankedNames<std::string> names;
  for (size_t i = 0; i < kNames; ++i) names.insert(fmt::format("t{}", i));
  const auto cpu = [] { return std::chrono::duration<double>(static_cast<double>(clock()) / CLOCKS_PER_SEC); };
  const auto begin = cpu();
  size_t counted = 0;
  for (int i = 0; i < 500; ++i) counted += names.CountOf("t");
  EXPECT_EQ(counted, 500 * kNames);
  EXPECT_LT(cpu() - begin, std::chrono::milliseconds(500)) << "a walk takes a millisecond or more each time";
}

}  // namespace
}  // namespace tocsin
