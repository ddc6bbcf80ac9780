// Slab: objects of one type addressed by a 32-bit index, 0 being null. Addresses are stable. One shard thread owns it.
//
// T itself knows whether it is free, so that a scan needs no bitmap and a free object costs only its own bytes:
//   void MarkFree(uint32_t next)   makes it free and stores the link of the free list, in any field
//   uint32_t NextFree() const      that link; asked of free objects only
//   bool IsFree() const            false for T{} and for every used object, true if all its bytes are zero
//
// A chunk whose objects are all free gives its memory back to the system, and reads as zeros from then on, unless it is
// the only one with room: a few objects that come and go would cost a system call each. When it is needed again it gets
// other memory, which is touched already.
//
// The first chunk has small pages, so that a small store takes little memory. When half of it is used, the next one is
// made ready.
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
    if (room_.empty() && !Grow()) return 0;
    const uint32_t id = room_.back();
    Part& part = parts_[id];
    uint32_t index = part.free;
    if (index != 0) {
      part.free = At(index).NextFree();
    } else {
      index = (id << kShift) + part.fresh++;
      if (part.fresh == kPerChunk / 2) [[unlikely]]
        source_.Expect(kBytes);
      held_bytes_ += sizeof(T);
      end_ = std::max(end_, index + 1);
    }
    if (++part.live == Places(id)) room_.pop_back();
    std::construct_at(&At(index));
    ++live_;
    return index;
  }

  void Free(uint32_t index) {
    TOCSIN_CHECK(index != 0 && index < end_ && !At(index).IsFree());
    const uint32_t id = index >> kShift;
    Part& part = parts_[id];
    At(index).MarkFree(part.free);
    part.free = index;
    if (part.live == Places(id)) room_.push_back(id);
    --live_;
    if (--part.live == 0) GiveBack(id);
  }

  T& operator[](uint32_t index) { return At(index); }
  const T& operator[](uint32_t index) const { return At(index); }

  /// Objects in use.
  size_t live() const { return live_; }
  /// One past the highest index ever given out: a scan looks at [1, end()) and skips what IsFree().
  uint32_t end() const { return end_; }
  /// Of the objects that were used since their chunk was empty.
  size_t held_bytes() const { return held_bytes_; }

 private:
  struct Part {
    Chunk memory;
    uint32_t live = 0;
    uint32_t fresh = 0;  // objects from here on have not been given out since the chunk was empty
    uint32_t free = 0;   // head of the free list, last freed first because it is still in the cache
  };

  /// Index 0 is never given out.
  static uint32_t First(uint32_t id) { return id == 0 ? 1 : 0; }
  static uint32_t Places(uint32_t id) { return kPerChunk - First(id); }

  T& At(uint32_t index) const {
    return reinterpret_cast<T*>(parts_[index >> kShift].memory.get())[index & (kPerChunk - 1)];
  }

  bool Grow() {
    if (!vacant_.empty()) {
      const uint32_t id = vacant_.back();
      vacant_.pop_back();
      if (Chunk chunk = source_.Take(kBytes, PageSize::kHuge); chunk) parts_[id].memory = std::move(chunk);
      room_.push_back(id);
      return true;
    }
    if ((parts_.size() + 1) << kShift >= uint64_t{1} << 32) return false;
    Chunk chunk = source_.Take(kBytes, parts_.empty() ? PageSize::kSmall : PageSize::kHuge);
    if (!chunk) return false;
    const auto id = static_cast<uint32_t>(parts_.size());
    room_.push_back(id);
    parts_.push_back({.memory = std::move(chunk), .fresh = First(id)});
    return true;
  }

  /// Keeps the memory if no other chunk that has some has room.
  void GiveBack(uint32_t id) {
    const bool other = std::ranges::any_of(room_, [&](uint32_t each) { return each != id && parts_[each].live > 0; });
    if (!other) return;
    Part& part = parts_[id];
    ZeroChunk(part.memory);
    held_bytes_ -= (part.fresh - First(id)) * sizeof(T);
    part.fresh = First(id);
    part.free = 0;
    // The next objects go to a chunk that has memory.
    std::erase(room_, id);
    vacant_.push_back(id);
  }

  ChunkSource& source_;
  std::vector<Part> parts_;
  std::vector<uint32_t> room_;    // the parts that have memory and are not full; the last one serves
  std::vector<uint32_t> vacant_;  // the parts that gave their memory back
  uint32_t end_ = 1;
  size_t live_ = 0;
  size_t held_bytes_ = 0;
};

}  // namespace tocsin::journal
