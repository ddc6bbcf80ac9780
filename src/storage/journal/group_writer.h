// GroupWriter: turns a stream of bytes into whole-block writes of one segment. The last, partly filled block stays in
// memory and is written again with the next group; what was in it is written unchanged, so a torn rewrite cannot harm
// it. The committer's alone.
#pragma once

#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/file.h"

namespace tocsin::journal {

class GroupWriter {
 public:
  /// `buffer_bytes`, a multiple of kBlock: what is gathered into one write.
  explicit GroupWriter(size_t buffer_bytes);

  /// Continues `file` at `offset`; `tail` is what the block of `offset` holds before it.
  void Attach(std::unique_ptr<File> file, uint64_t offset, std::string_view tail);

  Status Append(std::string_view bytes);
  /// Writes out everything, the last block padded with zeros.
  Status Flush();
  Status Sync() { return file_->Sync(); }

 private:
  struct FreeAligned {
    void operator()(char* p) const { std::free(p); }
  };

  Status WriteBuffer();

  const size_t buffer_bytes_;
  std::unique_ptr<File> file_;
  std::unique_ptr<char[], FreeAligned> buffer_;
  uint64_t start_ = 0;  // file offset of buffer_[0], a multiple of kBlock
  size_t filled_ = 0;   // < kBlock after Flush
};

}  // namespace tocsin::journal
