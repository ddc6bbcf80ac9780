// Gate: what a background task stops behind. A task holds a Pass while it touches what the gate protects; after Close
// nobody enters, and nobody is inside. Thread-safe. Close must not be called by a thread that holds a Pass.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

namespace tocsin {

class Gate {
 public:
  class [[nodiscard]] Pass {
   public:
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->Leave();
    }
    /// False where the gate was closed.
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class Gate;
    explicit Pass(Gate* gate) : gate_(gate) {}
    Gate* gate_;
  };

  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  Pass Enter() {
    const std::scoped_lock lock(mutex_);
    if (closed_) return Pass(nullptr);
    ++inside_;
    return Pass(this);
  }

  /// Returns when all have left. May be called more than once.
  void Close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    left_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  void Leave() {
    // Notified under the lock: whoever waits in Close may destroy the gate as soon as it can take the lock.
    const std::scoped_lock lock(mutex_);
    if (--inside_ == 0) left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable left_;
  size_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace tocsin
