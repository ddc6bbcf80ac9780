// BitSet: which buckets hold something, with a summary bit per word, so that the next set bit of a range is found in a
// few instructions however empty the set is. One shard thread owns it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tocsin::journal {

template <size_t kBits>
class BitSet {
  static_assert(kBits % 64 == 0);

 public:
  static constexpr size_t kNone = SIZE_MAX;

  bool Test(size_t bit) const { return (words_[bit >> 6] >> (bit & 63) & 1) != 0; }

  void Set(size_t bit) {
    words_[bit >> 6] |= uint64_t{1} << (bit & 63);
    summary_[bit >> 12] |= uint64_t{1} << (bit >> 6 & 63);
  }

  void Clear(size_t bit) {
    if ((words_[bit >> 6] &= ~(uint64_t{1} << (bit & 63))) == 0) {
      summary_[bit >> 12] &= ~(uint64_t{1} << (bit >> 6 & 63));
    }
  }

  /// The first set bit of [begin, end), or kNone.
  size_t FindIn(size_t begin, size_t end) const {
    if (begin >= end) return kNone;
    size_t word = begin >> 6;
    uint64_t bits = words_[word] & ~uint64_t{0} << (begin & 63);
    if (bits == 0) {
      word = NextWord(word + 1);
      if (word == kNone) return kNone;
      bits = words_[word];
    }
    const size_t found = word * 64 + static_cast<size_t>(std::countr_zero(bits));
    return found < end ? found : kNone;
  }

 private:
  static constexpr size_t kWords = kBits / 64;

  size_t NextWord(size_t from) const {
    if (from >= kWords) return kNone;
    uint64_t bits = summary_[from >> 6] & ~uint64_t{0} << (from & 63);
    for (size_t group = from >> 6;;) {
      if (bits != 0) return group * 64 + static_cast<size_t>(std::countr_zero(bits));
      if (++group == summary_.size()) return kNone;
      bits = summary_[group];
    }
  }

  std::array<uint64_t, kWords> words_{};
  std::array<uint64_t, (kWords + 63) / 64> summary_{};  // bit w: words_[w] is not zero
};

}  // namespace tocsin::journal
