#include "net/asio_loop.h"

#include <utility>

#include <boost/asio/post.hpp>

#include "net/turns.h"

namespace tocsin::net {

using TimePoint = std::chrono::steady_clock::time_point;

constexpr std::chrono::milliseconds kTurnTime{1};  // of tasks, before other handlers run

AsioLoop::AsioLoop(const Clock& clock, size_t requests_max)
    : clock_(clock), requests_max_(requests_max), io_(1), work_(io_.get_executor()), timer_(io_) {}

AsioLoop::~AsioLoop() {
  while (first_ != nullptr) delete std::exchange(first_, first_->next);
  for (QueuedTask* queued = mailbox_.exchange(nullptr); queued != nullptr;) delete std::exchange(queued, queued->next);
}

bool AsioLoop::TryPost(Task task) {
  if (requests_.fetch_add(1, std::memory_order_relaxed) >= requests_max_) {
    requests_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  Push(std::move(task), true);
  return true;
}

void AsioLoop::Push(Task task, bool request) {
  QueuedTask* head = mailbox_.load(std::memory_order_relaxed);
  QueuedTask* queued = new QueuedTask{std::move(task), nullptr, request};
  do {
    queued->next = head;
  } while (!mailbox_.compare_exchange_weak(head, queued, std::memory_order_release, std::memory_order_relaxed));
  // From here on `queued` may be destroyed: a Drain may have run. Only the task that found the mailbox empty wakes the
  // loop; later tasks of a burst need no wake-up of their own.
  if (head == nullptr) boost::asio::post(io_, [this] { Drain(); });
}

void AsioLoop::Drain() {
  const Turn turn;
  QueuedTask* stack = mailbox_.exchange(nullptr, std::memory_order_acquire);
  QueuedTask* const last = stack;
  QueuedTask* queue = nullptr;
  while (stack != nullptr) {
    QueuedTask* queued = std::exchange(stack, stack->next);
    queued->next = std::exchange(queue, queued);
  }
  if (queue != nullptr) {
    (first_ == nullptr ? first_ : last_->next) = queue;
    last_ = last;
  }
  if (!goes_on_) RunTasks();
}

void AsioLoop::RunTasks() {
  const Turn turn;
  goes_on_ = false;
  const TimePoint end = clock_.IoNow() + kTurnTime;
  while (first_ != nullptr) {
    const std::unique_ptr<QueuedTask> queued(std::exchange(first_, first_->next));
    if (queued->request) requests_.fetch_sub(1, std::memory_order_relaxed);
    queued->task();
    if (first_ == nullptr || clock_.IoNow() < end) continue;
    goes_on_ = true;
    return boost::asio::post(io_, [this] { RunTasks(); });
  }
}

void AsioLoop::SetAlarm(Millis delay) {
  alarm_at_ = clock_.IoNow() + delay;
  // A timer that fires too early is set again: moving it for every submit would cost a system call each.
  if (alarm_at_ < armed_for_) Arm();
}

void AsioLoop::Arm() {
  armed_for_ = alarm_at_;
  timer_.expires_at(armed_for_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    const Turn turn;
    armed_for_ = TimePoint::max();
    if (alarm_at_ == TimePoint::max()) return;
    if (clock_.IoNow() < alarm_at_) return Arm();
    alarm_at_ = TimePoint::max();
    if (on_alarm_) on_alarm_();
  });
}

}  // namespace tocsin::net
