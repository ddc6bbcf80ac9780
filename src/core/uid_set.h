// UidSet: server ids that were met, in flat tables. An insert grows one small table at most, and freeing it takes a few
// calls: neither is a long turn, however many ids are in it.
#pragma once

#include <array>
#include <vector>

#include "base/hash.h"
#include "base/id.h"

namespace tocsin {

class UidSet {
 public:
  /// False if it was in it already. No id is 0.
  bool Insert(Uid uid) {
    const uint64_t hash = WordHash()(uid);
    Part& part = parts_[hash % kParts];
    if (4 * (part.used + 1) > 3 * part.cells.size()) Grow(part);
    Uid& cell = CellOf(part.cells, uid, hash / kParts);
    if (cell == uid) return false;
    cell = uid;
    ++part.used;
    ++size_;
    return true;
  }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kParts = 64;
  static constexpr size_t kCellsMin = 64;

  struct Part {
    std::vector<Uid> cells;  // a power of two, a quarter of them empty: 0
    size_t used = 0;
  };

  /// That of the id, or the empty one where it belongs.
  static Uid& CellOf(std::vector<Uid>& cells, Uid uid, uint64_t hash) {
    size_t at = hash & (cells.size() - 1);
    while (cells[at] != 0 && cells[at] != uid) at = (at + 1) & (cells.size() - 1);
    return cells[at];
  }
  static void Grow(Part& part) {
    std::vector<Uid> larger(part.cells.empty() ? kCellsMin : 2 * part.cells.size());
    for (const Uid uid : part.cells) {
      if (uid != 0) CellOf(larger, uid, WordHash()(uid) / kParts) = uid;
    }
    part.cells.swap(larger);
  }

  std::array<Part, kParts> parts_;
  size_t size_ = 0;
};

}  // namespace tocsin
