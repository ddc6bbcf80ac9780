// EventSet: the events that a job has counted, as their hashes; a job may count 100,000. It is a table of words without
// nodes. A set that outgrows kSplitAt is split into kParts tables that grow one at a time, so that no insert moves many
// entries. To free a large set takes long too: FreeSome does it in steps. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace tocsin::journal {

class EventSet {
 public:
  static constexpr size_t kParts = 256;
  static constexpr size_t kSplitAt = 256;  // entries

  /// False if it was there.
  bool Insert(uint64_t event) {
    if (event == kFree) return !std::exchange(has_free_word_, true);
    const uint64_t hash = WordHash()(event);
    if (parts_.empty()) parts_.resize(1);
    if (parts_.size() == 1 && parts_[0].used >= kSplitAt) Split();
    return InsertInto(PartOf(hash), hash, event);
  }

  size_t size() const { return entries_ + (has_free_word_ ? 1 : 0); }
  bool empty() const { return size() == 0; }
  /// Whether to free it in steps.
  bool large() const { return parts_.size() > 1; }
  size_t held_bytes() const { return slots_ * sizeof(uint64_t) + parts_.capacity() * (sizeof(Part) + kBlockBytes); }

  template <class Visit>
  void ForEach(Visit&& visit) const {
    if (has_free_word_) visit(kFree);
    for (const Part& part : parts_) {
      for (const uint64_t event : part.slots) {
        if (event != kFree) visit(event);
      }
    }
  }

  /// Frees about `bytes` of the set, one table at least, and returns how many it freed. The set is good for nothing
  /// else from then on.
  size_t FreeSome(size_t bytes) {
    size_t freed = 0;
    while (freed < bytes && !parts_.empty()) {
      slots_ -= parts_.back().slots.size();
      freed += sizeof(Part) + parts_.back().slots.size() * sizeof(uint64_t);
      parts_.pop_back();
    }
    return freed;
  }
  /// Whether FreeSome has nothing left to do.
  bool freed() const { return parts_.empty(); }

 private:
  static constexpr uint64_t kFree = 0;
  static constexpr size_t kSlotsMin = 4;
  static constexpr size_t kBlockBytes = 2 * sizeof(void*);  // what the allocator adds to a table

  struct Part {
    std::vector<uint64_t> slots;  // a power of two of them, or none
    uint32_t used = 0;
  };

  Part& PartOf(uint64_t hash) { return parts_[parts_.size() == 1 ? 0 : hash >> 56]; }

  /// Where the event is, or the free slot where it belongs.
  static uint64_t& SlotOf(Part& part, uint64_t hash, uint64_t event) {
    const size_t mask = part.slots.size() - 1;
    size_t at = hash & mask;
    while (part.slots[at] != kFree && part.slots[at] != event) at = (at + 1) & mask;
    return part.slots[at];
  }

  bool InsertInto(Part& part, uint64_t hash, uint64_t event) {
    if (part.used * 4 >= part.slots.size() * 3) Grow(part);
    uint64_t& slot = SlotOf(part, hash, event);
    if (slot == event) return false;
    slot = event;
    ++part.used;
    ++entries_;
    return true;
  }

  void Grow(Part& part) {
    Part larger;
    larger.slots.resize(std::max(kSlotsMin, part.slots.size() * 2));
    larger.used = part.used;
    slots_ += larger.slots.size() - part.slots.size();
    for (const uint64_t event : part.slots) {
      if (event != kFree) SlotOf(larger, WordHash()(event), event) = event;
    }
    part = std::move(larger);
  }

  void Split() {
    const Part whole = std::exchange(parts_[0], {});
    parts_.resize(kParts);
    slots_ = 0;
    entries_ = 0;
    for (const uint64_t event : whole.slots) {
      if (event == kFree) continue;
      const uint64_t hash = WordHash()(event);
      InsertInto(PartOf(hash), hash, event);
    }
  }

  std::vector<Part> parts_;
  size_t entries_ = 0;          // in parts_
  size_t slots_ = 0;            // the same
  bool has_free_word_ = false;  // kFree itself is in the set
};

static_assert(EventSet::kParts == 256, "PartOf takes the upper byte");

}  // namespace tocsin::journal
