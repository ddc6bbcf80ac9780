#include "storage/journal/bit_set.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

TEST(BitSetTest, FindsTheFirstBitOfAnyRange) {
  constexpr size_t kBits = 6080;
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  BitSet<kBits> bits;
  std::set<size_t> model;
  for (int step = 0; step < 50'000; ++step) {
    const size_t bit = random() % kBits;
    if (model.size() > random() % 40) {
      const size_t gone = *std::next(model.begin(), static_cast<ptrdiff_t>(random() % model.size()));
      bits.Clear(gone);
      model.erase(gone);
    } else {
      bits.Set(bit);
      model.insert(bit);
    }
    ASSERT_EQ(bits.Test(bit), model.contains(bit));
    const size_t begin = random() % (kBits + 1);
    const size_t end = begin + random() % (kBits + 1 - begin);
    const auto found = model.lower_bound(begin);
    const size_t expected = found == model.end() || *found >= end ? bits.kNone : *found;
    ASSERT_EQ(bits.FindIn(begin, end), expected) << begin << " to " << end;
  }
}

}  // namespace
}  // namespace tocsin::journal
