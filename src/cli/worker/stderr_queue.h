// StderrQueue: what a worker and its commands write to stderr. Any thread adds; the main thread writes, when stderr can
// take it. So a stderr that nobody reads delays neither the extending of a lease nor the handling of a signal.
//
// Bounded: above kFullBytes the worker reads no command's stderr, so that the command waits as it would without us;
// above kMaxBytes the queue drops what is added.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/time.h"
#include "cli/process/descriptor.h"

namespace tocsin::cli {

class StderrQueue {
 public:
  static constexpr size_t kFullBytes = size_t{64} << 10;
  static constexpr size_t kMaxBytes = size_t{4} << 20;

  StderrQueue();

  void Add(std::string_view text);
  bool Full() const;

  // For the main thread.
  /// Readable when there is something new to write.
  int wake_fd() const { return wake_.get(); }
  /// stderr if something is left to write, else -1; call Write when it is writable.
  int out_fd();
  /// Writes a part that does not block if stderr is writable.
  void Write();
  /// Writes what is left, but waits no longer than `limit` for stderr.
  void Finish(const Clock& clock, Millis limit);

 private:
  const Descriptor wake_;
  mutable std::mutex mutex_;  // never held while writing
  std::string text_;
};

}  // namespace tocsin::cli
