#include "base/hash.h"

#include <array>
#include <cstring>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tocsin {
namespace {

// A change of any value here is a change of the stored format.

TEST(Hash, CrcCheckValues) {
  EXPECT_EQ(Crc32("123456789"), 0xCBF43926U);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(Crc32(""), 0U);
  EXPECT_EQ(Crc32c(""), 0U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, appendix B.4
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
}

TEST(Hash, Crc32cContinuesFromItsSeed) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(Crc32c(text.substr(cut), Crc32c(text.substr(0, cut))), Crc32c(text));
  }
}

TEST(Hash, Hash64ValuesArePinned) {
  const std::string text = "0123456789abcdefghijklmnopqrstuvwxyzABCD";
  const std::array<std::pair<size_t, uint64_t>, 10> pinned{{
      {0, 0x4F329CADFAF7C73CULL},
      {1, 0x03E4C7C6527FFAC2ULL},
      {7, 0xC1D6262CA6C40105ULL},
      {8, 0x2820126B3143794FULL},
      {9, 0xCB2053750BF497D7ULL},
      {15, 0xA2822DA97EDEE828ULL},
      {16, 0xF808FB0AED36FCE2ULL},
      {17, 0xEBCA507F323CFBEBULL},
      {33, 0x8B9CE78A8560583EULL},
      {40, 0x70D5A36F5572E5B2ULL},
  }};
  for (const auto& [size, hash] : pinned) EXPECT_EQ(Hash64(text.substr(0, size)), hash) << size;
  EXPECT_EQ(Hash64(text, 1), 0xDC7E5D87543C178BULL) << "with a seed";
}

TEST(Hash, Hash64DependsOnEveryByteTheLengthAndTheSeed) {
  for (size_t size = 0; size <= 40; ++size) {
    const std::string zeros(size, '\0');
    EXPECT_NE(Hash64(zeros), Hash64(zeros + '\0'));
    EXPECT_NE(Hash64(zeros), Hash64(zeros, 1));
    for (size_t i = 0; i < size; ++i) {
      std::string other = zeros;
      other[i] = 1;
      EXPECT_NE(Hash64(zeros), Hash64(other)) << size << " " << i;
    }
  }
}

TEST(Hash, TextsThatCollideInHash64DoNotCollideInTables) {
  // If the second word of a block is this constant, Mix64 multiplies by zero: the first word and the seed are lost.
  const uint64_t zero = 0xD6E8FEB86659FD93ULL;
  std::set<uint64_t> pinned;
  std::set<uint64_t> keyed;
  for (uint64_t i = 0; i < 1'000; ++i) {
    std::string text(16, '\0');
    std::memcpy(text.data(), &i, 8);
    std::memcpy(text.data() + 8, &zero, 8);
    pinned.insert(Hash64(text, i));
    keyed.insert(TableHash(text));
    EXPECT_EQ(TableHash(text), TextHash()(text)) << "the key stays the same";
  }
  EXPECT_EQ(pinned.size(), 1U);
  EXPECT_EQ(keyed.size(), 1'000U);
}

TEST(Hash, TableHashDependsOnEveryByteTheLengthAndTheSeed) {
  for (size_t size = 0; size <= 40; ++size) {
    const std::string zeros(size, '\0');
    EXPECT_NE(TableHash(zeros), TableHash(zeros + '\0'));
    EXPECT_NE(TableHash(zeros), TableHash(zeros, 1));
    for (size_t i = 0; i < size; ++i) {
      std::string other = zeros;
      other[i] = 1;
      EXPECT_NE(TableHash(zeros), TableHash(other)) << size << " " << i;
    }
  }
}

}  // namespace
}  // namespace tocsin
