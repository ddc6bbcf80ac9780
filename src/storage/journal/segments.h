// Segments: the segment files of one data folder, the number of each, and the supply of new ones. A file is prewritten
// once, so that later writes change no metadata and cost one device flush, and is then used again and again.
//
// Invariant: files are freed from the oldest on, and only below a first needed segment that a durable seal names. So
// the segments from there to the last have no gap, and replaying older ones too, as far as there is no gap, gives the
// same state.
//
// Thread-safe. Preparing a file takes long (it writes all of it) and happens outside the lock, on the maker's thread.
#pragma once

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "base/file.h"
#include "storage/journal/format.h"

namespace tocsin::journal {

/// Makes the folder durably, unless it exists.
Status MakeFolder(FileSystem& fs, const std::string& folder);

struct SegmentFile {
  std::string name;
  uint64_t number = 0;
};

class Segments {
 public:
  /// Without `prewrite` a new file takes no room on the disk until it is used.
  Segments(FileSystem& fs, std::string folder, uint64_t segment_bytes, bool direct, bool prewrite = true)
      : fs_(fs), folder_(std::move(folder)), segment_bytes_(segment_bytes), direct_(direct), prewrite_(prewrite) {}

  /// Takes over the files that recovery found: files in use, in the order of their numbers, and free files.
  void Adopt(std::deque<SegmentFile> used, std::deque<std::string> free);

  /// Opens the segment in use that has this number, for writing.
  Result<std::unique_ptr<File>> OpenUsed(uint64_t number);

  /// Syncs the segment in use before `number`, if there is one. Older ones were synced before that one was begun.
  Status SyncBefore(uint64_t number);
  /// The content of the block of `offset` before it.
  Result<std::string> ReadTail(uint64_t number, uint64_t offset);

  /// Makes sure that there is a file with number last + 1 durable in its header. Blocks. kStorageFull if no file is
  /// free and the disk has no room for another; kOverloaded if the system opens no more files. Both may be tried again.
  Status Prepare();
  /// Makes one more free file unless the reserve is complete: free files in addition to the prepared one, so that a
  /// full disk can still be written to. Meanwhile Prepare does not wait if a file is free.
  Status Reserve();
  /// How many files the reserve has; one unless told otherwise.
  void SetReserve(size_t files);
  /// The prepared file becomes the last one in use. Prepares one if there is none.
  Result<std::unique_ptr<File>> TakeNext();

  /// Frees files with numbers below `first_needed`. Keeps a few for use and removes the others.
  Status Free(uint64_t first_needed);

  uint64_t first() const;
  uint64_t last() const;
  size_t used() const;
  /// Files that the journal can go on in: the prepared one and free ones.
  size_t spare() const;
  /// Whether Prepare and Reserve have nothing to do.
  bool prepared() const;
  uint64_t segment_bytes() const { return segment_bytes_; }
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }

 private:
  /// Writes a new file. The caller has set making_, and calls EndMaking.
  Result<std::unique_ptr<File>> Make(const std::string& name);
  /// `free`: the name of the new file if it is free, empty otherwise.
  void EndMaking(std::string free);
  Result<std::unique_ptr<File>> OpenForWriting(const std::string& name) {
    return fs_.Open(PathOf(name), direct_ ? OpenMode::kWriteDirect : OpenMode::kWrite);
  }

  FileSystem& fs_;
  const std::string folder_;
  const uint64_t segment_bytes_;
  const bool direct_;
  const bool prewrite_;

  std::mutex preparing_;  // held while files are prepared or freed, not while the reserve is made; taken before mutex_
  mutable std::mutex mutex_;
  std::condition_variable made_;  // making_ has become false
  bool making_ = false;           // a new file is being written; one at a time
  std::deque<SegmentFile> used_;
  std::deque<std::string> free_;
  size_t reserve_ = 1;
  std::unique_ptr<File> next_;  // prepared, with number last + 1
  std::string next_name_;
  uint64_t names_ = 0;  // the highest number in a file name
};

/// Memory for direct I/O, aligned to kBlock.
struct FreeAligned {
  void operator()(char* p) const { std::free(p); }
};
using AlignedBuffer = std::unique_ptr<char[], FreeAligned>;
inline AlignedBuffer MakeAligned(size_t bytes) {
  return AlignedBuffer(static_cast<char*>(std::aligned_alloc(kBlock, bytes)));
}

/// Turns a stream of bytes into whole-block writes of one segment. The last, partly filled block stays in memory and is
/// written again with the next Flush. Its old bytes are written unchanged, so a torn rewrite cannot harm them. Only the
/// committer uses it.
class BlockWriter {
 public:
  /// `buffer_bytes`, a multiple of kBlock: the most bytes of one write.
  explicit BlockWriter(size_t buffer_bytes);

  /// Continues `file` at `offset`; `tail` is the content of the block of `offset` before it.
  void Attach(std::unique_ptr<File> file, uint64_t offset, std::string_view tail);

  Status Append(std::string_view bytes);
  /// Writes out everything, the last block padded with zeros.
  Status Flush();
  Status Sync() { return file_->Sync(); }

 private:
  Status WriteBuffer();

  const size_t buffer_bytes_;
  std::unique_ptr<File> file_;
  AlignedBuffer buffer_;
  uint64_t start_ = 0;  // file offset of buffer_[0], a multiple of kBlock
  size_t filled_ = 0;   // < kBlock after Flush
};

}  // namespace tocsin::journal
