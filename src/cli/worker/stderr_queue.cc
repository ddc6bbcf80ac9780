#include "cli/worker/stderr_queue.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"

namespace tocsin::cli {

StderrQueue::StderrQueue() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { TOCSIN_CHECK(wake_.open()); }

void StderrQueue::Add(std::string_view text) {
  {
    const std::lock_guard lock(mutex_);
    if (text_.size() >= kMaxBytes) return;
    text_ += text;
  }
  ::eventfd_write(wake_.get(), 1);
}

bool StderrQueue::Full() const {
  const std::lock_guard lock(mutex_);
  return text_.size() >= kFullBytes;
}

int StderrQueue::out_fd() {
  eventfd_t ignored = 0;
  ::eventfd_read(wake_.get(), &ignored);
  const std::lock_guard lock(mutex_);
  return text_.empty() ? -1 : STDERR_FILENO;
}

void StderrQueue::Write() {
  std::string part;
  {
    const std::lock_guard lock(mutex_);
    part = text_.substr(0, PIPE_BUF);  // a writable pipe has room for this much
  }
  const ssize_t n = ::write(STDERR_FILENO, part.data(), part.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const std::lock_guard lock(mutex_);
  text_.erase(0, n < 0 ? std::string::npos : static_cast<size_t>(n));  // drop what cannot be written
}

void StderrQueue::Finish(const Clock& clock, Millis limit) {
  const auto end = clock.IoNow() + limit;
  while (out_fd() >= 0) {
    pollfd poll{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    const auto left = std::chrono::ceil<Millis>(end - clock.IoNow());
    if (::poll(&poll, 1, static_cast<int>(std::max<int64_t>(0, left.count()))) <= 0) return;
    Write();
  }
}

}  // namespace tocsin::cli
