#include "base/audit.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tocsin {
namespace {

constexpr size_t kWaitingMax = 1 << 20;  // bytes

std::atomic<AuditFile*> current = nullptr;

void ToTheLog(std::string_view lines) {
  if (LogEnabled(LogLevel::kError)) std::fwrite(lines.data(), 1, lines.size(), stderr);  // it is off otherwise
}

/// Returns how many bytes were written.
size_t WriteAll(int file, std::string_view text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t bytes = ::write(file, text.data() + written, text.size() - written);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    written += static_cast<size_t>(bytes);
  }
  return written;
}

}  // namespace

void Audit(LogFields fields) {
  const std::string line = EventLine(LogLevel::kInfo, "audit", fields);
  AuditFile* const file = current.load(std::memory_order_acquire);
  if (file == nullptr || !file->Add(line)) ToTheLog(line);
}

Result<std::unique_ptr<AuditFile>> AuditFile::Open(const std::string& path) {
  std::unique_ptr<AuditFile> made(new AuditFile(path));
  TOCSIN_TRY(made->Reopen());
  made->thread_ = std::jthread([file = made.get()](const std::stop_token& stop) { file->Serve(stop); });
  current.store(made.get(), std::memory_order_release);
  return made;
}

AuditFile::~AuditFile() {
  current.store(nullptr, std::memory_order_release);
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  if (file_ >= 0) ::close(file_);
}

bool AuditFile::Add(std::string_view line) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + line.size() > kWaitingMax) return false;
    waiting_ += line;
  }
  changed_.notify_one();
  return true;
}

void AuditFile::Serve(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "tocsin-audit");
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
    const std::string lines = std::exchange(waiting_, {});
    lock.unlock();
    Write(lines);
    lock.lock();
  }
}

void AuditFile::Write(std::string_view lines) {
  Status opened;
  if (!IsInPlace()) opened = Reopen();
  const std::string text = std::string(torn_ ? "\n" : "").append(lines);
  const size_t written = opened ? WriteAll(file_, text) : 0;
  if (written > 0) torn_ = text[written - 1] != '\n';
  if (written == text.size()) {
    failed_ = false;
    return;
  }
  if (!std::exchange(failed_, true)) {
    LogError("log.audit_file: cannot write {}: {}; its lines are in this log until that is mended", path_,
             opened ? std::strerror(errno) : opened.error().message);
  }
  ToTheLog(lines);
}

bool AuditFile::IsInPlace() const {
  struct stat named{};
  struct stat open{};
  return file_ >= 0 && ::stat(path_.c_str(), &named) == 0 && ::fstat(file_, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

Status AuditFile::Reopen() {
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return Fail(Code::kIo, "cannot open {}: {}", path_, std::strerror(errno));
  if (file_ >= 0) ::close(file_);
  file_ = file;
  torn_ = false;
  return {};
}

}  // namespace tocsin
