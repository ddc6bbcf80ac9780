#include "storage/journal/event_set.h"

#include <set>

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

std::set<uint64_t> All(const EventSet& events) {
  std::set<uint64_t> all;
  events.ForEach([&](uint64_t event) { EXPECT_TRUE(all.insert(event).second) << event; });
  return all;
}

TEST(EventSet, HasEachEventOnce) {
  EventSet events;
  std::set<uint64_t> model;
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(events.held_bytes(), 0U) << "most jobs count nothing";
  for (uint64_t i = 0; i < 100'000; ++i) {
    const uint64_t event = i % 3 == 0 ? i / 2 : Mix64(i / 2, 1);  // some come again
    ASSERT_EQ(events.Insert(event), model.insert(event).second) << i;
    ASSERT_EQ(events.size(), model.size());
  }
  EXPECT_EQ(All(events), model);
  for (const uint64_t event : model) ASSERT_FALSE(events.Insert(event));
}

TEST(EventSet, KeepsTheWordThatMarksAFreeSlot) {
  EventSet events;
  EXPECT_TRUE(events.Insert(0));
  EXPECT_FALSE(events.Insert(0));
  EXPECT_EQ(events.size(), 1U);
  EXPECT_EQ(All(events), std::set<uint64_t>{0});
}

TEST(EventSet, GrowsInSmallSteps) {
  EventSet events;
  size_t largest = 0;  // what one insert adds
  for (uint64_t i = 1; i <= 100'000; ++i) {
    const size_t before = events.held_bytes();
    events.Insert(i);
    largest = std::max(largest, events.held_bytes() - before);
  }
  EXPECT_LE(largest, 16U << 10);
  EXPECT_LE(events.held_bytes(), 100'000U * sizeof(uint64_t) * 3);
}

TEST(EventSet, IsFreedInSteps) {
  EventSet events;
  for (uint64_t i = 1; i <= 100'000; ++i) events.Insert(i);
  EXPECT_TRUE(events.large());
  const size_t held = events.held_bytes();
  size_t freed = 0;
  size_t steps = 0;
  for (; !events.freed(); ++steps) {
    const size_t step = events.FreeSome(32 << 10);
    EXPECT_LE(step, 64U << 10);
    freed += step;
  }
  EXPECT_GT(steps, 10U);
  EXPECT_LE(freed, held);
  EXPECT_GE(freed, held / 2);
}

}  // namespace
}  // namespace tocsin::journal
