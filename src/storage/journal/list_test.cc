#include "storage/journal/list.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

struct Links {
  uint32_t prev = 0;
  uint32_t next = 0;
};

TEST(ListTest, KeepsTheOrderOfPushing) {
  std::vector<Links> items(4);
  const auto at = [&](uint32_t index) -> Links& { return items[index]; };
  List list;
  EXPECT_TRUE(list.empty());
  for (const uint32_t index : {2U, 1U, 3U}) list.PushBack(at, index);
  EXPECT_EQ(list.front(), 2U);
  EXPECT_EQ(list.back(), 3U);
  for (const uint32_t index : {2U, 1U, 3U}) {
    EXPECT_EQ(list.front(), index);
    list.Unlink(at, index);
  }
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.back(), 0U);
}

TEST(ListTest, AgreesWithAVector) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::vector<Links> items(64);
  const auto at = [&](uint32_t index) -> Links& { return items[index]; };
  List list;
  std::vector<uint32_t> model;
  for (int step = 0; step < 100'000; ++step) {
    const auto index = static_cast<uint32_t>(1 + random() % 63);
    const auto found = std::ranges::find(model, index);
    if (found == model.end()) {
      list.PushBack(at, index);
      model.push_back(index);
    } else {
      list.Unlink(at, index);
      model.erase(found);
    }
    ASSERT_EQ(list.front(), model.empty() ? 0 : model.front());
    ASSERT_EQ(list.back(), model.empty() ? 0 : model.back());
    std::vector<uint32_t> forward;
    for (uint32_t i = list.front(); i != 0; i = items[i].next) forward.push_back(i);
    ASSERT_EQ(forward, model);
    std::vector<uint32_t> backward;
    for (uint32_t i = list.back(); i != 0; i = items[i].prev) backward.push_back(i);
    ASSERT_TRUE(std::equal(backward.begin(), backward.end(), model.rbegin(), model.rend()));
  }
}

}  // namespace
}  // namespace tocsin::journal
