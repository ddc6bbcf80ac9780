#include "storage/journal/blob_arena.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include "base/result.h"

namespace tocsin::journal {
namespace {

size_t PagesOf(size_t size) {
  constexpr size_t kPage = 4096;
  return (size + kPage - 1) / kPage * kPage;
}

}  // namespace

BlobArena::~BlobArena() {
  ReleaseLarge(held_bytes_);
  for (const LargeBlock& block : large_) {
    if (block.memory != nullptr) munmap(block.memory, block.bytes);
  }
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

size_t BlobArena::BlockBytes(size_t size) { return size > kSmallMax ? PagesOf(size) : ClassBytes(ClassOf(size)); }

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
    Touch(chunk, size_t{++chunk.fresh} * chunk.block_bytes);
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
  if (chunk.live == chunk.blocks && !chunk.leaving) AddRoom(id, size_class);
  used_bytes_ -= size;
  if (--chunk.live > 0) return;
  if (chunk.leaving) {
    chunk.leaving = false;
  } else {
    DropRoom(id, size_class);
    --open_[size_class];
  }
  PutIntoPool(id);
}

void BlobArena::PutIntoPool(uint32_t id) {
  PoolOf(chunks_[id].page_size).push_back(id);
  pooled_bytes_ += chunks_[id].touched;
}

uint32_t BlobArena::TakeFromPool(std::vector<uint32_t>& pool) {
  const uint32_t id = pool.back();
  pool.pop_back();
  pooled_bytes_ -= chunks_[id].touched;
  return id;
}

void BlobArena::Touch(BlockChunk& chunk, size_t bytes) {
  if (bytes <= chunk.touched) return;
  held_bytes_ += bytes - chunk.touched;
  chunk.touched = static_cast<uint32_t>(bytes);
}

bool BlobArena::MapIntoPool(PageSize page_size) {
  if (vacant_.empty() && chunks_.size() == kChunksMax) return false;
  ReleaseLarge(2 * kChunkBytes);  // whoever maps faster than others release would hold more and more
  Chunk memory = source_.Take(kChunkBytes, page_size);
  if (!memory) return false;
  if (vacant_.empty()) {
    vacant_.push_back(static_cast<uint32_t>(chunks_.size()));
    chunks_.emplace_back();
  }
  const uint32_t id = vacant_.back();
  vacant_.pop_back();
  BlockChunk& chunk = chunks_[id];
  chunk.memory = std::move(memory);
  chunk.page_size = page_size;
  if (page_size == PageSize::kHuge) Touch(chunk, kChunkBytes);
  PutIntoPool(id);
  return true;
}

void BlobArena::Release(size_t chunks) {
  for (; chunks > 0 && pooled() > 0; --chunks) {
    const uint32_t id = TakeFromPool(pools_[0].empty() ? pools_[1] : pools_[0]);
    ASAN_UNPOISON_MEMORY_REGION(chunks_[id].memory.get(), kChunkBytes);
    held_bytes_ -= chunks_[id].touched;
    chunks_[id] = {};
    vacant_.push_back(id);
  }
}

uint32_t BlobArena::OpenChunk(size_t size_class) {
  // The first chunk of a class may hold only a few blocks: with a huge page every size that occurs would cost 2 MiB.
  const PageSize page_size = open_[size_class] == 0 ? PageSize::kSmall : PageSize::kHuge;
  std::vector<uint32_t>& pool = PoolOf(page_size);
  if (pool.empty() && !MapIntoPool(page_size)) return 0;
  const uint32_t id = TakeFromPool(pool);
  BlockChunk& chunk = chunks_[id];
  chunk.block_bytes = static_cast<uint32_t>(ClassBytes(size_class));
  chunk.blocks = static_cast<uint32_t>(kChunkBytes / chunk.block_bytes);
  chunk.live = chunk.fresh = chunk.free = 0;
  ASAN_POISON_MEMORY_REGION(chunk.memory.get(), kChunkBytes);
  ++open_[size_class];
  AddRoom(id, size_class);
  return id;
}

bool BlobArena::Evacuate() {
  bool any = false;
  size_t bytes = 0;  // that will have to move
  for (size_t size_class = 0; size_class < kClasses; ++size_class) {
    for (uint32_t id = room_[size_class]; id != 0 && bytes < kMoveMax;) {
      BlockChunk& chunk = chunks_[id];
      const uint32_t next = chunk.next;
      const size_t live = size_t{chunk.live} * chunk.block_bytes;
      if (chunk.touched >= kSparseMin && live * 2 < chunk.touched) {
        DropRoom(id, size_class);
        --open_[size_class];
        chunk.leaving = any = true;
        bytes += live;
      }
      id = next;
    }
  }
  return any;
}

void BlobArena::StopEvacuating() {
  for (uint32_t id = kChunkFirst; id < chunks_.size(); ++id) {
    BlockChunk& chunk = chunks_[id];
    if (!std::exchange(chunk.leaving, false)) continue;
    const size_t size_class = ClassOf(chunk.block_bytes);
    ++open_[size_class];
    AddRoom(id, size_class);
  }
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
  // Not from malloc: it keeps what lies below a block that is still in use.
  const size_t bytes = PagesOf(size);
  ReleaseLarge(2 * bytes);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return 0;
  Handle handle = large_free_;
  if (handle != 0) {
    large_free_ = large_[handle].next_free;
  } else {
    handle = static_cast<Handle>(large_.size());
    large_.emplace_back();
  }
  large_[handle] = {.memory = static_cast<char*>(memory), .bytes = bytes};
  used_bytes_ += size;
  held_bytes_ += bytes;
  return handle;
}

void BlobArena::FreeLarge(Handle handle, size_t size) {
  TOCSIN_CHECK(handle < large_.size() && large_[handle].memory != nullptr && large_[handle].bytes == PagesOf(size));
  large_gone_.push_back(large_[handle]);
  used_bytes_ -= size;
  pooled_bytes_ += large_[handle].bytes;
  large_[handle] = {.next_free = large_free_};
  large_free_ = handle;
}

bool BlobArena::ReleaseLarge(size_t bytes) {
  for (size_t released = 0; released < bytes && !large_gone_.empty(); large_gone_.pop_back()) {
    const LargeBlock& block = large_gone_.back();
    munmap(block.memory, block.bytes);
    released += block.bytes;
    held_bytes_ -= block.bytes;
    pooled_bytes_ -= block.bytes;
  }
  return !large_gone_.empty();
}

}  // namespace tocsin::journal
