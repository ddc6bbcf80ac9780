// Alarm and Soon: an Alarm runs a task at a later time, a Soon at the end of the present turn of the loop. Each is a
// member of the object that its task works on: after its destruction the task never runs. On the thread of `io`.
#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/loop.h"

namespace tocsin::redis {

using TimePoint = std::chrono::steady_clock::time_point;

class Alarm {
 public:
  Alarm(boost::asio::io_context& io, Task task);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  /// Runs the task once at `at`, instead of any time set before.
  void Set(TimePoint at);
  /// Set, unless an earlier time is set.
  void SetEarlier(TimePoint at);
  void Cancel() { Set(TimePoint::max()); }

 private:
  struct State;
  static void Arm(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

class Soon {
 public:
  Soon(boost::asio::io_context& io, Task task);
  ~Soon();
  Soon(const Soon&) = delete;
  Soon& operator=(const Soon&) = delete;

  /// Runs the task once for all calls of this turn.
  void Schedule();

 private:
  struct State;
  boost::asio::io_context& io_;
  std::shared_ptr<State> state_;
};

}  // namespace tocsin::redis
