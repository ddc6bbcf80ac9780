// IdTable: from a 64-bit hash to the 32-bit indices of objects with that hash; the caller tells apart objects whose
// hashes agree. One shard thread owns it.
//
// Extendible hashing: a directory of pages of 4096 slots, 8 bytes each. A page that fills up splits in two, alone, so
// that growth never stalls and memory never doubles at once. Of the hash, 32 bits are kept as the tag of a slot: its
// top bits choose the page, its low bits the home slot in it, so a split needs nothing from the caller.
//
// Invariants
//  1. A slot is empty exactly if its index is 0.
//  2. Between the home of an entry and its slot (linear probing, wrapping within the page) no slot is empty: deletion
//     shifts entries back instead of leaving tombstones.
//  3. No page holds more than kPageMax entries, so every probe ends.
//  4. The directory has at most 1024 places, or 16 for each page. If equal or similar tags would need more, the page
//     does not split any more and grows a chain of pages.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/journal/chunk_source.h"

namespace tocsin::journal {

class IdTable {
 public:
  explicit IdTable(ChunkSource& source) : source_(source) {}
  IdTable(const IdTable&) = delete;
  IdTable& operator=(const IdTable&) = delete;

  /// The first index with this hash (or, rarely, another hash with the same tag) for which pred(index); 0 for none.
  template <class Pred>
  uint32_t Find(uint64_t hash, Pred&& pred) const {
    if (directory_.empty()) return 0;
    const uint32_t tag = TagOf(hash);
    for (uint32_t id = PageFor(tag);;) {
      const Page& page = pages_[id];
      for (uint32_t at = HomeOf(tag);; at = Next(at)) {
        const Slot slot = page.slots[at];
        if (slot.index == 0) break;
        if (slot.tag == tag && pred(slot.index)) return slot.index;
      }
      if (page.overflow == 0) [[likely]]
        return 0;
      id = page.overflow;
    }
  }

  /// Does not look for an equal entry: Find first. False when the system has no more memory.
  [[nodiscard]] bool Insert(uint64_t hash, uint32_t index);

  /// False when there is no such entry.
  bool Erase(uint64_t hash, uint32_t index);

  size_t size() const { return size_; }
  size_t directory_size() const { return directory_.size(); }
  /// Of the pages in use.
  size_t held_bytes() const;

 private:
  struct Slot {
    uint32_t tag;
    uint32_t index;
  };
  struct Page {
    Slot* slots = nullptr;
    uint32_t count = 0;
    uint32_t overflow = 0;  // the next page of the chain, 0 for none
    uint8_t depth = 0;      // how many top bits of the tag all entries share; of the first page of a chain
  };

  static constexpr uint32_t kPageSlots = 4096;
  static constexpr uint32_t kPageMax = kPageSlots / 16 * 13;
  static constexpr size_t kPageBytes = kPageSlots * sizeof(Slot);
  static constexpr size_t kPagesPerChunk = kChunkBytes / kPageBytes;

  static uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash ^ hash >> 32); }
  static uint32_t HomeOf(uint32_t tag) { return tag & (kPageSlots - 1); }
  static uint32_t Next(uint32_t at) { return (at + 1) & (kPageSlots - 1); }

  uint32_t PageFor(uint32_t tag) const { return directory_[static_cast<uint64_t>(tag) >> (32 - depth_)]; }

  // False or 0 when the system has no more memory.
  bool AddPages();
  uint32_t NewPage();
  uint32_t MakeRoom(uint32_t tag);  // a page for `tag` that is not full
  bool MaySplit(const Page& page) const;
  bool Split(uint32_t tag);
  static void Put(Page& page, Slot slot);
  /// Gives all memory back.
  void Clear();
  static void EraseAt(Page& page, uint32_t hole);

  ChunkSource& source_;
  std::vector<uint32_t> directory_;  // 2^depth_ places, the page of each prefix of a tag
  uint32_t depth_ = 0;
  std::vector<Page> pages_ = {{}};  // [0] stands for none
  std::vector<uint32_t> spare_;     // empty pages that are not in use
  std::vector<Chunk> chunks_;
  size_t size_ = 0;
};

}  // namespace tocsin::journal
