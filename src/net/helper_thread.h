// HelperThread: does work for a loop that would keep the loop's thread for too long: due jobs wait for that thread.
// Begins its thread with the first work. Owned by a Door, and destroyed before the loop.
//
// Threads: Run is called on the loop's thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "base/loop.h"

namespace tocsin::net {

class HelperThread {
 public:
  /// `name`: of the thread, up to 15 characters.
  HelperThread(Loop& loop, std::string name) : loop_(loop), name_(std::move(name)) {}
  /// Waits for the work that is being done, and drops the rest.
  ~HelperThread();
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;

  /// `work` runs on the helper's thread, and must not throw; then `done` runs on the loop. In the order of the calls.
  void Run(Task work, Task done);

 private:
  struct Waiting {
    Task work;
    Task done;
  };
  void Serve();

  Loop& loop_;
  const std::string name_;
  std::mutex mutex_;  // guards the next two
  std::deque<Waiting> waiting_;
  bool ended_ = false;
  std::condition_variable changed_;
  std::jthread thread_;
};

}  // namespace tocsin::net
