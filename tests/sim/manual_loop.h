// ManualLoop: a Loop that runs only when a test or a simulation says so. It belongs to the thread that made it; other
// threads may post to it.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "base/loop.h"

namespace tocsin {

class ManualLoop final : public Loop {
 public:
  void Post(Task task) override;
  [[nodiscard]] bool TryPost(Task task) override;
  bool InThread() const override { return std::this_thread::get_id() == owner_; }
  void SetAlarm(Millis delay) override { alarm_ = delay; }
  void OnAlarm(Task handler) override { on_alarm_ = std::move(handler); }

  /// TryPost is refused while this many tasks wait.
  void SetCapacity(size_t capacity);

  /// False when nothing waits.
  bool RunOne();
  /// Runs until no task waits, also those that tasks post. Returns how many it ran.
  size_t RunAll();
  size_t Waiting() const;
  /// Drops the waiting tasks, as the end of a process does.
  void Forget();

  /// The delay of the alarm that is set.
  std::optional<Millis> AlarmDelay() const { return alarm_; }
  /// Runs the alarm handler as if the delay had passed. False when no alarm is set.
  bool FireAlarm();

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  mutable std::mutex mutex_;  // protects the next two
  std::deque<Task> tasks_;
  size_t capacity_ = SIZE_MAX;
  std::optional<Millis> alarm_;
  Task on_alarm_;
};

}  // namespace tocsin
