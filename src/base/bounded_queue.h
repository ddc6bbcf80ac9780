// BoundedQueue: the mailbox of a Loop. Any thread pushes; the loop's own thread drains.
//
// The mutex is held only to append or to swap vectors, and the consumer hands its emptied vector back, so that nothing
// is allocated once the vectors have grown to the usual burst.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "base/loop.h"

namespace tocsin {

enum class Pushed : uint8_t {
  kRefused,  // full: nothing happened
  kFirst,    // the queue was empty: the consumer has to be woken
  kMore,     // the consumer has been woken already
};

class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  /// For new requests.
  [[nodiscard]] Pushed TryPush(Task task) {
    const std::scoped_lock lock(mutex_);
    return tasks_.size() >= capacity_ ? Pushed::kRefused : Append(std::move(task));
  }

  /// For replies, whose number is bounded by the requests that caused them: never refused.
  [[nodiscard]] Pushed Push(Task task) {
    const std::scoped_lock lock(mutex_);
    return Append(std::move(task));
  }

  /// Fills the empty vector `out` with all that waits, oldest first.
  void Drain(std::vector<Task>& out) {
    const std::scoped_lock lock(mutex_);
    tasks_.swap(out);
  }

  size_t size() const {
    const std::scoped_lock lock(mutex_);
    return tasks_.size();
  }

 private:
  Pushed Append(Task task) {
    tasks_.push_back(std::move(task));
    return tasks_.size() == 1 ? Pushed::kFirst : Pushed::kMore;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
};

}  // namespace tocsin
