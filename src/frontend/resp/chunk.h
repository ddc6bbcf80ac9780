// Chunk: bytes that were read from a connection; the arguments of commands are views of them. ChunkPool keeps a few
// chunks: an idle connection has none, and a busy one reads much in one call.
//
// Threads: a pool and its chunks belong to one loop; what Share returns may be dropped on any thread. A chunk that is
// shared is not written.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/service.h"

namespace tocsin::resp {

struct Chunk {
  explicit Chunk(size_t bytes);
  /// Without a copy: to copy megabytes would hold up others. False if that cannot be done, and nothing has changed: the
  /// chunk is shared, or of the size that the pool keeps.
  bool Grow(size_t bytes);

  struct Free {
    size_t mapped = 0;  // bytes; 0: on the heap
    void operator()(char* data) const;
  };
  std::unique_ptr<char[], Free> data;
  size_t capacity;
  std::atomic<size_t> shared = 0;
};

class ChunkPool {
 public:
  static constexpr size_t kBytes = 256 << 10;

  /// A chunk of kBytes that is not shared.
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
  /// Keeps the chunk and its bytes.
  static Bytes Share(const std::shared_ptr<Chunk>& chunk) {
    chunk->shared.fetch_add(1, std::memory_order_relaxed);
    return {chunk->data.get(), [chunk](const void*) { chunk->shared.fetch_sub(1, std::memory_order_release); }};
  }

 private:
  static constexpr size_t kKept = 4;

  std::vector<std::shared_ptr<Chunk>> kept_;
};

}  // namespace tocsin::resp
