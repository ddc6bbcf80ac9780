#include "storage/journal/blob_arena.h"

#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

TEST(BlobArenaTest, BlocksWasteLittle) {
  EXPECT_EQ(BlobArena::BlockBytes(150), 152U);
  for (size_t size = 1; size <= 100'000; ++size) {
    const size_t block = BlobArena::BlockBytes(size);
    ASSERT_GE(block, std::max(size, size_t{16}));
    ASSERT_EQ(BlobArena::BlockBytes(block), block);
    if (size > 16 && size <= 512) ASSERT_LT(block - size, 8U) << size;
    if (size > 512 && size <= 32'768) ASSERT_LE(block - size, size / 8) << size;
    if (size > 32'768) ASSERT_EQ(block, size);
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
  const size_t held = arena.held_bytes();
  for (const BlobArena::Handle handle : handles) arena.Free(handle, 200);
  for (int round = 1; round < 20; ++round) {
    const size_t size = static_cast<size_t>(round) * 100;
    handles.clear();
    for (size_t i = 0; i < 9'000'000 / size; ++i) handles.push_back(arena.Allocate(size));
    for (const BlobArena::Handle handle : handles) arena.Free(handle, size);
  }
  EXPECT_EQ(arena.held_bytes(), held);
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
  const BlobArena::Handle other = arena.Allocate(32'769);
  EXPECT_NE(big, other);
  std::memset(arena.At(big), 1, 20'000'000);
  std::memset(arena.At(other), 2, 32'769);
  EXPECT_EQ(arena.held_bytes(), 20'032'769U);
  arena.Free(big, 20'000'000);
  EXPECT_EQ(arena.held_bytes(), 32'769U);
  EXPECT_EQ(arena.At(other)[32'768], 2);
  EXPECT_EQ(arena.Allocate(40'000), big) << "the place of a freed block is used again";
}

TEST(BlobArenaTest, FreeingWithAnotherSizeIsABug) {
  ChunkSource source;
  BlobArena arena(source);
  const BlobArena::Handle handle = arena.Allocate(100);
  EXPECT_DEATH(arena.Free(handle, 200), "block_bytes");
  EXPECT_DEATH(arena.Free(0, 100), "kChunkFirst");
  EXPECT_DEATH(arena.Free(handle, 50'000), "large_");
}

}  // namespace
}  // namespace tocsin::journal
