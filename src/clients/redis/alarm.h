// Alarm and Soon: an Alarm runs a task at a later time, a Soon at the end of the present turn of the loop. Each is a
// member of the object that its task works on: after its destruction the task never runs. On the thread of `io`.
#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/loop.h"
#include "net/turns.h"

namespace tocsin::redis {

using TimePoint = std::chrono::steady_clock::time_point;

class Alarm {
 public:
  Alarm(boost::asio::io_context& io, Task task)
      : state_(std::make_shared<State>(boost::asio::steady_timer(io), std::move(task))) {}
  ~Alarm() {
    state_->gone = true;
    state_->timer.cancel();
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  /// Runs the task once at `at`, instead of any time set before.
  void Set(TimePoint at) {
    state_->at = at;
    // A timer that fires too early is set again: moving it at every call would cost more.
    if (at < state_->armed_for) Arm(state_);
  }
  /// Set, unless an earlier time is set.
  void SetEarlier(TimePoint at) {
    if (at < state_->at) Set(at);
  }
  void Cancel() { Set(TimePoint::max()); }

 private:
  // A queued handler keeps the state alive: the task may destroy the Alarm.
  struct State {
    boost::asio::steady_timer timer;
    Task task;
    bool gone = false;
    TimePoint at = TimePoint::max();
    TimePoint armed_for = TimePoint::max();
  };

  static void Arm(const std::shared_ptr<State>& state) {
    state->armed_for = state->at;
    state->timer.expires_at(state->at);
    state->timer.async_wait([state](const boost::system::error_code& error) {
      if (error || state->gone) return;
      const net::Turn turn;
      state->armed_for = TimePoint::max();
      if (state->at == TimePoint::max()) return;
      if (std::chrono::steady_clock::now() < state->at) return Arm(state);
      state->at = TimePoint::max();
      state->task();
    });
  }

  const std::shared_ptr<State> state_;
};

class Soon {
 public:
  Soon(boost::asio::io_context& io, Task task) : io_(io), state_(std::make_shared<State>(std::move(task))) {}
  ~Soon() { state_->gone = true; }
  Soon(const Soon&) = delete;
  Soon& operator=(const Soon&) = delete;

  /// Runs the task once for all calls of this turn.
  void Schedule() {
    if (std::exchange(state_->scheduled, true)) return;
    boost::asio::post(io_, [state = state_] {
      const net::Turn turn;
      state->scheduled = false;
      if (!state->gone) state->task();
    });
  }

 private:
  struct State {
    Task task;
    bool gone = false;
    bool scheduled = false;
  };
  boost::asio::io_context& io_;
  const std::shared_ptr<State> state_;
};

}  // namespace tocsin::redis
