// Memory in chunks of 2 MiB, aligned to 2 MiB and in huge pages if the system has them. The slab, the blob arena and
// the id table use it. The first touch of a 4 KiB page costs 5-15 us on a virtual machine; a huge page costs it once
// for 512 of them, and saves most TLB misses afterwards.
#pragma once

#include <cstddef>
#include <memory>

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

/// Touches the memory now, so that its first use causes no page fault. Keeps its content.
void Prefault(char* memory, size_t bytes);

}  // namespace tocsin::journal
