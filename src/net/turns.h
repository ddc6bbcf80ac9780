// Turns: how long the handlers of one shard's loop keep its thread. Meanwhile everything else on the shard waits: due
// jobs and other connections. The longest turn is a metric; turns of more than kLong are counted and, now and then,
// logged.
//
// A long turn is a long computation, or the thread had to wait, most often for a processor that others use. To tell
// which, we look at the thread's CPU time too. That is a system call, so it is read once a millisecond at most, and the
// CPU time of a turn is too high by up to a millisecond.
//
// Threads: Turns and Turn belong to the loop's thread.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "metrics/registry.h"

namespace tocsin::net {

class Turns {
 public:
  static constexpr Millis kLong{5};

  Turns(metrics::Registry& metrics, size_t shard);

  /// While it lives, `turns` measures what the calling thread does.
  class Measuring {
   public:
    explicit Measuring(Turns& turns) { current = &turns; }
    ~Measuring() { current = nullptr; }
    Measuring(const Measuring&) = delete;
    Measuring& operator=(const Measuring&) = delete;
  };

 private:
  friend class Turn;

  void Begin();
  void End();
  void NoteLong(IoTime now, std::chrono::nanoseconds took);

  /// Of the calling thread; null: not measured, or a turn is under way.
  static inline constinit thread_local Turns* current = nullptr;

  const size_t shard_;
  const std::shared_ptr<metrics::Gauge> longest_;
  const std::shared_ptr<metrics::Gauge> longest_cpu_;
  const std::shared_ptr<metrics::Counter> computed_;
  const std::shared_ptr<metrics::Counter> waited_;
  std::chrono::nanoseconds longest_took_{0};
  std::chrono::nanoseconds longest_computed_{0};
  IoTime begun_;
  std::chrono::nanoseconds cpu_time_{0};  // of the thread, when it was last read
  IoTime read_cpu_at_;
  IoTime log_at_;
};

/// One turn, as long as it lives. Every function that Asio calls on a shard's thread makes one first. A turn within
/// another is a part of it.
class Turn {
 public:
  Turn() : turns_(std::exchange(Turns::current, nullptr)) {
    if (turns_ != nullptr) turns_->Begin();
  }
  ~Turn() {
    if (turns_ == nullptr) return;
    turns_->End();
    Turns::current = turns_;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Turns* const turns_;
};

/// `handler` of Asio, as a turn.
template <class F>
auto AsTurn(F handler) {
  return [handler = std::move(handler)](auto&&... args) mutable {
    const Turn turn;
    handler(std::forward<decltype(args)>(args)...);
  };
}

}  // namespace tocsin::net
