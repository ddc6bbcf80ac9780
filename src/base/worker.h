// Worker: a thread for work that would keep a loop's thread for too long, because due jobs wait for that one: parsing
// large bodies, rendering metrics. It has a lower priority than the loops, and begins its thread with the first work.
//
// Threads: Run is thread-safe. The loops outlive the worker.
//
// Invariant: works are done one after the other, in the order of the calls.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <thread>

#include "base/loop.h"
#include "base/result.h"

namespace tocsin {

class Worker {
 public:
  /// `name`: of the thread, up to 15 characters.
  explicit Worker(std::string name) : name_(std::move(name)) {}
  /// Waits for the work that is being done, and drops the rest.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  using Done = std::move_only_function<void(Status)>;

  /// `work` runs on the worker's thread, and must not throw; then `done` runs on `loop`. If `waiting_max` others wait,
  /// only `done` runs, with kOverloaded.
  void Run(Loop& loop, Task work, Done done, size_t waiting_max = std::numeric_limits<size_t>::max());

 private:
  struct Waiting {
    Loop& loop;
    Task work;
    Done done;
  };
  void Serve();

  const std::string name_;
  std::mutex mutex_;  // guards the next two, and the beginning of the thread
  std::deque<Waiting> waiting_;
  bool ended_ = false;
  std::condition_variable changed_;
  std::jthread thread_;
};

}  // namespace tocsin
