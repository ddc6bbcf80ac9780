// Reading a whole journal: at start, and for the offline tools. Finds the segments, checks every record, tells a torn
// tail (cut off: it was never acknowledged) from damage (reported with file and offset, and never passed over in
// silence).
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "storage/journal/format.h"
#include "storage/journal/journal.h"
#include "storage/journal/segments.h"

namespace tocsin::journal {

struct Damage {
  std::string file;
  uint64_t offset = 0;
  std::string what;
};

struct Scanned {
  JournalEnd end;
  Moment last;                 // no record is later
  uint64_t segment_bytes = 0;  // 0: the folder holds no journal
  std::deque<SegmentFile> used;
  std::deque<std::string> free;   // files of full size that can be used again
  std::deque<std::string> unfit;  // files whose making was interrupted
  uint64_t records = 0;
  uint64_t bytes = 0;            // of records
  uint64_t torn_tail_bytes = 0;  // in records that were begun and not finished
  std::vector<Damage> damage;
};

/// False where the record's body is malformed.
using OnRecord = std::function<bool(const RecordHeader&, std::string_view body, uint64_t segment)>;

/// Hands every valid record to `on_record`, in order. Damage does not stop it: it goes on behind it and reports it. An
/// error only where the folder cannot be read or has an unknown format version. Segments before a missing one are left
/// out: mostly they were freed. Where they turn out to be needed, that is damage; reading again with `from` = the first
/// one needed takes them in.
Result<Scanned> Scan(FileSystem& fs, const std::string& folder, const OnRecord& on_record,
                     std::optional<uint64_t> from = std::nullopt);

/// kCorrupt, naming the first damage and what to do about it.
Status RefuseDamage(const Scanned& scanned);

}  // namespace tocsin::journal
