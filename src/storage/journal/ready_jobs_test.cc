#include "storage/journal/ready_jobs.h"

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

struct Item : WheelItem {
  Timeline on = Timeline::kSteady;
  Timeline timeline() const { return on; }
};

TEST(ReadyJobs, AgreesWithASortedSet) {
  std::mt19937_64 random(7);
  std::vector<Item> items(200);
  for (size_t i = 1; i < items.size(); ++i) {
    items[i].due_ms = static_cast<int64_t>(random() % 50);
    items[i].seq = i;
    items[i].on = random() % 3 == 0 ? Timeline::kUtc : Timeline::kSteady;
  }
  const auto at = [&](uint32_t index) -> Item& { return items[index]; };
  constexpr int64_t kApart = 5;
  const auto order = [&](uint32_t index) {
    const Item& item = items[index];
    return std::pair(item.due_ms + (item.on == Timeline::kSteady ? kApart : 0), item.seq);
  };
  ReadyJobs ready;
  std::set<std::pair<std::pair<int64_t, uint64_t>, uint32_t>> model;
  size_t out_of_turn = 0;
  for (int step = 0; step < 20'000; ++step) {
    const auto index = static_cast<uint32_t>(1 + random() % (items.size() - 1));
    const bool there = model.contains({order(index), index});
    if (there) {
      out_of_turn -= ready.Remove(at, index) ? 1 : 0;
      model.erase({order(index), index});
    } else {
      out_of_turn += ready.Insert(at, order, index) ? 1 : 0;
      model.emplace(order(index), index);
    }
    ASSERT_EQ(ready.empty(), model.empty());
    ASSERT_EQ(items[index].bucket == kNoBucket || !there, true) << "a removed job can go to a wheel";
    if (step % 50 != 0) continue;
    std::vector<uint32_t> expected;
    for (const auto& [key, each] : model) expected.push_back(each);
    std::vector<uint32_t> found;
    ready.ForEach(at, order, [&](uint32_t each) {
      found.push_back(each);
      return true;
    });
    ASSERT_EQ(found, expected);
  }
  while (!model.empty()) {
    const uint32_t index = model.begin()->second;
    out_of_turn -= ready.Remove(at, index) ? 1 : 0;
    model.erase(model.begin());
  }
  EXPECT_TRUE(ready.empty());
  EXPECT_EQ(out_of_turn, 0U);
}

}  // namespace
}  // namespace tocsin::journal
