#include "clients/redis/alarm.h"

#include <boost/asio/post.hpp>

namespace tocsin::redis {

// A queued handler keeps the state alive: the task may destroy the Alarm.
struct Alarm::State {
  boost::asio::steady_timer timer;
  Task task;
  bool gone = false;
  TimePoint at = TimePoint::max();
  TimePoint armed_for = TimePoint::max();
};

Alarm::Alarm(boost::asio::io_context& io, Task task)
    : state_(std::make_shared<State>(boost::asio::steady_timer(io), std::move(task))) {}

Alarm::~Alarm() {
  state_->gone = true;
  state_->timer.cancel();
}

void Alarm::Set(TimePoint at) {
  state_->at = at;
  // A timer that fires too early is set again: moving it at every call would cost more.
  if (at < state_->armed_for) Arm(state_);
}

void Alarm::SetEarlier(TimePoint at) {
  if (at < state_->at) Set(at);
}

void Alarm::Arm(const std::shared_ptr<State>& state) {
  state->armed_for = state->at;
  state->timer.expires_at(state->at);
  state->timer.async_wait([state](const boost::system::error_code& error) {
    if (error || state->gone) return;
    state->armed_for = TimePoint::max();
    if (state->at == TimePoint::max()) return;
    if (std::chrono::steady_clock::now() < state->at) return Arm(state);
    state->at = TimePoint::max();
    state->task();
  });
}

struct Soon::State {
  Task task;
  bool gone = false;
  bool scheduled = false;
};

Soon::Soon(boost::asio::io_context& io, Task task) : io_(io), state_(std::make_shared<State>(std::move(task))) {}

Soon::~Soon() { state_->gone = true; }

void Soon::Schedule() {
  if (std::exchange(state_->scheduled, true)) return;
  boost::asio::post(io_, [state = state_] {
    state->scheduled = false;
    if (!state->gone) state->task();
  });
}

}  // namespace tocsin::redis
