// BlockWriter: turns a stream of bytes into whole-block writes of one segment. The last, partly filled block stays in
// memory and is written again with the next Flush. Its old bytes are written unchanged, so a torn rewrite cannot harm
// them. Only the committer uses it.
#pragma once

#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/file.h"

namespace tocsin::journal {

/// Memory for direct I/O, aligned to kBlock.
struct FreeAligned {
  void operator()(char* p) const { std::free(p); }
};
using AlignedBuffer = std::unique_ptr<char[], FreeAligned>;
inline AlignedBuffer MakeAligned(size_t bytes) {
  return AlignedBuffer(static_cast<char*>(std::aligned_alloc(kBlock, bytes)));
}

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
