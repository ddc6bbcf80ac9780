// Scan: reads a whole journal, at start and for the offline tools. It finds the segments and checks every record. It
// tells a torn tail, which was never acknowledged and is cut off, from damage, which is always reported with file and
// offset.
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
  ClockPast past;              // of the clock, before the end
  uint64_t segment_bytes = 0;  // 0: the folder holds no journal
  std::deque<SegmentFile> used;
  std::deque<std::string> free;   // files of full size that can be used again
  std::deque<std::string> unfit;  // files that were not completely made
  uint64_t records = 0;
  uint64_t bytes = 0;            // of records
  uint64_t torn_tail_bytes = 0;  // of records in the torn tail
  std::vector<Damage> damage;
};

/// False if the record's body is malformed.
using OnRecord = std::function<bool(const RecordHeader&, std::string_view body, uint64_t segment)>;

/// How to read a damaged journal.
struct Salvage {
  uint64_t from = 1;                                       // the first segment needed
  std::function<void(std::string_view bytes)> on_damaged;  // what is in the place of damaged records
};

/// Hands every valid record to `on_record`, in order. It reports damage and continues behind it. It fails only if the
/// folder cannot be read or has an unknown format version. Segments before a missing one are left out, because usually
/// they were freed, and so are files without a valid header. If they turn out to be needed, that is damage; a second
/// scan with `salvage` reads them too.
Result<Scanned> Scan(FileSystem& fs, const std::string& folder, const OnRecord& on_record,
                     const Salvage* salvage = nullptr);

/// kCorrupt, naming the first damage and what to do about it.
Status RefuseDamage(const Scanned& scanned);

}  // namespace tocsin::journal
