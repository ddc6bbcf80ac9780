#include "storage/journal/ready_jobs.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

struct Item : WheelItem {
  Timeline on = Timeline::kSteady;
  Timeline timeline() const { return on; }
};

using Key = std::pair<int64_t, uint64_t>;

TEST(ReadyJobs, AgreesWithASortedSetWhateverTheClockDoes) {
  std::mt19937_64 random(7);
  std::vector<Item> items(200);
  for (size_t i = 1; i < items.size(); ++i) {
    items[i].due_ms = static_cast<int64_t>(random() % 50);
    items[i].seq = i;
    items[i].on = random() % 3 == 0 ? Timeline::kUtc : Timeline::kSteady;
  }
  const auto at = [&](uint32_t index) -> Item& { return items[index]; };
  int64_t apart = 5;  // utc - steady
  const auto order = [&](uint32_t index) {
    const Item& item = items[index];
    return std::pair(item.due_ms + (item.on == Timeline::kSteady ? apart : 0), item.seq);
  };
  ReadyJobs ready;
  std::set<uint32_t> model;
  size_t out_of_turn = 0;
  bool stepped = false;  // since it was empty: what came in turn stays in the order of then
  const auto check = [&] {
    std::vector<uint32_t> expected(model.begin(), model.end());
    std::ranges::sort(expected, {}, order);
    std::vector<uint32_t> found;
    std::map<Timeline, Key> last;
    ready.ForEach(at, order, [&](uint32_t each) {
      found.push_back(each);
      if (items[each].bucket == kNoBucket) return true;
      // The tree of each timeline has its order whatever the clock does.
      const Key key{items[each].due_ms, items[each].seq};
      const auto [before, first] = last.emplace(items[each].on, key);
      EXPECT_TRUE(first || before->second < key);
      before->second = key;
      return true;
    });
    ASSERT_EQ(ready.First(order), found.empty() ? 0 : found.front());
    if (stepped) std::ranges::sort(found, {}, order);
    ASSERT_EQ(found, expected);
  };
  const auto change = [&](uint32_t index) {
    const bool there = model.erase(index) > 0;
    if (there) {
      out_of_turn -= ready.Remove(at, index) ? 1 : 0;
      EXPECT_EQ(items[index].bucket, kNoBucket) << "a removed job can go to a wheel";
    } else {
      out_of_turn += ready.Insert(at, order, index) ? 1 : 0;
      model.insert(index);
    }
    ASSERT_EQ(ready.empty(), model.empty());
  };
  for (int phase = 0; phase < 200; ++phase) {
    apart = static_cast<int64_t>(random() % 81) - 40;
    stepped = true;
    if (phase % 3 == 0) {
      while (!model.empty()) ASSERT_NO_FATAL_FAILURE(change(*model.begin()));
      EXPECT_EQ(out_of_turn, 0U);
      stepped = false;
    }
    for (int step = 0; step < 300; ++step) {
      ASSERT_NO_FATAL_FAILURE(change(static_cast<uint32_t>(1 + random() % (items.size() - 1))));
      if (step % 50 == 0) ASSERT_NO_FATAL_FAILURE(check());
    }
    ASSERT_NO_FATAL_FAILURE(check());
  }
}

}  // namespace
}  // namespace tocsin::journal
