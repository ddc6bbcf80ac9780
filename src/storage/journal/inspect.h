// The offline tools: `tocsin journal verify` and `tocsin journal repair`. Both take the folder's lock, so no server can
// run on it.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "storage/journal/scan.h"

namespace tocsin::journal {

struct Report {
  uint64_t segments = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;  // of records
  uint64_t jobs_live = 0;
  uint64_t jobs_dead = 0;
  uint64_t jobs_lost = 0;  // of damaged records, as far as they can still be told; not those of missing files
  uint64_t torn_tail_bytes = 0;
  std::vector<Damage> damage;
};

/// Reads everything and changes nothing.
Result<Report> Verify(FileSystem& fs, const std::string& folder);

/// Writes the jobs that can be read from `folder` into `output`, a new folder. The report lists the damage.
Result<Report> Repair(FileSystem& fs, const std::string& folder, const std::string& output);

}  // namespace tocsin::journal
