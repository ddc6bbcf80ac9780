// Connection: the base of both doors' sessions. Lives on one loop, and that loop's thread alone uses it.
//
// Invariant: no exception leaves a connection. Whatever enters one (Asio, a posted task, its server, an answer to one
// of its calls) does so through Guard or Handler. An exception ends that connection alone.
#pragma once

#include <memory>
#include <utility>

#include "metrics/registry.h"

namespace tocsin::net {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  virtual void Close() = 0;

  /// Runs `work`. If that throws, the exception is logged and counted, and the connection is closed when the outermost
  /// Guard ends: the code between the two may still use what Close gives back.
  template <class F>
  void Guard(F&& work) noexcept {
    const bool outermost = !std::exchange(guarded_, true);
    try {
      std::forward<F>(work)();
    } catch (...) {
      Caught();
    }
    if (!outermost) return;
    guarded_ = false;
    if (failed_) Close();
  }

  /// `work` as a handler of Asio or a task of the loop: guarded, and keeps the connection alive.
  template <class F>
  auto Handler(F work) {
    return [self = shared_from_this(), work = std::move(work)](auto&&... args) mutable {
      self->Guard([&] { work(std::forward<decltype(args)>(args)...); });
    };
  }

 protected:
  explicit Connection(metrics::Counter& exceptions) : exceptions_(exceptions) {}

 private:
  /// Logs and counts the exception that is being handled.
  void Caught() noexcept;

  metrics::Counter& exceptions_;
  bool guarded_ = false;
  bool failed_ = false;
};

/// `work(answer, args...)` as the callback of a call to the service: guarded by the connection that it answers.
template <class Answer, class F>
auto GuardedAnswer(Answer answer, F work) {
  return [answer = std::move(answer), work = std::move(work)](auto&&... args) mutable {
    const std::shared_ptr<Connection> connection = answer.connection();
    connection->Guard([&] { work(answer, std::forward<decltype(args)>(args)...); });
  };
}

/// How often an exception closed a connection of this door ("http" or "resp").
std::shared_ptr<metrics::Counter> ExceptionCounter(metrics::Registry& metrics, std::string door);

}  // namespace tocsin::net
