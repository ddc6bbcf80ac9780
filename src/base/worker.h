// Worker: a thread for work that would keep a loop's thread for too long, because due jobs wait for that one: parsing
// large bodies, rendering metrics. It has a lower priority than the loops, and begins its thread with the first work.
//
// Threads: Run is thread-safe. The loops outlive the worker.
//
// Invariant: works are done one after the other, in the order of the calls, except RunFirst.
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

  /// `work` runs on the worker's thread, and must not throw; then `done` runs on `loop`. If `waiting_max` works that
  /// have such a limit wait, only `done` runs, with kOverloaded.
  void Run(Loop& loop, Task work, Done done, size_t waiting_max = kNoLimit);
  /// The same, before all other work that waits: for short work that gives memory back.
  void RunFirst(Loop& loop, Task work, Done done);
  /// The same as Run for work that takes long: `step` runs until it returns true. Other work has its turn between two
  /// steps.
  using Step = std::move_only_function<bool()>;
  void RunSteps(Loop& loop, Step step, Done done);

 private:
  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

  struct Waiting {
    Loop& loop;
    Step work;
    Done done;
    bool limited;
  };
  void Enqueue(Waiting waiting, bool first = false);  // mutex_ is held
  void Serve();

  const std::string name_;
  std::mutex mutex_;  // guards the next three, and the beginning of the thread
  std::deque<Waiting> waiting_;
  size_t limited_waiting_ = 0;  // of them, those with a limit
  bool ended_ = false;
  std::condition_variable changed_;
  std::jthread thread_;
};

}  // namespace tocsin
