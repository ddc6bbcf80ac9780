#include "storage/journal/chunk_source.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace tocsin::journal {
namespace {

constexpr size_t kAhead = ChunkSource::kAheadBytes / kChunkBytes;

void AwaitReady(const ChunkSource& source, size_t bytes, size_t count) {
  while (source.ready(bytes) < count) std::this_thread::yield();
}

bool IsTouched(const Chunk& chunk) {
  constexpr size_t kPage = 4096;
  std::vector<unsigned char> pages(chunk.get_deleter().bytes / kPage);
  EXPECT_EQ(mincore(chunk.get(), chunk.get_deleter().bytes, pages.data()), 0);
  return std::ranges::all_of(pages, [](unsigned char page) { return (page & 1) != 0; });
}

/// Whether the kernel may give it huge pages.
bool MayBeHuge(const Chunk& chunk) {
  const auto at = reinterpret_cast<uintptr_t>(chunk.get());
  std::ifstream maps("/proc/self/smaps");
  bool within = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) within = begin <= at && at < end;
    if (within && line.starts_with("VmFlags:")) return line.contains(" hg");
  }
  ADD_FAILURE() << "it is not mapped";
  return false;
}

TEST(ChunkSourceTest, TouchesAheadWhatIsTakenAgain) {
  ChunkSource source;
  const Chunk first = source.Take(kChunkBytes, PageSize::kHuge);
  ASSERT_TRUE(first);
  EXPECT_EQ(source.ready(kChunkBytes), 0U);  // most stores never need a second one
  const Chunk second = source.Take(kChunkBytes, PageSize::kHuge);
  ASSERT_TRUE(second);
  AwaitReady(source, kChunkBytes, kAhead);
  const Chunk third = source.Take(kChunkBytes, PageSize::kHuge);
  ASSERT_TRUE(third);
  for (size_t at = 0; at < kChunkBytes; at += 1024) ASSERT_EQ(third[at], 0);
  AwaitReady(source, kChunkBytes, kAhead);
  EXPECT_EQ(source.ready(kChunkBytes), kAhead);
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

TEST(ChunkSourceTest, WhoeverServesDoesNotWaitForAHugePage) {
  if (!MayBeHuge(MapChunk(kChunkBytes, PageSize::kHuge))) GTEST_SKIP() << "the system has no huge pages";
  ChunkSource source;
  const Chunk recovered = source.Take(3 * kChunkBytes, PageSize::kHuge);
  EXPECT_TRUE(MayBeHuge(recovered));
  EXPECT_TRUE(IsTouched(recovered)) << "all of it: the store that serves will touch the rest";
  source.Serve();
  const Chunk sudden = source.Take(kChunkBytes, PageSize::kHuge);
  ASSERT_TRUE(sudden);
  EXPECT_FALSE(MayBeHuge(sudden));
  source.Expect(3 * kChunkBytes);
  AwaitReady(source, 3 * kChunkBytes, 1);
  const Chunk expected = source.Take(3 * kChunkBytes, PageSize::kHuge);
  EXPECT_TRUE(MayBeHuge(expected));
  EXPECT_TRUE(IsTouched(expected));
}

TEST(ChunkSourceTest, SmallPagesAreNotTouchedAhead) {
  ChunkSource source;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(source.Take(kChunkBytes, PageSize::kSmall));
  EXPECT_EQ(source.ready(kChunkBytes), 0U);
}

}  // namespace
}  // namespace tocsin::journal
