#include "storage/journal/chunk_memory.h"

#include <cstdint>

#include <sys/mman.h>

#include "base/check.h"

namespace tocsin::journal {

void UnmapChunk::operator()(char* memory) const noexcept { munmap(memory, bytes); }

Chunk MapChunk(size_t bytes, PageSize page_size) {
  TOCSIN_CHECK(bytes > 0 && bytes % kChunkBytes == 0);
  // The system aligns to 4 KiB only: map one chunk more and unmap the rest at both ends.
  const size_t mapped = bytes + kChunkBytes;
  void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return {};
  char* const begin = static_cast<char*>(raw);
  const size_t head = (kChunkBytes - reinterpret_cast<uintptr_t>(begin) % kChunkBytes) % kChunkBytes;
  if (head > 0) munmap(begin, head);
  munmap(begin + head + bytes, mapped - head - bytes);
  // Only advice: without huge pages everything works, more slowly.
  madvise(begin + head, bytes, page_size == PageSize::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return Chunk(begin + head, UnmapChunk{bytes});
}

void Prefault(char* memory, size_t bytes) {
  constexpr size_t kPage = 4096;
#ifdef MADV_POPULATE_WRITE
  char* const first = memory - reinterpret_cast<uintptr_t>(memory) % kPage;
  if (madvise(first, static_cast<size_t>(memory - first) + bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  // Kernels before 5.14: write a byte of every page back to itself.
  for (size_t at = 0; at < bytes; at += kPage) {
    volatile char& byte = memory[at];
    byte = byte;
  }
}

}  // namespace tocsin::journal
