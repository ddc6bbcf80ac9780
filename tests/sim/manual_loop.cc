#include "sim/manual_loop.h"

#include <utility>

namespace tocsin {

void ManualLoop::Post(Task task) {
  const std::scoped_lock lock(mutex_);
  tasks_.push_back(std::move(task));
}

bool ManualLoop::TryPost(Task task) {
  const std::scoped_lock lock(mutex_);
  if (tasks_.size() >= capacity_) return false;
  tasks_.push_back(std::move(task));
  return true;
}

void ManualLoop::SetCapacity(size_t capacity) {
  const std::scoped_lock lock(mutex_);
  capacity_ = capacity;
}

bool ManualLoop::RunOne() {
  Task task;
  {
    const std::scoped_lock lock(mutex_);
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  task();
  return true;
}

size_t ManualLoop::RunAll() {
  size_t ran = 0;
  while (RunOne()) ++ran;
  return ran;
}

void ManualLoop::Forget() {
  const std::scoped_lock lock(mutex_);
  tasks_.clear();
}

size_t ManualLoop::Waiting() const {
  const std::scoped_lock lock(mutex_);
  return tasks_.size();
}

bool ManualLoop::FireAlarm() {
  if (!alarm_) return false;
  alarm_.reset();
  if (on_alarm_) on_alarm_();
  return true;
}

}  // namespace tocsin
