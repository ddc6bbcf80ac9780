// Loop: one thread's run loop, as the layers above see it. The server's runs on an Asio io_context (src/net); tests and
// simulations drive one by hand. A Loop belongs to one shard.
//
// Thread-safe: Post, TryPost, InThread. The rest is for the loop's own thread.
#pragma once

#include <functional>

#include "base/time.h"

namespace tocsin {

using Task = std::move_only_function<void()>;

class Loop {
 public:
  virtual ~Loop() = default;

  /// Runs `task` on the loop's thread, soon, in the order of posting. For replies and notices, whose number is bounded
  /// by the requests that caused them: never refused.
  virtual void Post(Task task) = 0;

  /// Post for new requests, through the bounded mailbox. False, and nothing happens, when it is full.
  [[nodiscard]] virtual bool TryPost(Task task) = 0;

  virtual bool InThread() const = 0;

  /// Runs the alarm handler once after `delay`, instead of any alarm set before.
  virtual void SetAlarm(Millis delay) = 0;
  virtual void OnAlarm(Task handler) = 0;
};

}  // namespace tocsin
