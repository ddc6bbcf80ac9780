#include "storage/journal/blob_arena.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include <sanitizer/asan_interface.h>

#include "base/result.h"

namespace tocsin::journal {

BlobArena::~BlobArena() {
  for (const LargeBlock& block : large_) std::free(block.memory);
  // Others may map these addresses again.
  for (const BlockChunk& chunk : chunks_) {
    if (chunk.memory) ASAN_UNPOISON_MEMORY_REGION(chunk.memory.get(), kChunkBytes);
  }
}

size_t BlobArena::ClassOf(size_t size) {
  if (size <= kStepEnd) return size <= 16 ? 1 : (size - 1) / 8;
  // size - 1 as 1.xxx * 2^e: the three bits after the first choose one of eight classes in that power of two.
  const auto exponent = static_cast<size_t>(std::bit_width(size - 1)) - 1;
  return 64 + (exponent - 9) * 8 + ((size - 1) >> (exponent - 3)) - 8;
}

size_t BlobArena::ClassBytes(size_t size_class) {
  if (size_class < 64) return (size_class + 1) * 8;
  const size_t step = size_class - 64;
  return (step % 8 + 9) << (step / 8 + 6);
}

size_t BlobArena::BlockBytes(size_t size) { return size > kSmallMax ? size : ClassBytes(ClassOf(size)); }

BlobArena::Handle BlobArena::Allocate(size_t size) {
  if (size > kSmallMax) return AllocateLarge(size);
  const size_t size_class = ClassOf(size);
  uint32_t id = room_[size_class];
  if (id == 0 && (id = OpenChunk(size_class)) == 0) return 0;
  BlockChunk& chunk = chunks_[id];
  uint32_t number = chunk.fresh;
  if (chunk.free != 0) {
    number = chunk.free - 1;
    const char* const block = chunk.memory.get() + size_t{number} * chunk.block_bytes;
    ASAN_UNPOISON_MEMORY_REGION(block, sizeof(chunk.free));
    std::memcpy(&chunk.free, block, sizeof(chunk.free));
  } else {
    ++chunk.fresh;
  }
  ASAN_UNPOISON_MEMORY_REGION(chunk.memory.get() + size_t{number} * chunk.block_bytes, size);
  if (++chunk.live == chunk.blocks) DropRoom(id, size_class);
  used_bytes_ += size;
  return id << kBlockBits | number;
}

void BlobArena::Free(Handle handle, size_t size) {
  if (size > kSmallMax) return FreeLarge(handle, size);
  const uint32_t id = handle >> kBlockBits;
  const size_t size_class = ClassOf(size);
  TOCSIN_CHECK(id >= kChunkFirst && id < chunks_.size());
  BlockChunk& chunk = chunks_[id];
  TOCSIN_CHECK(chunk.live > 0 && chunk.block_bytes == ClassBytes(size_class));
  char* const block = At(handle);
  ASAN_UNPOISON_MEMORY_REGION(block, sizeof(chunk.free));
  std::memcpy(block, &chunk.free, sizeof(chunk.free));
  ASAN_POISON_MEMORY_REGION(block, chunk.block_bytes);
  chunk.free = (handle & (kBlocksMax - 1)) + 1;
  if (chunk.live == chunk.blocks) AddRoom(id, size_class);
  used_bytes_ -= size;
  if (--chunk.live == 0) {
    DropRoom(id, size_class);
    --open_[size_class];
    pool_.push_back(id);
  }
}

bool BlobArena::MapIntoPool(PageSize page_size) {
  if (chunks_.size() == kChunksMax) return false;
  Chunk memory = source_.Take(kChunkBytes, page_size);
  if (!memory) return false;
  pool_.push_back(static_cast<uint32_t>(chunks_.size()));
  chunks_.emplace_back().memory = std::move(memory);
  held_bytes_ += kChunkBytes;
  return true;
}

uint32_t BlobArena::OpenChunk(size_t size_class) {
  // The first chunk of a class may hold only a few blocks: with a huge page every size that occurs would cost 2 MiB.
  if (pool_.empty() && !MapIntoPool(open_[size_class] == 0 ? PageSize::kSmall : PageSize::kHuge)) return 0;
  const uint32_t id = pool_.back();
  pool_.pop_back();
  BlockChunk& chunk = chunks_[id];
  chunk.block_bytes = static_cast<uint32_t>(ClassBytes(size_class));
  chunk.blocks = static_cast<uint32_t>(kChunkBytes / chunk.block_bytes);
  chunk.live = chunk.fresh = chunk.free = 0;
  ASAN_POISON_MEMORY_REGION(chunk.memory.get(), kChunkBytes);
  ++open_[size_class];
  AddRoom(id, size_class);
  return id;
}

void BlobArena::AddRoom(uint32_t id, size_t size_class) {
  BlockChunk& chunk = chunks_[id];
  chunk.prev = 0;
  chunk.next = room_[size_class];
  if (chunk.next != 0) chunks_[chunk.next].prev = id;
  room_[size_class] = id;
}

void BlobArena::DropRoom(uint32_t id, size_t size_class) {
  const BlockChunk& chunk = chunks_[id];
  (chunk.prev == 0 ? room_[size_class] : chunks_[chunk.prev].next) = chunk.next;
  if (chunk.next != 0) chunks_[chunk.next].prev = chunk.prev;
}

BlobArena::Handle BlobArena::AllocateLarge(size_t size) {
  if (large_free_ == 0 && large_.size() == kLargeEnd) return 0;
  char* const memory = static_cast<char*>(std::malloc(size));
  if (memory == nullptr) return 0;
  Handle handle = large_free_;
  if (handle != 0) {
    large_free_ = large_[handle].next_free;
  } else {
    handle = static_cast<Handle>(large_.size());
    large_.emplace_back();
  }
  large_[handle].memory = memory;
  used_bytes_ += size;
  held_bytes_ += size;
  return handle;
}

void BlobArena::FreeLarge(Handle handle, size_t size) {
  TOCSIN_CHECK(handle < large_.size() && large_[handle].memory != nullptr);
  std::free(large_[handle].memory);
  large_[handle] = {nullptr, large_free_};
  large_free_ = handle;
  used_bytes_ -= size;
  held_bytes_ -= size;
}

}  // namespace tocsin::journal
