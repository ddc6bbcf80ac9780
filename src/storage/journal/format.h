// The journal's format on disk, version 1.
//
// A data folder holds segment files of one fixed size, written in turn and recycled. A segment is a header block and
// then records, back to back, from offset kBlock on. A position in the journal is an Lsn: segment number * segment size
// + offset; segment numbers start at 1 and rise by one. Behind the last record there are zeros up to a block boundary,
// and then old bytes of the file. A record is valid only if its lsn is its own position, so old records never count.
//
//   segment header (kBlock bytes)   crc32c u32 · version u32 · magic u64 · segment bytes u64 · number u64 · zeros
//   record                          crc32c u32 (of all that follows) · size u32 (with this header) · lsn u64 ·
//                                   synced u64 · utc_ms i64 · steady_ms i64 · generation u32 · lane u16 · type u8 ·
//                                   0 u8 · body
//
// `synced`: everything below this Lsn was durable when the record was written. It tells damage from a torn tail. If a
// good record anywhere behind a bad one has a `synced` beyond it (a witness), the bad one was durable once, so it is
// damage. Without a witness it was never acknowledged, and is cut off. When the journal becomes idle, a seal record is
// the witness of the last records. `generation` rises with every start of a server. `lane` is the shard that wrote the
// record; topic numbers in its entries are that lane's.
//
// To change the format: give a new kind of record or entry a new type number if that is enough (readers refuse types
// that they do not know). Otherwise raise kVersion, keep a reader of version N - 1 beside the new one, add a folder
// written by version N - 1 to the tests, and describe the change here. A program refuses segments of versions that it
// does not know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/time.h"

namespace tocsin::journal {

using Lsn = uint64_t;

constexpr uint32_t kVersion = 1;
constexpr uint64_t kMagic = 0x4C4E524A4E435354;  // "TSCNJRNL"

enum class RecordType : uint8_t {
  kEntries = 1,  // changes of jobs and topics (entries.h)
  kSeal = 2,     // body: varint first segment still needed · boot u64 · at_boot_us i64 (a Seal)
  kClose = 3,    // the last record of its segment; the journal continues in the next
};

constexpr uint64_t kSegmentBytesMax = uint64_t{4} << 30;

constexpr uint16_t kNoLane = 0xFFFF;

struct RecordHeader {
  uint32_t crc;
  uint32_t size;
  uint64_t lsn;
  uint64_t synced;
  int64_t utc_ms;
  int64_t steady_ms;
  uint32_t generation;
  uint16_t lane;
  RecordType type;
  uint8_t zero;

  Moment moment() const { return {FromMs(utc_ms), FromMs(steady_ms)}; }
};
static_assert(sizeof(RecordHeader) == 48);

/// The target size of records with entries. Damage costs a whole record, so they are small.
constexpr size_t kRecordTarget = 16 << 10;
/// Room kept at the end of every segment for its close record.
constexpr size_t kCloseRoom = sizeof(RecordHeader);

struct SegmentHeader {
  uint64_t segment_bytes = 0;
  uint64_t number = 0;
};

/// The body of a seal record. Older programs wrote the first field alone, and ignore the others.
struct Seal {
  uint64_t first_needed = 0;
  BootMark mark;
};

void EncodeSeal(std::string& out, const Seal& seal);
/// Nothing if it is malformed.
std::optional<Seal> DecodeSeal(std::string_view body);

/// A whole header block.
std::string EncodeSegmentHeader(const SegmentHeader& header);
/// kUnsupportedFormat for another version, kCorrupt if it is not a header.
Result<SegmentHeader> DecodeSegmentHeader(std::string_view block);

/// Starts a record in `out`: a header without size, lsn, synced and crc. Returns where it begins.
size_t BeginRecord(std::string& out, RecordType type, uint16_t lane, uint32_t generation, Moment now);
/// Ends the record that begins at `begin`: fills in its size.
void EndRecord(std::string& out, size_t begin);
/// Fills in lsn, synced and crc of a finished record.
void PlaceRecord(char* record, Lsn lsn, Lsn synced);
/// The size of the record at `record`, which EndRecord has set.
uint32_t RecordSize(const char* record);

/// The header of the record at the start of `bytes`, if that is valid and its lsn is `lsn`.
std::optional<RecordHeader> CheckRecord(std::string_view bytes, Lsn lsn);

}  // namespace tocsin::journal
