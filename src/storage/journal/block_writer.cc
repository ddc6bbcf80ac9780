#include "storage/journal/block_writer.h"

#include <cstring>

#include "base/check.h"

namespace tocsin::journal {

BlockWriter::BlockWriter(size_t buffer_bytes) : buffer_bytes_(buffer_bytes), buffer_(MakeAligned(buffer_bytes)) {
  std::memset(buffer_.get(), 0, buffer_bytes_);
}

void BlockWriter::Attach(std::unique_ptr<File> file, uint64_t offset, std::string_view tail) {
  file_ = std::move(file);
  start_ = offset - tail.size();
  TOCSIN_CHECK(start_ % kBlock == 0 && tail.size() < kBlock);
  std::ranges::copy(tail, buffer_.get());
  filled_ = tail.size();
}

Status BlockWriter::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (filled_ == buffer_bytes_) TOCSIN_TRY(WriteBuffer());
    const size_t part = std::min(bytes.size(), buffer_bytes_ - filled_);
    std::memcpy(buffer_.get() + filled_, bytes.data(), part);
    filled_ += part;
    bytes.remove_prefix(part);
  }
  return {};
}

Status BlockWriter::Flush() {
  if (filled_ == 0) return {};
  const size_t padded = (filled_ + kBlock - 1) / kBlock * kBlock;
  std::memset(buffer_.get() + filled_, 0, padded - filled_);
  TOCSIN_TRY(file_->Write(start_, {buffer_.get(), padded}));
  const size_t whole = filled_ / kBlock * kBlock;
  std::memmove(buffer_.get(), buffer_.get() + whole, filled_ - whole);
  start_ += whole;
  filled_ -= whole;
  return {};
}

Status BlockWriter::WriteBuffer() {
  TOCSIN_TRY(file_->Write(start_, {buffer_.get(), buffer_bytes_}));
  start_ += buffer_bytes_;
  filled_ = 0;
  return {};
}

}  // namespace tocsin::journal
