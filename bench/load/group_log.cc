#include "load/group_log.h"

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/hash.h"
#include "shared/net.h"

namespace tocsin::bench {
namespace {

constexpr size_t kBlock = 4096;
constexpr size_t kGroupBytes = 4 << 20;
constexpr size_t kFileBytes = 256 << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes)
    : size_(bytes), data_(static_cast<char*>(std::aligned_alloc(kBlock, bytes))) {
  std::memset(data_.get(), 0, bytes);  // touched now: a first touch costs microseconds
}

void AlignedBuffer::Free::operator()(char* data) const { std::free(data); }

int MakeDirectFile(const std::string& folder, size_t bytes) {
  const std::string path = fmt::format("{}/load_bench-{}", folder, getpid());
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);
  if (fd < 0) Die("cannot make {}: {}", path, std::strerror(errno));
  unlink(path.c_str());
  AlignedBuffer zeros(1 << 20);
  for (size_t at = 0; at < bytes; at += zeros.size()) {
    if (pwrite(fd, zeros.data(), zeros.size(), static_cast<off_t>(at)) < 0)
      Die("cannot write: {}", std::strerror(errno));
  }
  if (fsync(fd) != 0) Die("cannot sync: {}", std::strerror(errno));
  return fd;
}

GroupLog::GroupLog(const std::string& folder, int wake)
    : fd_(MakeDirectFile(folder, kFileBytes)),
      wake_(wake),
      filling_(kGroupBytes),
      writing_(kGroupBytes),
      thread_([this] { Work(); }) {}

GroupLog::~GroupLog() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
  close(fd_);
}

void GroupLog::Append(std::initializer_list<std::string_view> parts) {
  char* const head_at = filling_.data() + filled_;
  char* at = head_at + sizeof(RecordHead);
  for (const std::string_view part : parts) at += part.copy(at, part.size());
  const auto bytes = static_cast<size_t>(at - head_at);
  const std::string_view record(head_at + sizeof(RecordHead), bytes - sizeof(RecordHead));
  const RecordHead head{.bytes = static_cast<uint32_t>(record.size()), .crc = Crc32c(record)};
  std::memcpy(head_at, &head, sizeof(head));
  filled_ += bytes;
  appended_ += bytes;
}

void GroupLog::Commit() {
  if (filled_ == 0 || !idle_.load(std::memory_order_acquire)) return;
  std::swap(filling_, writing_);
  idle_.store(false, std::memory_order_relaxed);
  {
    const std::scoped_lock lock(mutex_);
    to_write_ = filled_;
    to_write_end_ = appended_;
  }
  filled_ = 0;
  changed_.notify_one();
}

void GroupLog::Work() {
  prctl(PR_SET_NAME, "group-log");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return to_write_ > 0 || stopping_; });
    if (to_write_ == 0) return;
    const size_t bytes = to_write_;
    const uint64_t end = to_write_end_;
    to_write_ = 0;
    lock.unlock();
    Write(writing_, bytes);
    synced_.store(end, std::memory_order_release);
    idle_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    if (wake_ >= 0 && write(wake_, &one, sizeof(one)) < 0) Die("eventfd: {}", std::strerror(errno));
    lock.lock();
  }
}

void GroupLog::Write(AlignedBuffer& group, size_t bytes) {
  const size_t padded = (bytes + kBlock - 1) / kBlock * kBlock;
  std::memset(group.data() + bytes, 0, padded - bytes);
  if (offset_ + padded > kFileBytes) offset_ = 0;
  if (pwrite(fd_, group.data(), padded, static_cast<off_t>(offset_)) != static_cast<ssize_t>(padded) ||
      fdatasync(fd_) != 0) {
    Die("the log cannot be written: {}", std::strerror(errno));
  }
  offset_ += padded;
}

}  // namespace tocsin::bench
