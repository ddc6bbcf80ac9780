// BlobArena: byte blocks addressed by a 32-bit handle, 0 being null. Blocks have no header: the caller keeps the size
// and gives it back to Free. Blocks are aligned to 8 bytes. One shard thread owns it.
//
// Size classes go in steps of 8 bytes up to 512, then in eighths of a power of two (12 % at most) up to 256 KiB. A
// chunk of 2 MiB serves one class at a time and goes back to a pool for all classes when its last block is freed. A
// handle is the chunk and the block's number in it, so that classes need not be multiples of a larger unit; 2^15 chunks
// are 64 GiB. Larger blocks are mapped one by one; their handles, below kLargeEnd, are indices of a table. The system
// takes 100 us to unmap a MiB, and one call may free thousands of them: ReleaseLarge() does it, in steps.
//
// Whoever frees most blocks of a class and then fills another one leaves chunks that are nearly empty. Evacuate() picks
// these; the owner then moves each block for which Leaving() holds: it allocates another, copies, and frees the old.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/journal/chunk_source.h"

namespace tocsin::journal {

class BlobArena {
 public:
  using Handle = uint32_t;

  explicit BlobArena(ChunkSource& source) : source_(source), chunks_(kChunkFirst) {}
  ~BlobArena();
  BlobArena(const BlobArena&) = delete;
  BlobArena& operator=(const BlobArena&) = delete;

  /// `size` bytes, not initialised. 0 when the system has no more memory or all handles are in use.
  [[nodiscard]] Handle Allocate(size_t size);

  /// `size` is what Allocate was asked for.
  void Free(Handle handle, size_t size);

  char* At(Handle handle) const {
    if (handle < kLargeEnd) [[unlikely]]
      return large_[handle].memory;
    const BlockChunk& chunk = chunks_[handle >> kBlockBits];
    return chunk.memory.get() + size_t{handle & (kBlocksMax - 1)} * chunk.block_bytes;
  }

  /// The bytes that a block for `size` bytes takes.
  static size_t BlockBytes(size_t size);

  /// Bytes that callers asked for and have not freed.
  size_t used_bytes() const { return used_bytes_; }
  /// Bytes of the system's memory: all chunks, also those in the pool, and large blocks.
  size_t held_bytes() const { return held_bytes_; }

  /// Of them, in the pool or freed and still mapped.
  size_t pooled_bytes() const { return pooled_bytes_; }
  /// Chunks that are in the pool.
  size_t pooled() const { return pools_[0].size() + pools_[1].size(); }
  /// Gives the memory of that many chunks of the pool back to the system.
  void Release(size_t chunks);
  /// Unmaps large blocks that were freed, until that many bytes are gone. True if some are left.
  bool ReleaseLarge(size_t bytes);

  /// Picks the chunks whose blocks are to move: those that are less than half full. False if there are none.
  bool Evacuate();
  bool Leaving(Handle handle) const { return handle >= kLargeEnd && chunks_[handle >> kBlockBits].leaving; }
  /// Chunks that were picked and still have blocks serve again.
  void StopEvacuating();

 private:
  static constexpr size_t kStepEnd = 512;  // up to here in steps of 8
  static constexpr size_t kSmallMax = size_t{256} << 10;
  static constexpr size_t kClasses = 64 + 9 * 8;
  static constexpr size_t kMoveMax = size_t{32} << 20;    // bytes: they need memory twice until all have moved
  static constexpr size_t kSparseMin = size_t{64} << 10;  // a chunk that holds less is not worth moving
  static constexpr uint32_t kBlockBits = 17;              // 2 MiB / 16 bytes, the smallest class
  static constexpr uint32_t kBlocksMax = 1U << kBlockBits;
  static constexpr uint32_t kChunksMax = 1U << (32 - kBlockBits);
  static constexpr uint32_t kChunkFirst = 8;  // the handles of the first eight chunks belong to large blocks
  static constexpr Handle kLargeEnd = kChunkFirst << kBlockBits;

  struct BlockChunk {
    Chunk memory;
    uint32_t block_bytes = 0;
    uint32_t blocks = 0;  // how many fit
    uint32_t live = 0;
    uint32_t fresh = 0;  // blocks from here on were never given out
    uint32_t free = 0;   // head of the free list, which is inside the free blocks: number + 1, 0 for none
    uint32_t prev = 0;   // neighbours in the list of chunks with room, of the same class
    uint32_t next = 0;
    uint32_t touched = 0;  // bytes in memory; with huge pages all
    PageSize page_size = PageSize::kHuge;
    bool leaving = false;  // its blocks are to move: it is in no list
  };

  struct LargeBlock {
    char* memory = nullptr;
    size_t bytes = 0;
    uint32_t next_free = 0;
  };

  std::vector<uint32_t>& PoolOf(PageSize page_size) { return pools_[page_size == PageSize::kHuge ? 0 : 1]; }
  void PutIntoPool(uint32_t id);
  uint32_t TakeFromPool(std::vector<uint32_t>& pool);
  void Touch(BlockChunk& chunk, size_t bytes);

  static size_t ClassOf(size_t size);
  static size_t ClassBytes(size_t size_class);

  /// False when the system has no more memory or all chunk numbers are in use.
  bool MapIntoPool(PageSize page_size);
  uint32_t OpenChunk(size_t size_class);
  void AddRoom(uint32_t id, size_t size_class);
  void DropRoom(uint32_t id, size_t size_class);
  Handle AllocateLarge(size_t size);
  void FreeLarge(Handle handle, size_t size);

  ChunkSource& source_;
  std::vector<BlockChunk> chunks_;
  std::array<std::vector<uint32_t>, 2> pools_;  // chunks with no live block, of no class; by PoolOf
  std::vector<uint32_t> vacant_;                // numbers of chunks whose memory was given back
  std::array<uint32_t, kClasses> room_{};       // per class: head of the list of chunks with room
  std::array<uint32_t, kClasses> open_{};       // per class: how many chunks serve it, without those that are leaving
  std::vector<LargeBlock> large_ = {{}};        // [0] is the null handle
  uint32_t large_free_ = 0;
  std::vector<LargeBlock> large_gone_;  // freed and still mapped
  size_t used_bytes_ = 0;
  size_t held_bytes_ = 0;
  size_t pooled_bytes_ = 0;
};

}  // namespace tocsin::journal
