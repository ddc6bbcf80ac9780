#include "storage/journal/format.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace tocsin::journal {
namespace {

constexpr Lsn kLsn = 70'000;

std::string Record(std::string_view body, Lsn lsn = kLsn) {
  std::string record;
  const size_t begin = BeginRecord(record, RecordType::kEntries, 3, 7, {FromMs(1'000), FromMs(2'000)});
  record += body;
  EndRecord(record, begin);
  PlaceRecord(record.data(), lsn, lsn - 100);
  return record;
}

TEST(Format, RecordsComeBack) {
  const std::string record = Record("body");
  const auto header = CheckRecord(record + "what follows", kLsn);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->size, sizeof(RecordHeader) + 4);
  EXPECT_EQ(header->lane, 3);
  EXPECT_EQ(header->generation, 7U);
  EXPECT_EQ(header->synced, kLsn - 100);
  EXPECT_EQ(header->moment(), (Moment{FromMs(1'000), FromMs(2'000)}));
}

TEST(Format, ARecordCountsOnlyWhereItStands) { EXPECT_FALSE(CheckRecord(Record("body"), kLsn + 1)); }

TEST(Format, EveryFlippedBitIsNoticed) {
  const std::string sound = Record("a body of some length");
  for (size_t bit = 0; bit < sound.size() * 8; ++bit) {
    std::string record = sound;
    record[bit / 8] = static_cast<char>(record[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(CheckRecord(record, kLsn)) << bit;
  }
}

TEST(Format, ACutOffRecordIsNone) {
  const std::string record = Record("body");
  for (size_t size = 0; size < record.size(); ++size) EXPECT_FALSE(CheckRecord(record.substr(0, size), kLsn)) << size;
}

TEST(Format, SealsComeBack) {
  std::string body;
  EncodeSeal(body, {300, {0xFEDCBA9876543210, std::chrono::microseconds(-5)}});
  const auto seal = DecodeSeal(body);
  ASSERT_TRUE(seal);
  EXPECT_EQ(seal->first_needed, 300U);
  EXPECT_EQ(seal->mark.boot, 0xFEDCBA9876543210);
  EXPECT_EQ(seal->mark.at_boot, std::chrono::microseconds(-5));
  for (size_t size = 3; size < body.size(); ++size) EXPECT_FALSE(DecodeSeal(body.substr(0, size))) << size;
  EXPECT_FALSE(DecodeSeal(""));
}

TEST(Format, SealsOfOlderProgramsKnowNoBoot) {
  const auto seal = DecodeSeal("\5");
  ASSERT_TRUE(seal);
  EXPECT_EQ(seal->first_needed, 5U);
  EXPECT_EQ(seal->mark.boot, 0U);
}

TEST(Format, HeadersComeBack) {
  const std::string block = EncodeSegmentHeader({64 << 10, 12});
  ASSERT_EQ(block.size(), kBlock);
  const auto header = DecodeSegmentHeader(block);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->segment_bytes, 64U << 10);
  EXPECT_EQ(header->number, 12U);
}

TEST(Format, HeadersOfAnotherVersionAreRefusedByName) {
  std::string block = EncodeSegmentHeader({64 << 10, 12});
  block[4] = 9;
  const uint32_t crc = Crc32c(std::string_view(block).substr(4));
  std::memcpy(block.data(), &crc, sizeof(crc));
  EXPECT_EQ(DecodeSegmentHeader(block).error().code, Code::kUnsupportedFormat);
}

TEST(Format, HeadersThatNoProgramWroteAreCorrupt) {
  for (const SegmentHeader& header :
       {SegmentHeader{0, 1}, SegmentHeader{100, 1}, SegmentHeader{64 << 10, 0}, SegmentHeader{uint64_t{1} << 60, 1}}) {
    EXPECT_EQ(DecodeSegmentHeader(EncodeSegmentHeader(header)).error().code, Code::kCorrupt);
  }
}

}  // namespace
}  // namespace tocsin::journal
