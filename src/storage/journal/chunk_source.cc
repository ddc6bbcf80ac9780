#include "storage/journal/chunk_source.h"

#include <algorithm>

#include <pthread.h>
#include <sys/mman.h>

#include "base/result.h"

namespace tocsin::journal {
namespace {

/// Touches the memory now, so that its first use causes no page fault. Keeps its content.
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

}  // namespace

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

void ZeroChunk(const Chunk& chunk) {
  TOCSIN_CHECK(madvise(chunk.get(), chunk.get_deleter().bytes, MADV_DONTNEED) == 0);
}

ChunkSource::~ChunkSource() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

ChunkSource::Size& ChunkSource::Count(size_t bytes) {
  Size& size = sizes_[bytes];
  if (++size.taken > 1 && !thread_.joinable()) thread_ = std::thread([this] { Run(); });
  return size;
}

Chunk ChunkSource::Take(size_t bytes, PageSize page_size) {
  if (page_size == PageSize::kSmall) return MapChunk(bytes, page_size);
  Chunk chunk;
  bool serving = false;
  {
    const std::lock_guard lock(mutex_);
    Size& size = Count(bytes);
    if (!size.ready.empty()) {
      chunk = std::move(size.ready.back());
      size.ready.pop_back();
    }
    serving = serving_;
  }
  wake_.notify_one();
  if (chunk) return chunk;
  if (serving) return MapChunk(bytes, PageSize::kSmall);
  chunk = MapChunk(bytes, page_size);
  if (chunk) Prefault(chunk.get(), bytes);  // all of it: later touches are those of a store that serves
  return chunk;
}

void ChunkSource::Expect(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    Size& size = sizes_[bytes];
    size.taken = std::max<size_t>(size.taken, 1);
    Count(bytes);
  }
  wake_.notify_one();
}

void ChunkSource::Serve() {
  const std::lock_guard lock(mutex_);
  serving_ = true;
}

size_t ChunkSource::ready(size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = sizes_.find(bytes);
  return at == sizes_.end() ? 0 : at->second.ready.size();
}

size_t ChunkSource::Lacking() const {
  for (const auto& [bytes, size] : sizes_) {
    if (size.taken > 1 && size.ready.size() < std::max<size_t>(1, kAheadBytes / bytes)) return bytes;
  }
  return 0;
}

void ChunkSource::Run() {
  pthread_setname_np(pthread_self(), "tocsin-memory");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const size_t bytes = Lacking();
    if (bytes == 0) {
      wake_.wait(lock);
      continue;
    }
    lock.unlock();
    Chunk chunk = MapChunk(bytes, PageSize::kHuge);
    if (chunk) Prefault(chunk.get(), bytes);
    lock.lock();
    if (chunk) {
      sizes_[bytes].ready.push_back(std::move(chunk));
    } else if (!stopping_) {
      wake_.wait(lock);  // no memory: the next Take fails and says so
    }
  }
}

}  // namespace tocsin::journal
