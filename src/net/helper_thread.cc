#include "net/helper_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tocsin::net {
namespace {

constexpr int kNice = 5;  // the shards' threads come first

}  // namespace

HelperThread::~HelperThread() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

void HelperThread::Run(Task work, Task done) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.emplace_back(std::move(work), std::move(done));
  }
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = std::jthread([this] { Serve(); });
}

void HelperThread::Serve() {
  pthread_setname_np(pthread_self(), name_.c_str());
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    if (ended_) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next.work();
    loop_.Post(std::move(next.done));
    lock.lock();
  }
}

}  // namespace tocsin::net
