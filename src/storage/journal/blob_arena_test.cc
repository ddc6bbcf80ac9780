#include "storage/journal/blob_arena.h"

#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

TEST(BlobArenaTest, BlocksWasteLittle) {
  EXPECT_EQ(BlobArena::BlockBytes(150), 152U);
  for (size_t size = 1; size <= 300'000; ++size) {
    const size_t block = BlobArena::BlockBytes(size);
    ASSERT_GE(block, std::max(size, size_t{16}));
    ASSERT_EQ(BlobArena::BlockBytes(block), block);
    if (size > 16 && size <= 512) ASSERT_LT(block - size, 8U) << size;
    if (size > 512 && size <= 262'144) ASSERT_LE(block - size, size / 8) << size;
    if (size > 262'144) ASSERT_LT(block - size, 4096U);
  }
}

TEST(BlobArenaTest, AMillionBlocksOf150BytesCostAtMost8BytesMoreEach) {
  constexpr size_t kBlocks = 1'000'000;
  ChunkSource source;
  BlobArena arena(source);
  for (size_t i = 0; i < kBlocks; ++i) ASSERT_NE(arena.Allocate(150), 0U);
  EXPECT_EQ(arena.used_bytes(), kBlocks * 150);
  EXPECT_LE(arena.held_bytes(), kBlocks * 158);
}

TEST(BlobArenaTest, ContentSurvivesRandomHistories) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  ChunkSource source;
  BlobArena arena(source);
  std::map<BlobArena::Handle, std::pair<size_t, char>> model;
  size_t used = 0;
  for (int step = 0; step < 40'000; ++step) {
    if (model.empty() || random() % 100 < 52) {
      const size_t size = random() % (size_t{1} << (random() % 18));
      const BlobArena::Handle handle = arena.Allocate(size);
      ASSERT_NE(handle, 0U);
      const char fill = static_cast<char>(random());
      std::memset(arena.At(handle), fill, size);
      ASSERT_TRUE(model.try_emplace(handle, size, fill).second) << "handed out twice";
      ASSERT_EQ(reinterpret_cast<uintptr_t>(arena.At(handle)) % 8, 0U);
      used += size;
    } else {
      auto any = model.lower_bound(static_cast<uint32_t>(random()));
      if (any == model.end()) any = model.begin();
      const auto [size, fill] = any->second;
      ASSERT_EQ(std::string_view(arena.At(any->first), size), std::string(size, fill));
      arena.Free(any->first, size);
      used -= size;
      model.erase(any);
    }
    ASSERT_EQ(arena.used_bytes(), used);
  }
  for (const auto& [handle, block] : model) arena.Free(handle, block.first);
  EXPECT_EQ(arena.used_bytes(), 0U);
}

TEST(BlobArenaTest, AFreeChunkServesOtherSizes) {
  ChunkSource source;
  BlobArena arena(source);
  std::vector<BlobArena::Handle> handles;
  for (int i = 0; i < 50'000; ++i) handles.push_back(arena.Allocate(200));
  const size_t held = 5 * kChunkBytes;
  ASSERT_LE(arena.held_bytes(), held);
  for (const BlobArena::Handle handle : handles) arena.Free(handle, 200);
  for (int round = 1; round < 20; ++round) {
    const size_t size = static_cast<size_t>(round) * 100;
    handles.clear();
    for (size_t i = 0; i < 9'000'000 / size; ++i) handles.push_back(arena.Allocate(size));
    for (const BlobArena::Handle handle : handles) arena.Free(handle, size);
  }
  EXPECT_LE(arena.held_bytes(), held);
}

TEST(BlobArenaTest, ABlockFreedInAFullChunkIsUsedAgain) {
  ChunkSource source;
  BlobArena arena(source);
  std::vector<BlobArena::Handle> handles;
  for (int i = 0; i < 4 * 64; ++i) handles.push_back(arena.Allocate(32'768));
  const size_t held = arena.held_bytes();
  EXPECT_EQ(held, 4 * kChunkBytes);
  for (const size_t gone : {70U, 71U, 10U, 200U, 130U}) {
    arena.Free(handles[gone], 32'768);
    EXPECT_EQ(arena.Allocate(32'768), handles[gone]);
  }
  EXPECT_EQ(arena.held_bytes(), held);
}

TEST(BlobArenaTest, LargeBlocksGiveTheirMemoryBack) {
  ChunkSource source;
  BlobArena arena(source);
  const BlobArena::Handle big = arena.Allocate(20'000'000);
  const BlobArena::Handle other = arena.Allocate(262'145);
  EXPECT_NE(big, other);
  std::memset(arena.At(big), 1, 20'000'000);
  std::memset(arena.At(other), 2, 262'145);
  EXPECT_EQ(arena.held_bytes(), 20'000'768U + 266'240U) << "whole pages";
  arena.Free(big, 20'000'000);
  EXPECT_EQ(arena.held_bytes() - arena.pooled_bytes(), 266'240U);
  EXPECT_FALSE(arena.ReleaseLarge(1)) << "at least one block";
  EXPECT_EQ(arena.held_bytes(), 266'240U);
  EXPECT_EQ(arena.pooled_bytes(), 0U);
  EXPECT_EQ(arena.At(other)[262'144], 2);
  EXPECT_EQ(arena.Allocate(300'000), big) << "the place of a freed block is used again";
}

TEST(BlobArenaTest, WhoeverMapsMoreReleasesWhatWasFreed) {
  ChunkSource source;
  BlobArena arena(source);
  std::vector<BlobArena::Handle> handles(10);
  for (BlobArena::Handle& handle : handles) handle = arena.Allocate(1 << 20);
  for (const BlobArena::Handle handle : handles) arena.Free(handle, 1 << 20);
  EXPECT_EQ(arena.held_bytes(), 10U << 20);
  for (int i = 0; i < 4; ++i) ASSERT_NE(arena.Allocate(1 << 20), 0U);
  EXPECT_EQ(arena.held_bytes(), 6U << 20);
  ASSERT_NE(arena.Allocate(200), 0U);
  EXPECT_LT(arena.held_bytes(), 5U << 20) << "also for a chunk of small blocks";
}

TEST(BlobArenaTest, ThePoolGivesItsMemoryBack) {
  ChunkSource source;
  BlobArena arena(source);
  std::vector<BlobArena::Handle> handles;
  for (int i = 0; i < 50'000; ++i) handles.push_back(arena.Allocate(200));
  for (const BlobArena::Handle handle : handles) arena.Free(handle, 200);
  EXPECT_EQ(arena.pooled(), 5U);
  arena.Release(2);
  EXPECT_EQ(arena.held_bytes(), 3 * kChunkBytes - kChunkBytes % 200) << "the small pages of one end at its last block";
  arena.Release(100);
  EXPECT_EQ(arena.held_bytes(), 0U);
  for (BlobArena::Handle& handle : handles) ASSERT_NE(handle = arena.Allocate(200), 0U);
  std::memset(arena.At(handles.back()), 3, 200);
}

TEST(BlobArenaTest, SparseChunksAreEmptiedByMovingTheirBlocks) {
  ChunkSource source;
  BlobArena arena(source);
  std::map<size_t, std::vector<BlobArena::Handle>> live;
  for (size_t size = 100; size <= 200'000; size += size / 3) {
    std::vector<BlobArena::Handle>& handles = live[size];
    for (size_t i = 0; i < 10'000'000 / size; ++i) {
      handles.push_back(arena.Allocate(size));
      std::memset(arena.At(handles.back()), static_cast<char>(i), size);
    }
    for (size_t i = 0; i < handles.size(); ++i) {
      if (i % 8 != 0) arena.Free(std::exchange(handles[i], 0), size);
    }
  }
  const size_t held = arena.held_bytes();
  ASSERT_GT(held, 6 * arena.used_bytes());
  while (arena.Evacuate()) {
    for (auto& [size, handles] : live) {
      for (BlobArena::Handle& handle : handles) {
        if (handle == 0 || !arena.Leaving(handle)) continue;
        const BlobArena::Handle fresh = arena.Allocate(size);
        std::memcpy(arena.At(fresh), arena.At(handle), size);
        arena.Free(std::exchange(handle, fresh), size);
      }
    }
    arena.StopEvacuating();
  }
  arena.Release(arena.pooled());
  EXPECT_LT(arena.held_bytes(), 2 * arena.used_bytes());
  for (auto& [size, handles] : live) {
    for (size_t i = 0; i < handles.size(); i += 8) {
      ASSERT_EQ(std::string_view(arena.At(handles[i]), size), std::string(size, static_cast<char>(i)));
      arena.Free(handles[i], size);
    }
  }
  EXPECT_EQ(arena.used_bytes(), 0U);
}

TEST(BlobArenaTest, ChunksThatWereNotEmptiedServeAgain) {
  ChunkSource source;
  BlobArena arena(source);
  std::vector<BlobArena::Handle> handles;
  for (int i = 0; i < 10'000; ++i) handles.push_back(arena.Allocate(200));
  for (size_t i = 1; i < handles.size(); ++i) arena.Free(handles[i], 200);
  ASSERT_TRUE(arena.Evacuate());
  EXPECT_TRUE(arena.Leaving(handles[0]));
  arena.StopEvacuating();
  EXPECT_FALSE(arena.Leaving(handles[0]));
  const size_t held = arena.held_bytes();
  for (size_t i = 1; i < handles.size(); ++i) ASSERT_NE(arena.Allocate(200), 0U);
  EXPECT_EQ(arena.held_bytes(), held);
}

TEST(BlobArenaTest, FreeingWithAnotherSizeIsABug) {
  ChunkSource source;
  BlobArena arena(source);
  const BlobArena::Handle handle = arena.Allocate(100);
  EXPECT_DEATH(arena.Free(handle, 200), "block_bytes");
  EXPECT_DEATH(arena.Free(0, 100), "kChunkFirst");
  EXPECT_DEATH(arena.Free(handle, 500'000), "large_");
}

}  // namespace
}  // namespace tocsin::journal
