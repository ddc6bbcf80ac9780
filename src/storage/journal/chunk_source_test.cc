#include "storage/journal/chunk_source.h"

#include <thread>

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

void AwaitReady(const ChunkSource& source, size_t bytes, size_t count) {
  while (source.ready(bytes) < count) std::this_thread::yield();
}

TEST(ChunkSourceTest, TouchesAheadWhatIsTakenAgain) {
  ChunkSource source;
  const Chunk first = source.Take(kChunkBytes, PageSize::kHuge);
  ASSERT_TRUE(first);
  EXPECT_EQ(source.ready(kChunkBytes), 0U);  // most stores never need a second one
  const Chunk second = source.Take(kChunkBytes, PageSize::kHuge);
  ASSERT_TRUE(second);
  AwaitReady(source, kChunkBytes, 2);
  const Chunk third = source.Take(kChunkBytes, PageSize::kHuge);
  ASSERT_TRUE(third);
  for (size_t at = 0; at < kChunkBytes; at += 1024) ASSERT_EQ(third[at], 0);
  AwaitReady(source, kChunkBytes, 2);
  EXPECT_EQ(source.ready(kChunkBytes), 2U);
}

TEST(ChunkSourceTest, EachSizeIsKeptByItself) {
  ChunkSource source;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(source.Take(3 * kChunkBytes, PageSize::kHuge));
  AwaitReady(source, 3 * kChunkBytes, 1);
  EXPECT_EQ(source.ready(kChunkBytes), 0U);
  const Chunk chunk = source.Take(3 * kChunkBytes, PageSize::kHuge);
  ASSERT_TRUE(chunk);
  chunk[3 * kChunkBytes - 1] = 'x';
}

TEST(ChunkSourceTest, SmallPagesAreNotTouchedAhead) {
  ChunkSource source;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(source.Take(kChunkBytes, PageSize::kSmall));
  EXPECT_EQ(source.ready(kChunkBytes), 0U);
}

}  // namespace
}  // namespace tocsin::journal
