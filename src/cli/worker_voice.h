// Voice: what a worker and its commands say on stderr. Any thread says; the main thread writes, when stderr takes it.
// So a stderr that nobody reads stops neither a lease from being extended nor a signal from being heard.
//
// Bounded: behind kFullBytes no command's stderr is read any more, so that the command waits as it would without us;
// behind kMaxBytes messages are dropped.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/time.h"
#include "cli/descriptor.h"

namespace tocsin::cli {

class Voice {
 public:
  static constexpr size_t kFullBytes = size_t{64} << 10;
  static constexpr size_t kMaxBytes = size_t{4} << 20;

  Voice();

  void Say(std::string_view text);
  bool Full() const;

  // For the main thread.
  /// Readable when there is something new to write.
  int wake_fd() const { return wake_.get(); }
  /// stderr where something is left to write, else -1; to be waited for until it is writable.
  int out_fd();
  /// Writes a part that does not block where stderr is writable.
  void Write();
  /// Writes what is left, but waits no longer than `limit` for stderr.
  void Finish(const Clock& clock, Millis limit);

 private:
  const Descriptor wake_;
  mutable std::mutex mutex_;  // never held while writing
  std::string text_;
};

}  // namespace tocsin::cli
