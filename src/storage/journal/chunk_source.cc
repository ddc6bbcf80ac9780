#include "storage/journal/chunk_source.h"

#include <algorithm>

#include <pthread.h>

namespace tocsin::journal {

ChunkSource::~ChunkSource() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Chunk ChunkSource::Take(size_t bytes, PageSize page_size) {
  if (page_size == PageSize::kSmall) return MapChunk(bytes, page_size);
  Chunk chunk;
  {
    const std::lock_guard lock(mutex_);
    Size& size = sizes_[bytes];
    if (++size.taken > 1 && !thread_.joinable()) thread_ = std::thread([this] { Run(); });
    if (!size.ready.empty()) {
      chunk = std::move(size.ready.back());
      size.ready.pop_back();
    }
  }
  wake_.notify_one();
  return chunk ? std::move(chunk) : MapChunk(bytes, page_size);
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
