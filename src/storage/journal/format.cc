#include "storage/journal/format.h"

#include <cstddef>
#include <cstring>

#include "base/codec.h"
#include "base/hash.h"

namespace tocsin::journal {

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  std::string block;
  block.reserve(kBlock);
  PutFixed<uint32_t>(block, 0);
  PutFixed<uint32_t>(block, kVersion);
  PutFixed<uint64_t>(block, kMagic);
  PutFixed<uint64_t>(block, header.segment_bytes);
  PutFixed<uint64_t>(block, header.number);
  block.resize(kBlock, '\0');
  const uint32_t crc = Crc32c(std::string_view(block).substr(4));
  std::memcpy(block.data(), &crc, sizeof(crc));
  return block;
}

Result<SegmentHeader> DecodeSegmentHeader(std::string_view block) {
  if (block.size() < kBlock) return Fail(Code::kCorrupt, "the segment header is cut off");
  Reader reader(block);
  const auto crc = reader.Fixed<uint32_t>();
  const auto version = reader.Fixed<uint32_t>();
  const auto magic = reader.Fixed<uint64_t>();
  if (crc != Crc32c(block.substr(4, kBlock - 4)) || magic != kMagic) {
    return Fail(Code::kCorrupt, "this is not a segment header");
  }
  if (version != kVersion) {
    return Fail(Code::kUnsupportedFormat, "the segment has format version {}; this program reads version {}", version,
                kVersion);
  }
  SegmentHeader header;
  header.segment_bytes = reader.Fixed<uint64_t>();
  header.number = reader.Fixed<uint64_t>();
  if (header.segment_bytes % kBlock != 0 || header.segment_bytes < 2 * kBlock ||
      header.segment_bytes > kSegmentBytesMax || header.number == 0 || header.number > UINT32_MAX) {
    return Fail(Code::kCorrupt, "the segment header holds what no program wrote");
  }
  return header;
}

void EncodeSeal(std::string& out, const Seal& seal) {
  PutVarint(out, seal.first_needed);
  PutFixed<uint64_t>(out, seal.mark.boot);
  PutFixed<int64_t>(out, seal.mark.at_boot.count());
}

std::optional<Seal> DecodeSeal(std::string_view body) {
  constexpr int64_t kAtBootMax = int64_t{1} << 62;  // can be added to without overflow
  Reader reader(body);
  Seal seal{reader.Varint(), {}};
  if (reader.ok() && !reader.done()) {
    seal.mark.boot = reader.Fixed<uint64_t>();
    seal.mark.at_boot = std::chrono::microseconds(reader.Fixed<int64_t>());
    if (seal.mark.at_boot.count() < -kAtBootMax || seal.mark.at_boot.count() > kAtBootMax) return std::nullopt;
  }
  return reader.ok() ? std::optional(seal) : std::nullopt;
}

size_t BeginRecord(std::string& out, RecordType type, uint16_t lane, uint32_t generation, Moment now) {
  const size_t begin = out.size();
  RecordHeader header{};
  header.utc_ms = ToMs(now.utc);
  header.steady_ms = ToMs(now.steady);
  header.generation = generation;
  header.lane = lane;
  header.type = type;
  out.append(reinterpret_cast<const char*>(&header), sizeof(header));
  return begin;
}

void EndRecord(std::string& out, size_t begin) {
  const auto size = static_cast<uint32_t>(out.size() - begin);
  std::memcpy(out.data() + begin + offsetof(RecordHeader, size), &size, sizeof(size));
}

void PlaceRecord(char* record, Lsn lsn, Lsn synced) {
  std::memcpy(record + offsetof(RecordHeader, lsn), &lsn, sizeof(lsn));
  std::memcpy(record + offsetof(RecordHeader, synced), &synced, sizeof(synced));
  const uint32_t crc = Crc32c({record + sizeof(uint32_t), RecordSize(record) - sizeof(uint32_t)});
  std::memcpy(record, &crc, sizeof(crc));
}

uint32_t RecordSize(const char* record) {
  uint32_t size = 0;
  std::memcpy(&size, record + offsetof(RecordHeader, size), sizeof(size));
  return size;
}

std::optional<RecordHeader> CheckRecord(std::string_view bytes, Lsn lsn) {
  if (bytes.size() < sizeof(RecordHeader)) return std::nullopt;
  RecordHeader header{};
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.lsn != lsn || header.size < sizeof(RecordHeader) || header.size > bytes.size()) return std::nullopt;
  if (header.crc != Crc32c(bytes.substr(sizeof(uint32_t), header.size - sizeof(uint32_t)))) return std::nullopt;
  // Times that can be added to without overflow: any that a clock shows.
  constexpr int64_t kLatestMs = int64_t{1} << 52;
  if (header.utc_ms < 0 || header.utc_ms > kLatestMs || header.steady_ms < 0 || header.steady_ms > kLatestMs) {
    return std::nullopt;
  }
  return header;
}

}  // namespace tocsin::journal
