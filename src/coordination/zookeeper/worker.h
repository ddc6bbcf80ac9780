// Worker: the thread on which the library's calls block: opening a session resolves names, closing one waits for the
// threads of the library. Tasks run one after the other; those that wait when it is destroyed run first. Run is
// thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/loop.h"

namespace tocsin::zookeeper {

class Worker {
 public:
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Run(Task task);

 private:
  void Work();

  std::mutex mutex_;  // guards the next two
  std::deque<Task> tasks_;
  bool ending_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace tocsin::zookeeper
