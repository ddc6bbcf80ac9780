// Chunk: bytes as they came from a connection, which the arguments of commands are views of. ChunkPool keeps a few, so
// that an idle connection has none and a busy one reads much at once.
//
// Threads: a pool and its chunks belong to one loop; what Share gives out may be dropped on any thread. Nobody writes
// into a chunk that somebody shares.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/service.h"

namespace tocsin::resp {

struct Chunk {
  explicit Chunk(size_t bytes) : data(std::make_unique_for_overwrite<char[]>(bytes)), capacity(bytes) {}

  const std::unique_ptr<char[]> data;
  const size_t capacity;
  std::atomic<size_t> shared = 0;
};

class ChunkPool {
 public:
  static constexpr size_t kBytes = 256 << 10;

  /// One of kBytes that nobody shares.
  std::shared_ptr<Chunk> Take() {
    for (auto& kept : kept_) {
      if (kept->shared.load(std::memory_order_acquire) > 0) continue;
      auto chunk = std::move(kept);
      kept = std::move(kept_.back());
      kept_.pop_back();
      return chunk;
    }
    return std::make_shared<Chunk>(kBytes);
  }
  void GiveBack(std::shared_ptr<Chunk> chunk) {
    if (chunk->capacity == kBytes && kept_.size() < kKept) kept_.push_back(std::move(chunk));
  }
  /// Keeps the chunk and what is in it.
  static Bytes Share(const std::shared_ptr<Chunk>& chunk) {
    chunk->shared.fetch_add(1, std::memory_order_relaxed);
    return {chunk->data.get(), [chunk](const void*) { chunk->shared.fetch_sub(1, std::memory_order_release); }};
  }

 private:
  static constexpr size_t kKept = 4;

  std::vector<std::shared_ptr<Chunk>> kept_;
};

}  // namespace tocsin::resp
