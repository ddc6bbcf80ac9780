#include "base/worker.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tocsin {
namespace {

constexpr int kNice = 5;  // the loops' threads come first

void Answer(Loop& loop, Worker::Done done, Status status) {
  loop.Post([done = std::move(done), status = std::move(status)]() mutable { done(std::move(status)); });
}

Worker::Step Once(Task work) {
  return [work = std::move(work)]() mutable {
    work();
    return true;
  };
}

}  // namespace

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

void Worker::Run(Loop& loop, Task work, Done done, size_t waiting_max) {
  const std::lock_guard lock(mutex_);
  const bool limited = waiting_max != kNoLimit;
  if (limited && limited_waiting_ >= waiting_max) {
    return Answer(loop, std::move(done),
                  Fail(Code::kOverloaded, "{} requests wait for the thread {} already", waiting_max, name_));
  }
  if (limited) ++limited_waiting_;
  Enqueue({loop, Once(std::move(work)), std::move(done), limited});
}

void Worker::RunFirst(Loop& loop, Task work, Done done) {
  const std::lock_guard lock(mutex_);
  Enqueue({loop, Once(std::move(work)), std::move(done), false}, true);
}

void Worker::RunSteps(Loop& loop, Step step, Done done) {
  const std::lock_guard lock(mutex_);
  Enqueue({loop, std::move(step), std::move(done), false});
}

void Worker::Enqueue(Waiting waiting, bool first) {
  first ? waiting_.push_front(std::move(waiting)) : waiting_.push_back(std::move(waiting));
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = std::jthread([this] { Serve(); });
}

void Worker::Serve() {
  pthread_setname_np(pthread_self(), name_.c_str());
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    if (ended_) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (next.limited) --limited_waiting_;
    lock.unlock();
    const bool done = next.work();
    if (done) Answer(next.loop, std::move(next.done), {});
    lock.lock();
    if (!done) waiting_.push_back(std::move(next));
  }
}

}  // namespace tocsin
