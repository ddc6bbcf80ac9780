#include "coordination/zookeeper/worker.h"

#include <utility>

#include <pthread.h>

namespace tocsin::zookeeper {

Worker::Worker() : thread_([this] { Work(); }) { pthread_setname_np(thread_.native_handle(), "tocsin-zk"); }

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Worker::Run(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void Worker::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds ends here, not under the lock
    lock.lock();
  }
}

}  // namespace tocsin::zookeeper
