#include "storage/journal/segments.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/result.h"

namespace tocsin::journal {
namespace {

// Free files that are kept in addition to the reserve: with one, a steady stream of jobs reuses the file that it has
// just freed. A large journal frees several at once.
constexpr size_t kFreeKept = 1;
constexpr size_t kUsedForEachFree = 16;
// Small, so that a write of the journal waits for at most one of these.
constexpr size_t kFillBytes = 256 << 10;

uint64_t NumberInName(std::string_view name) {
  uint64_t number = 0;
  std::from_chars(name.data(), name.data() + name.size(), number);
  return number;
}

}  // namespace

Status MakeFolder(FileSystem& fs, const std::string& folder) {
  TOCSIN_TRY(fs.MakeDir(folder));
  const std::filesystem::path parent = std::filesystem::path(folder + "/").parent_path().parent_path();
  return fs.SyncDir(parent.empty() ? "." : parent.string());
}

void Segments::Adopt(std::deque<SegmentFile> used, std::deque<std::string> free) {
  const std::scoped_lock lock(mutex_);
  used_ = std::move(used);
  free_ = std::move(free);
  for (const SegmentFile& file : used_) names_ = std::max(names_, NumberInName(file.name));
  for (const std::string& name : free_) names_ = std::max(names_, NumberInName(name));
}

Result<std::unique_ptr<File>> Segments::OpenUsed(uint64_t number) {
  const std::scoped_lock lock(mutex_);
  TOCSIN_CHECK(!used_.empty() && number >= used_.front().number && number <= used_.back().number);
  return OpenForWriting(used_[number - used_.front().number].name);
}

Status Segments::SyncBefore(uint64_t number) {
  if (first() == number) return {};
  TOCSIN_ASSIGN(const auto file, OpenUsed(number - 1));
  return file->Sync();
}

Result<std::string> Segments::ReadTail(uint64_t number, uint64_t offset) {
  std::string path;
  {
    const std::scoped_lock lock(mutex_);
    path = PathOf(used_[number - used_.front().number].name);
  }
  TOCSIN_ASSIGN(const auto file, fs_.Open(path, OpenMode::kRead));
  std::string tail(offset % kBlock, '\0');
  TOCSIN_ASSIGN(const size_t read, file->Read(offset - tail.size(), tail));
  if (read != tail.size()) return Fail(Code::kIo, "{}: read {} of {} bytes", path, read, tail.size());
  return tail;
}

Result<std::unique_ptr<File>> Segments::Make(const std::string& name) {
  const std::string path = PathOf(name);
  if (auto created = fs_.Open(path, OpenMode::kCreate); !created) return created;
  auto file = OpenForWriting(name);
  // Write zeros instead of only allocating: at the first sync the file system would have to convert an unwritten
  // extent, with a commit of its own journal. Direct writes never reach the disk all at once.
  const AlignedBuffer zeros = MakeAligned(kFillBytes);
  std::memset(zeros.get(), 0, kFillBytes);
  Status done = file ? Status{} : std::unexpected(file.error());
  const uint64_t begin = prewrite_ ? 0 : segment_bytes_ - kBlock;
  for (uint64_t offset = begin; done && offset < segment_bytes_; offset += kFillBytes) {
    done = (*file)->Write(offset, {zeros.get(), std::min<uint64_t>(segment_bytes_ - offset, kFillBytes)});
  }
  if (done) done = (*file)->Sync();
  if (done) done = fs_.SyncDir(folder_);
  if (!done) {
    if (file) file->reset();
    TOCSIN_TRY(fs_.Remove(path));
    return std::unexpected(std::move(done).error().Prefixed("making a journal segment"));
  }
  return file;
}

void Segments::EndMaking(std::string free) {
  const std::scoped_lock lock(mutex_);
  making_ = false;
  if (!free.empty()) free_.push_back(std::move(free));
  made_.notify_all();
}

Status Segments::Prepare() {
  {
    const std::scoped_lock lock(mutex_);
    if (next_ != nullptr) return {};  // do not wait until files are freed
  }
  const std::scoped_lock preparing(preparing_);
  uint64_t number = 0;
  bool recycled = false;
  std::string name;
  {
    std::unique_lock lock(mutex_);
    if (next_ != nullptr) return {};
    // A file that is being made for the reserve comes sooner than another one.
    made_.wait(lock, [this] { return !making_ || !free_.empty(); });
    number = used_.empty() ? 1 : used_.back().number + 1;
    recycled = !free_.empty();
    if (recycled) {
      name = std::move(free_.front());
      free_.pop_front();
    } else {
      name = fmt::format("{:08}.segment", ++names_);
      making_ = true;
    }
  }
  auto file = recycled ? OpenForWriting(name) : Make(name);
  if (!recycled) EndMaking({});
  if (!file && !recycled) return std::unexpected(std::move(file).error());
  const std::string header = EncodeSegmentHeader({segment_bytes_, number});
  const AlignedBuffer block = MakeAligned(kBlock);
  std::memcpy(block.get(), header.data(), kBlock);
  Status done = file ? (*file)->Write(0, {block.get(), kBlock}) : std::unexpected(file.error());
  if (done) done = (*file)->Sync();
  const std::scoped_lock lock(mutex_);
  if (!done) {
    // The header may have reached the disk: only this file may get that number.
    free_.push_front(std::move(name));
    return done;
  }
  next_ = *std::move(file);
  next_name_ = std::move(name);
  return {};
}

Status Segments::Reserve() {
  std::string name;
  {
    std::unique_lock lock(mutex_);
    made_.wait(lock, [this] { return !making_; });
    if (free_.size() >= reserve_) return {};
    name = fmt::format("{:08}.segment", ++names_);
    making_ = true;
  }
  const auto made = Make(name);
  EndMaking(made ? std::move(name) : std::string());
  return made ? Status{} : std::unexpected(made.error());
}

void Segments::SetReserve(size_t files) {
  const std::scoped_lock lock(mutex_);
  reserve_ = files;
}

Result<std::unique_ptr<File>> Segments::TakeNext() {
  TOCSIN_TRY(Prepare());
  const std::scoped_lock lock(mutex_);
  used_.push_back({std::move(next_name_), used_.empty() ? 1 : used_.back().number + 1});
  return std::move(next_);
}

Status Segments::Free(uint64_t first_needed) {
  const std::scoped_lock preparing(preparing_);  // no file gets a number while others are freed
  std::vector<std::string> removed;
  {
    const std::scoped_lock lock(mutex_);
    while (used_.size() > 1 && used_.front().number < first_needed) {
      free_.push_back(std::move(used_.front().name));
      used_.pop_front();
    }
    while (free_.size() > reserve_ + kFreeKept + used_.size() / kUsedForEachFree) {
      removed.push_back(std::move(free_.back()));  // the front one may have the next number already
      free_.pop_back();
    }
  }
  for (const std::string& name : removed) TOCSIN_TRY(fs_.Remove(PathOf(name)));
  return removed.empty() ? Status{} : fs_.SyncDir(folder_);
}

uint64_t Segments::first() const {
  const std::scoped_lock lock(mutex_);
  return used_.empty() ? 0 : used_.front().number;
}

uint64_t Segments::last() const {
  const std::scoped_lock lock(mutex_);
  return used_.empty() ? 0 : used_.back().number;
}

size_t Segments::used() const {
  const std::scoped_lock lock(mutex_);
  return used_.size();
}

size_t Segments::spare() const {
  const std::scoped_lock lock(mutex_);
  return free_.size() + (next_ != nullptr ? 1 : 0);
}

bool Segments::prepared() const {
  const std::scoped_lock lock(mutex_);
  return next_ != nullptr && free_.size() >= reserve_;
}

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
