// Slab: objects of one type addressed by a 32-bit index, 0 being null. Addresses are stable; memory is never given
// back. One shard thread owns it.
//
// T itself knows whether it is free, so that a scan needs no bitmap and a free object costs only its own bytes:
//   void MarkFree(uint32_t next)   makes it free and stores the link of the free list, in any field
//   uint32_t NextFree() const      that link; asked of free objects only
//   bool IsFree() const            false for T{} and for every used object
//
// A chunk holds a power of two of objects in a multiple of 2 MiB, so that an index needs a shift and a mask, not a
// division.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "storage/journal/chunk_source.h"

namespace tocsin::journal {

template <class T>
concept SlabObject = std::is_trivially_destructible_v<T> && std::default_initializable<T> &&
                     requires(T object, const T& constant, uint32_t next) {
                       object.MarkFree(next);
                       { constant.NextFree() } -> std::same_as<uint32_t>;
                       { constant.IsFree() } -> std::same_as<bool>;
                     };

template <SlabObject T>
class Slab {
  static constexpr size_t kOddPart = sizeof(T) >> std::countr_zero(sizeof(T));
  static_assert(kOddPart <= 31, "pad T: a chunk is 2 MiB times the odd part of its size");
  static constexpr uint32_t kShift = std::countr_zero(kChunkBytes) - std::countr_zero(sizeof(T));
  static constexpr uint32_t kPerChunk = 1U << kShift;
  static constexpr size_t kBytes = sizeof(T) * kPerChunk;

 public:
  explicit Slab(ChunkSource& source) : source_(source) {}
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  /// A fresh T{}. 0 when the system has no more memory or every index is in use.
  [[nodiscard]] uint32_t Allocate() {
    uint32_t index = free_;
    if (index != 0) {
      free_ = (*this)[index].NextFree();
    } else {
      if (end_ >= capacity() && !Grow()) return 0;
      index = end_++;
    }
    std::construct_at(&(*this)[index]);
    ++live_;
    return index;
  }

  void Free(uint32_t index) {
    T& object = (*this)[index];
    TOCSIN_CHECK(index != 0 && index < end_ && !object.IsFree());
    object.MarkFree(free_);
    free_ = index;
    --live_;
  }

  T& operator[](uint32_t index) { return At(index); }
  const T& operator[](uint32_t index) const { return At(index); }

  /// Objects in use.
  size_t live() const { return live_; }
  /// One past the highest index ever given out: a scan looks at [1, end()) and skips what IsFree().
  uint32_t end() const { return end_; }
  size_t capacity_bytes() const { return chunks_.size() * kBytes; }

 private:
  size_t capacity() const { return chunks_.size() << kShift; }

  T& At(uint32_t index) const { return reinterpret_cast<T*>(chunks_[index >> kShift].get())[index & (kPerChunk - 1)]; }

  bool Grow() {
    if ((chunks_.size() + 1) << kShift >= uint64_t{1} << 32) return false;
    Chunk chunk = source_.Take(kBytes, PageSize::kHuge);
    if (!chunk) return false;
    chunks_.push_back(std::move(chunk));
    return true;
  }

  ChunkSource& source_;
  std::vector<Chunk> chunks_;
  uint32_t free_ = 0;  // head of the free list, last freed first because it is still in the cache
  uint32_t end_ = 1;
  size_t live_ = 0;
};

}  // namespace tocsin::journal
