#include "storage/journal/id_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/result.h"

namespace tocsin::journal {
namespace {

constexpr size_t kDirectoryFloor = 1024;
constexpr size_t kDirectoryPerPage = 16;

}  // namespace

size_t IdTable::held_bytes() const {
  const size_t pages = pages_.size() - 1 - spare_.size();
  return pages * kPageBytes + pages_.capacity() * sizeof(Page) + directory_.capacity() * sizeof(uint32_t);
}

bool IdTable::Insert(uint64_t hash, uint32_t index) {
  TOCSIN_CHECK(index != 0);
  if (directory_.empty()) {
    const uint32_t first = NewPage();
    if (first == 0) return false;
    directory_.push_back(first);
  }
  const uint32_t tag = TagOf(hash);
  uint32_t id = PageFor(tag);
  if (pages_[id].count == kPageMax) [[unlikely]]
    id = MakeRoom(tag);
  if (id == 0) return false;
  Put(pages_[id], {tag, index});
  ++size_;
  return true;
}

uint32_t IdTable::MakeRoom(uint32_t tag) {
  uint32_t id = PageFor(tag);
  while (pages_[id].count == kPageMax && pages_[id].overflow == 0 && MaySplit(pages_[id])) {
    if (!Split(tag)) return 0;
    id = PageFor(tag);
  }
  while (pages_[id].count == kPageMax) {
    if (pages_[id].overflow == 0) {
      const uint32_t last = NewPage();
      if (last == 0) return 0;
      pages_[id].overflow = last;
    }
    id = pages_[id].overflow;
  }
  return id;
}

bool IdTable::MaySplit(const Page& page) const {
  return page.depth < depth_ ||
         directory_.size() * 2 <= std::max(kDirectoryFloor, kDirectoryPerPage * (pages_.size() - spare_.size()));
}

bool IdTable::Split(uint32_t tag) {
  const uint32_t upper_id = NewPage();
  if (upper_id == 0) return false;
  const uint32_t lower_id = PageFor(tag);
  Page& lower = pages_[lower_id];
  Page& upper = pages_[upper_id];
  if (lower.depth == depth_) {
    std::vector<uint32_t> wider(directory_.size() * 2);
    for (size_t place = 0; place < wider.size(); ++place) wider[place] = directory_[place / 2];
    directory_ = std::move(wider);
    ++depth_;
  }
  // The places of the page's prefix are neighbours; the upper half of them is that of the next bit.
  const size_t places = size_t{1} << (depth_ - lower.depth);
  const size_t first = (static_cast<uint64_t>(tag) >> (32 - lower.depth)) * places;
  std::fill_n(directory_.begin() + static_cast<ptrdiff_t>(first + places / 2), places / 2, upper_id);

  const uint32_t bit = 1U << (31 - lower.depth);
  upper.depth = ++lower.depth;
  std::array<Slot, kPageSlots> old;
  std::copy_n(lower.slots, kPageSlots, old.begin());
  std::fill_n(lower.slots, kPageSlots, Slot{});
  lower.count = 0;
  for (const Slot slot : old) {
    if (slot.index != 0) Put((slot.tag & bit) == 0 ? lower : upper, slot);
  }
  return true;
}

void IdTable::Put(Page& page, Slot slot) {
  uint32_t at = HomeOf(slot.tag);
  while (page.slots[at].index != 0) at = Next(at);
  page.slots[at] = slot;
  ++page.count;
}

bool IdTable::Erase(uint64_t hash, uint32_t index) {
  if (directory_.empty()) return false;
  const uint32_t tag = TagOf(hash);
  uint32_t before = 0;
  for (uint32_t id = PageFor(tag); id != 0; before = id, id = pages_[id].overflow) {
    Page& page = pages_[id];
    uint32_t at = HomeOf(tag);
    while (page.slots[at].index != 0 && (page.slots[at].tag != tag || page.slots[at].index != index)) at = Next(at);
    if (page.slots[at].index == 0) continue;
    EraseAt(page, at);
    if (--size_ == 0 && chunks_.size() > 1) {
      Clear();
      return true;
    }
    if (page.count == 0 && before != 0) {
      pages_[before].overflow = std::exchange(page.overflow, 0);
      spare_.push_back(id);
    }
    return true;
  }
  return false;
}

void IdTable::EraseAt(Page& page, uint32_t hole) {
  for (uint32_t at = Next(hole); page.slots[at].index != 0; at = Next(at)) {
    const Slot slot = page.slots[at];
    const uint32_t from_home = (at - HomeOf(slot.tag)) & (kPageSlots - 1);
    const uint32_t from_hole = (at - hole) & (kPageSlots - 1);
    if (from_home < from_hole) continue;
    page.slots[hole] = slot;
    hole = at;
  }
  page.slots[hole] = {};
  --page.count;
}

void IdTable::Clear() {
  directory_.clear();
  depth_ = 0;
  pages_.resize(1);
  spare_.clear();
  chunks_.clear();
}

bool IdTable::AddPages() {
  // Small pages first, as in a slab.
  Chunk chunk = source_.Take(kChunkBytes, chunks_.empty() ? PageSize::kSmall : PageSize::kHuge);
  if (!chunk) return false;
  for (size_t at = kChunkBytes; at > 0; at -= kPageBytes) {
    spare_.push_back(static_cast<uint32_t>(pages_.size()));
    pages_.push_back({.slots = reinterpret_cast<Slot*>(chunk.get() + at - kPageBytes)});
  }
  chunks_.push_back(std::move(chunk));
  return true;
}

uint32_t IdTable::NewPage() {
  if (spare_.empty() && !AddPages()) return 0;
  const uint32_t id = spare_.back();
  spare_.pop_back();
  if (spare_.size() == kPagesPerChunk / 2) source_.Expect(kChunkBytes);
  pages_[id].depth = 0;
  return id;
}

}  // namespace tocsin::journal
