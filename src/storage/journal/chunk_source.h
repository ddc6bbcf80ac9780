// Memory in chunks of 2 MiB, aligned to 2 MiB and in huge pages if the system has them. The slab, the blob arena and
// the id table use it. The first touch of a 4 KiB page costs 5-15 us on a virtual machine; a huge page costs it once
// for 512 of them, and saves most TLB misses afterwards.
//
// ChunkSource: the supply of chunks for the structures of all shards. The kernel zeroes new memory at its first touch,
// which took a third of a shard's time while jobs poured in. So a thread on another core touches a few chunks in
// advance. To zero one huge page may take 8 ms on a busy virtual machine, and everything on a shard would wait for it.
// So while the store serves, a caller gets a huge page only if it was touched in advance, otherwise small ones.
//
// Thread-safe. It keeps at most kAheadBytes, or one chunk, of each size that has been taken more than once or is
// expected, so that a small store costs neither memory nor a thread.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tocsin::journal {

constexpr size_t kChunkBytes = size_t{2} << 20;

struct UnmapChunk {
  size_t bytes = 0;
  void operator()(char* memory) const noexcept;
};

/// Owns its mapping. Zeroed when new.
using Chunk = std::unique_ptr<char[], UnmapChunk>;

enum class PageSize { kHuge, kSmall };

/// `bytes` is a multiple of kChunkBytes. Null when the system refuses.
Chunk MapChunk(size_t bytes, PageSize page_size);

/// Gives the memory back to the system; the chunk reads as zeros and can be written again.
void ZeroChunk(const Chunk& chunk);

class ChunkSource {
 public:
  static constexpr size_t kAheadBytes = 4 * kChunkBytes;

  ChunkSource() = default;
  ~ChunkSource();

  /// Like MapChunk, and huge pages are already touched. If the thread was not fast enough, and the store serves, the
  /// pages are small.
  Chunk Take(size_t bytes, PageSize page_size);
  /// A chunk of this size in huge pages will be taken soon.
  void Expect(size_t bytes);
  /// From now on callers must not wait. Until then, in recovery, nobody waits for them.
  void Serve();
  /// Chunks of this size that wait to be taken, for tests.
  size_t ready(size_t bytes) const;

 private:
  struct Size {
    size_t taken = 0;  // or expected
    std::vector<Chunk> ready;
  };

  /// Counts a chunk of this size, with the mutex held.
  Size& Count(size_t bytes);
  void Run();
  /// A size that needs another chunk; 0 if none does.
  size_t Lacking() const;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<size_t, Size> sizes_;
  bool serving_ = false;
  bool stopping_ = false;
  std::thread thread_;  // started when a size is taken for the second time, or expected
};

}  // namespace tocsin::journal
