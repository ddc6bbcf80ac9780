// The segment files of one data folder: which there are, which number each has, and where the next one comes from. A
// file is prewritten once, so that later writes change no metadata and cost one device flush, and is then used again
// and again.
//
// Invariant: files are taken out of use from the oldest on, and only below a first needed segment that a seal has made
// durable. So the segments from there to the last have no gap, and replaying older ones as well, as far as there is no
// gap, gives the same state.
//
// Thread-safe. Preparing a file takes long (it writes all of it) and happens outside the lock, on the maker's thread.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "base/file.h"
#include "storage/journal/format.h"

namespace tocsin::journal {

/// Makes the folder, where there is none, for good.
Status MakeFolder(FileSystem& fs, const std::string& folder);

struct SegmentFile {
  std::string name;
  uint64_t number = 0;
};

class Segments {
 public:
  Segments(FileSystem& fs, std::string folder, uint64_t segment_bytes, bool direct)
      : fs_(fs), folder_(std::move(folder)), segment_bytes_(segment_bytes), direct_(direct) {}

  /// What recovery found: files in use, in the order of their numbers, and files to be used again.
  void Adopt(std::deque<SegmentFile> used, std::deque<std::string> free);

  /// Opens the segment in use that has this number, for writing.
  Result<std::unique_ptr<File>> OpenUsed(uint64_t number);

  /// Syncs the segment in use before `number`, if there is one. Older ones were synced before that was begun.
  Status SyncBefore(uint64_t number);
  /// What the block of `offset` holds before it.
  Result<std::string> ReadTail(uint64_t number, uint64_t offset);

  /// Makes sure that a file waits for number last + 1, with that number durable in its header. Blocks. kStorageFull
  /// where no file is free and the disk has no room for another.
  Status Prepare();
  /// Makes sure that a free file stands behind the prepared one: room for what has to be written on a full disk.
  Status Reserve();
  /// The prepared file becomes the last one in use. Prepares it first where nobody has.
  Result<std::unique_ptr<File>> TakeNext();

  /// Files with numbers below `first_needed` are free: kept for use, or removed beyond a few.
  Status Free(uint64_t first_needed);

  uint64_t first() const;
  uint64_t last() const;
  size_t used() const;
  /// Nothing is left to do for Prepare and Reserve.
  bool prepared() const;
  uint64_t segment_bytes() const { return segment_bytes_; }
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }

 private:
  Result<std::unique_ptr<File>> Make(const std::string& name);

  FileSystem& fs_;
  const std::string folder_;
  const uint64_t segment_bytes_;
  const bool direct_;

  std::mutex preparing_;  // held by the one who prepares; taken before mutex_
  mutable std::mutex mutex_;
  std::deque<SegmentFile> used_;
  std::deque<std::string> free_;
  std::unique_ptr<File> next_;  // prepared, with number last + 1
  std::string next_name_;
  uint64_t names_ = 0;  // the highest number in a file name
};

}  // namespace tocsin::journal
