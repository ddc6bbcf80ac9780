#include "storage/journal/slab.h"

#include <algorithm>
#include <bit>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace tocsin::journal {
namespace {

struct Thing {
  uint64_t value = 0;
  uint32_t link = 0;
  bool used = true;
  char rest[24] = {};  // 40 bytes: not a power of two

  void MarkFree(uint32_t next) {
    used = false;
    link = next;
  }
  uint32_t NextFree() const { return link; }
  bool IsFree() const { return !used; }
};

TEST(SlabTest, GivesFreshObjectsAndNeverZero) {
  ChunkSource source;
  Slab<Thing> slab(source);
  EXPECT_EQ(slab.end(), 1U);
  const uint32_t first = slab.Allocate();
  EXPECT_EQ(first, 1U);
  slab[first].value = 7;
  slab.Free(first);
  EXPECT_EQ(slab.live(), 0U);
  EXPECT_EQ(slab.Allocate(), first);
  EXPECT_EQ(slab[first].value, 0U);
  EXPECT_EQ(slab.end(), 2U);
}

TEST(SlabTest, AddressesAreStableAndDistinctAcrossChunks) {
  ChunkSource source;
  Slab<Thing> slab(source);
  constexpr uint32_t kObjects = 600'000;  // three chunks
  std::vector<Thing*> addresses(1);
  for (uint32_t i = 1; i <= kObjects; ++i) {
    ASSERT_EQ(slab.Allocate(), i);
    slab[i].value = i;
    addresses.push_back(&slab[i]);
  }
  for (uint32_t i = 1; i <= kObjects; ++i) {
    ASSERT_EQ(&slab[i], addresses[i]);
    ASSERT_EQ(slab[i].value, i);
  }
  EXPECT_GE(slab.held_bytes(), kObjects * sizeof(Thing));
}

TEST(SlabTest, AScanSeesExactlyTheUsedObjects) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  ChunkSource source;
  Slab<Thing> slab(source);
  std::set<uint32_t> model;
  for (int step = 0; step < 20'000; ++step) {
    if (model.empty() || random() % 5 < 3) {
      const uint32_t index = slab.Allocate();
      ASSERT_TRUE(model.insert(index).second);
    } else {
      const auto any = model.lower_bound(static_cast<uint32_t>(random() % slab.end()));
      if (any == model.end()) continue;
      slab.Free(*any);
      model.erase(any);
    }
  }
  std::set<uint32_t> seen;
  for (uint32_t i = 1; i < slab.end(); ++i) {
    if (!slab[i].IsFree()) seen.insert(i);
  }
  EXPECT_EQ(seen, model);
  EXPECT_EQ(slab.live(), model.size());
}

TEST(SlabTest, EveryFreedObjectIsUsedAgain) {
  ChunkSource source;
  Slab<Thing> slab(source);
  for (int i = 0; i < 1'000; ++i) ASSERT_NE(slab.Allocate(), 0U);
  for (uint32_t i = 1; i <= 1'000; i += 3) slab.Free(i);
  while (slab.live() < 1'000) ASSERT_NE(slab.Allocate(), 0U);
  EXPECT_EQ(slab.end(), 1'001U);
}

TEST(SlabTest, AnEmptyChunkGivesItsMemoryBack) {
  ChunkSource source;
  Slab<Thing> slab(source);
  constexpr uint32_t kObjects = 600'000;
  for (uint32_t i = 1; i <= kObjects; ++i) ASSERT_EQ(slab.Allocate(), i);
  const size_t held = slab.held_bytes();
  for (uint32_t i = 1; i < kObjects; ++i) slab.Free(i);
  EXPECT_LT(slab.held_bytes(), held / 2);
  size_t used = 0;
  for (uint32_t i = 1; i < slab.end(); ++i) used += slab[i].IsFree() ? 0 : 1;
  EXPECT_EQ(used, 1U);
  std::set<uint32_t> seen = {kObjects};
  while (slab.live() < kObjects) ASSERT_TRUE(seen.insert(slab.Allocate()).second) << "handed out twice";
  EXPECT_EQ(slab.held_bytes(), held) << "without a chunk more";
}

/// Whether the pages of so many objects are in memory, so that their first use does not wait for the kernel.
bool AreTouched(Slab<Thing>& slab, uint32_t first, uint32_t last) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(&slab[first]) / kPage * kPage;
  const uintptr_t end = reinterpret_cast<uintptr_t>(&slab[last] + 1);
  std::vector<unsigned char> pages((end - begin + kPage - 1) / kPage);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()), 0);
  return std::ranges::all_of(pages, [](unsigned char page) { return (page & 1) != 0; });
}

TEST(SlabTest, AChunkIsTouchedBeforeItsFirstObjectAndAgainAfterItWasEmpty) {
  constexpr size_t kBytes = kChunkBytes * (sizeof(Thing) >> std::countr_zero(sizeof(Thing)));
  constexpr auto kPerChunk = static_cast<uint32_t>(kBytes / sizeof(Thing));
  ChunkSource source;
  source.Serve();
  Slab<Thing> slab(source);
  const auto await_next = [&] {
    while (source.ready(kBytes) == 0) std::this_thread::yield();
  };
  for (uint32_t i = 1; i < kPerChunk; ++i) ASSERT_EQ(slab.Allocate(), i);
  await_next();
  ASSERT_EQ(slab.Allocate(), kPerChunk);
  EXPECT_TRUE(AreTouched(slab, kPerChunk, 2 * kPerChunk - 1));
  slab.Free(1);
  slab.Free(kPerChunk);
  EXPECT_FALSE(AreTouched(slab, kPerChunk, kPerChunk)) << "the second chunk is empty and gave its memory back";
  EXPECT_TRUE(slab[kPerChunk].IsFree());
  ASSERT_EQ(slab.Allocate(), 1U);
  await_next();
  ASSERT_EQ(slab.Allocate(), kPerChunk);
  EXPECT_TRUE(AreTouched(slab, kPerChunk, 2 * kPerChunk - 1));
}

TEST(SlabTest, AnObjectThatComesAndGoesKeepsItsMemory) {
  ChunkSource source;
  Slab<Thing> slab(source);
  const uint32_t first = slab.Allocate();
  slab.Free(first);
  EXPECT_EQ(slab.Allocate(), first);
  EXPECT_EQ(slab.held_bytes(), sizeof(Thing));
}

TEST(SlabTest, FreeingTwiceIsABug) {
  ChunkSource source;
  Slab<Thing> slab(source);
  const uint32_t index = slab.Allocate();
  slab.Free(index);
  EXPECT_DEATH(slab.Free(index), "IsFree");
  EXPECT_DEATH(slab.Free(0), "index != 0");
}

}  // namespace
}  // namespace tocsin::journal
