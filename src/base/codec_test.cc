#include "base/codec.h"

#include <limits>

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(Codec, VarintsRoundTripAndHaveTheirShortestForm) {
  for (int bit = 0; bit <= 64; ++bit) {
    for (const int64_t near : {-1, 0, 1}) {
      const uint64_t value = (bit == 64 ? 0 : uint64_t{1} << bit) + static_cast<uint64_t>(near);
      std::string bytes;
      PutVarint(bytes, value);
      const size_t width = std::max<size_t>(1, std::bit_width(value));
      EXPECT_EQ(bytes.size(), (width + 6) / 7);
      Reader reader(bytes);
      EXPECT_EQ(reader.Varint(), value);
      EXPECT_TRUE(reader.ok());
      EXPECT_TRUE(reader.done());
    }
  }
}

TEST(Codec, ZigZagKeepsSmallMagnitudesSmall) {
  for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{1}, int64_t{-64}, int64_t{63},
                              std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(UnZigZag(ZigZag(value)), value);
  }
  EXPECT_EQ(ZigZag(-1), 1U);
  EXPECT_EQ(ZigZag(1), 2U);
  EXPECT_EQ(ZigZag(-64), 127U);
}

std::string Sample() {
  std::string bytes;
  PutFixed<uint16_t>(bytes, 0x1234);
  PutVarint(bytes, 300);
  PutBytes(bytes, "some bytes");
  PutFixed<int64_t>(bytes, -5);
  return bytes;
}

void ReadSample(Reader& reader, bool whole) {
  const auto fixed = reader.Fixed<uint16_t>();
  const auto varint = reader.Varint();
  const auto bytes = reader.Bytes();
  const auto last = reader.Fixed<int64_t>();
  EXPECT_EQ(reader.ok(), whole);
  EXPECT_EQ(last, whole ? -5 : 0);
  if (!whole) return;
  EXPECT_EQ(fixed, 0x1234);
  EXPECT_EQ(varint, 300U);
  EXPECT_EQ(bytes, "some bytes");
  EXPECT_TRUE(reader.done());
}

TEST(Codec, EveryTruncationIsNoticedAndReadsNothingPastTheEnd) {
  const std::string whole = Sample();
  EXPECT_EQ(whole.substr(0, 4), std::string("\x34\x12\xAC\x02", 4)) << "little-endian, low groups first";
  for (size_t size = 0; size <= whole.size(); ++size) {
    const std::string cut(whole, 0, size);  // its own allocation, so that a sanitizer sees a read past the end
    Reader reader(cut);
    ReadSample(reader, size == whole.size());
  }
}

TEST(Codec, AReaderStaysBroken) {
  Reader reader("ab");
  EXPECT_EQ(reader.Fixed<uint32_t>(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(reader.Fixed<uint8_t>(), 0U) << "not the bytes that the failed read left";
  EXPECT_EQ(reader.Take(0), "");
  EXPECT_FALSE(reader.ok());
}

TEST(Codec, OverlongVarintsAreRefused) {
  for (const std::string& bytes : {std::string(10, '\x80') + '\x01', std::string(11, '\xFF'), std::string(10, '\x80'),
                                   std::string(9, '\xFF') + '\x02'}) {
    Reader reader(bytes);
    EXPECT_EQ(reader.Varint(), 0U);
    EXPECT_FALSE(reader.ok()) << testing::PrintToString(bytes);
  }
}

TEST(Codec, ALengthLargerThanWhatFollowsIsRefused) {
  for (const uint64_t length : {uint64_t{4}, UINT64_MAX}) {
    std::string bytes;
    PutVarint(bytes, length);
    bytes += "abc";
    Reader reader(bytes);
    EXPECT_EQ(reader.Bytes(), "");
    EXPECT_FALSE(reader.ok());
  }
}

}  // namespace
}  // namespace tocsin
