#include "frontend/resp/chunk.h"

#include <new>

#include <sys/mman.h>

namespace tocsin::resp {
namespace {

/// The pages of a large chunk are mapped by themselves, because the system can move those without a copy.
char* NewBytes(size_t bytes) {
  if (bytes <= ChunkPool::kBytes) return new char[bytes];
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(pages);
}

}  // namespace

Chunk::Chunk(size_t bytes) : data(NewBytes(bytes), {bytes <= ChunkPool::kBytes ? 0 : bytes}), capacity(bytes) {}

bool Chunk::Grow(size_t bytes) {
  if (data.get_deleter().mapped == 0 || shared.load(std::memory_order_acquire) > 0) return false;
  void* const pages = ::mremap(data.get(), capacity, bytes, MREMAP_MAYMOVE);
  if (pages == MAP_FAILED) return false;
  data.release();
  data.get_deleter().mapped = bytes;
  data.reset(static_cast<char*>(pages));
  capacity = bytes;
  return true;
}

void Chunk::Free::operator()(char* bytes) const {
  if (mapped == 0) {
    delete[] bytes;
  } else {
    ::munmap(bytes, mapped);
  }
}

}  // namespace tocsin::resp
