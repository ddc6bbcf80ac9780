// AsioLoop: the server's Loop, one io_context run by one thread. Sockets of the shard's connections live on io().
//
// Tasks arrive through one lock-free mailbox; only the first task of a burst wakes the loop. The io_context is
// destroyed with the loop, after the thread that ran it has ended.
//
// Invariants: tasks run in the order of posting; at most `requests_max` TryPost tasks wait in the mailbox; one alarm.
// Tasks that take longer than a millisecond together are run in several goes, so that the alarm and the sockets have
// their turn in between.
#pragma once

#include <atomic>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/loop.h"

namespace tocsin::net {

class AsioLoop final : public Loop {
 public:
  explicit AsioLoop(const Clock& clock, size_t requests_max = 4096);
  ~AsioLoop() override;
  AsioLoop(const AsioLoop&) = delete;
  AsioLoop& operator=(const AsioLoop&) = delete;

  /// Makes the calling thread the loop's, until Stop.
  void Run() { io_.run(); }
  /// Thread-safe. Tasks that are left in the mailbox are dropped when the loop is destroyed.
  void Stop() { io_.stop(); }

  boost::asio::io_context& io() { return io_; }
  const Clock& clock() const { return clock_; }

  void Post(Task task) override { Push(std::move(task), false); }
  [[nodiscard]] bool TryPost(Task task) override;
  bool InThread() const override { return work_.get_executor().running_in_this_thread(); }
  void SetAlarm(Millis delay) override;
  void OnAlarm(Task handler) override { on_alarm_ = std::move(handler); }

 private:
  struct QueuedTask {
    Task task;
    QueuedTask* next;
    bool request;
  };

  void Push(Task task, bool request);
  /// Takes what is in the mailbox.
  void Drain();
  void RunTasks();
  void Arm();

  const Clock& clock_;
  const size_t requests_max_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer timer_;

  // Any thread: a stack, newest first; Drain takes all of it and reverses it.
  std::atomic<QueuedTask*> mailbox_ = nullptr;
  std::atomic<size_t> requests_ = 0;

  // The loop's thread.
  QueuedTask* first_ = nullptr;  // of the tasks that were taken from the mailbox, oldest first
  QueuedTask* last_ = nullptr;
  bool goes_on_ = false;  // a RunTasks is posted. Never two: each would take its millisecond before others have a turn.
  Task on_alarm_;
  std::chrono::steady_clock::time_point alarm_at_ = std::chrono::steady_clock::time_point::max();
  std::chrono::steady_clock::time_point armed_for_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace tocsin::net
