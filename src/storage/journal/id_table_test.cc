#include "storage/journal/id_table.h"

#include <algorithm>
#include <random>
#include <unordered_map>

#include <gtest/gtest.h>

#include "base/hash.h"

namespace tocsin::journal {
namespace {

uint64_t HashOf(uint32_t index) { return Mix64(index, 12345); }

uint32_t FindExact(const IdTable& table, uint64_t hash, uint32_t index) {
  return table.Find(hash, [&](uint32_t found) { return found == index; });
}

TEST(IdTableTest, EmptyTableFindsNothing) {
  ChunkSource source;
  IdTable table(source);
  EXPECT_EQ(FindExact(table, 1, 1), 0U);
  EXPECT_FALSE(table.Erase(1, 1));
  EXPECT_EQ(table.held_bytes() / kChunkBytes, 0U);
}

TEST(IdTableTest, GrowsByOnePageAtATime) {
  constexpr uint32_t kEntries = 1'000'000;
  ChunkSource source;
  IdTable table(source);
  size_t held = 0;
  for (uint32_t i = 1; i <= kEntries; ++i) {
    ASSERT_TRUE(table.Insert(HashOf(i), i));
    ASSERT_LE(table.held_bytes(), held + kChunkBytes + (1U << 16));
    held = table.held_bytes();
  }
  EXPECT_EQ(table.size(), kEntries);
  for (uint32_t i = 1; i <= kEntries; ++i) ASSERT_EQ(FindExact(table, HashOf(i), i), i);
  for (uint32_t i = 1; i <= kEntries; ++i) {
    ASSERT_EQ(table.Find(HashOf(i + kEntries), [&](uint32_t found) { return HashOf(found) == HashOf(i + kEntries); }),
              0U);
  }
  EXPECT_LE(table.held_bytes(), size_t{kEntries} * 20);
  for (uint32_t i = 1; i <= kEntries; ++i) ASSERT_TRUE(table.Erase(HashOf(i), i));
  EXPECT_LE(table.held_bytes(), held / 10) << "an empty table gives its memory back";
  ASSERT_TRUE(table.Insert(HashOf(1), 1));
  EXPECT_EQ(FindExact(table, HashOf(1), 1), 1U);
}

TEST(IdTableTest, AgreesWithAMap) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  ChunkSource source;
  IdTable table(source);
  std::unordered_map<uint32_t, uint64_t> model;
  uint32_t next = 1;
  for (int step = 0; step < 400'000; ++step) {
    const auto any = static_cast<uint32_t>(1 + random() % next);
    const auto found = model.find(any);
    if (found != model.end() && random() % 2 == 0) {
      ASSERT_TRUE(table.Erase(found->second, any));
      ASSERT_FALSE(table.Erase(found->second, any));
      model.erase(found);
    } else if (found != model.end()) {
      ASSERT_EQ(FindExact(table, found->second, any), any);
    } else {
      // A few thousand hashes for all: many entries share one.
      const uint64_t hash = random() % 2 == 0 ? random() : Mix64(random() % 3'000, 1);
      ASSERT_TRUE(table.Insert(hash, next));
      model.emplace(next++, hash);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  for (const auto& [index, hash] : model) ASSERT_EQ(FindExact(table, hash, index), index);
  for (const auto& [index, hash] : model) ASSERT_TRUE(table.Erase(hash, index));
  EXPECT_EQ(table.size(), 0U);
}

TEST(IdTableTest, EqualHashesChainInsteadOfGrowingTheDirectory) {
  constexpr uint32_t kEntries = 10'000;
  constexpr uint64_t kHash = 0xDEADBEEFCAFEF00D;
  ChunkSource source;
  IdTable table(source);
  for (uint32_t i = 1; i <= kEntries; ++i) ASSERT_TRUE(table.Insert(kHash, i));
  EXPECT_LE(table.directory_size(), 1024U);
  EXPECT_LE(table.held_bytes(), 4 * kChunkBytes);
  EXPECT_EQ(FindExact(table, kHash, 1), 1U);
  EXPECT_EQ(FindExact(table, kHash, kEntries), kEntries);
  EXPECT_EQ(FindExact(table, kHash, kEntries + 1), 0U);
  // The others live on beside it, and the skewed page does not make their pages chain.
  for (uint32_t i = 1; i <= 200'000; ++i) ASSERT_TRUE(table.Insert(HashOf(i), kEntries + i));
  for (uint32_t i = 1; i <= 200'000; ++i) ASSERT_EQ(FindExact(table, HashOf(i), kEntries + i), kEntries + i);
  EXPECT_LE(table.held_bytes(), 8 * kChunkBytes);
  for (uint32_t i = 1; i <= kEntries; ++i) ASSERT_TRUE(table.Erase(kHash, i)) << i;
  EXPECT_EQ(FindExact(table, kHash, kEntries), 0U);
  EXPECT_EQ(table.size(), 200'000U);
}

TEST(IdTableTest, HashesThatDifferInTheLowBitsAloneWork) {
  constexpr uint32_t kEntries = 15'000;
  ChunkSource source;
  IdTable table(source);
  for (uint32_t i = 1; i <= kEntries; ++i) ASSERT_TRUE(table.Insert(i, i));
  for (uint32_t i = 1; i <= kEntries; ++i) ASSERT_EQ(FindExact(table, i, i), i);
  EXPECT_LE(table.directory_size(), 1024U);
  for (uint32_t i = 1; i <= kEntries; i += 2) ASSERT_TRUE(table.Erase(i, i));
  for (uint32_t i = 1; i <= kEntries; ++i) ASSERT_EQ(FindExact(table, i, i), i % 2 == 0 ? i : 0);
}

TEST(IdTableTest, APageOfAChainIsUsedAgain) {
  ChunkSource source;
  IdTable table(source);
  uint32_t entries = 0;
  while (entries < 3'328) ASSERT_TRUE(table.Insert(7, ++entries));
  ASSERT_TRUE(table.Insert(7, ++entries));  // alone in the second page
  const size_t held = table.held_bytes();
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(table.Erase(7, entries));
    ASSERT_EQ(FindExact(table, 7, entries), 0U);
    ASSERT_TRUE(table.Insert(7, entries));
  }
  EXPECT_EQ(table.held_bytes(), held);
  EXPECT_EQ(FindExact(table, 7, entries), entries);
}

}  // namespace
}  // namespace tocsin::journal
