// One delivery as one run of a command: the payload on its stdin, the other fields in its environment. Used by the
// thread that holds the delivery.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/process/process.h"
#include "cli/transport/api.h"

namespace tocsin::cli {

struct JobRun {
  int status = 0;         // as waitpid has it
  bool killed = false;    // because of `kill_fd`
  std::string last_line;  // of its stderr
};

struct JobWatch {
  const Clock& clock;
  int kill_fd = -1;  // readable: the command is killed
  Millis tick{};     // how often `on_tick` is called while it runs
  std::function<void()> on_tick;
  std::function<void(std::string_view)> on_stderr;
  std::function<bool()> may_read;  // whether `on_stderr` can take more; if not, the command waits
  bool out_to_err = false;         // its stdout goes to our stderr
};

/// An error: the command could not be started.
Result<JobRun> RunJob(const std::vector<std::string>& words, std::string_view topic, const json::object& job,
                      const JobWatch& watch);

/// The variables that a command gets for a job, in addition to our own: NAME=value.
std::vector<std::string> JobVariables(std::string_view topic, const json::object& job);

/// The last line that has anything in it, of a text that comes in parts; bounded.
class LastLine {
 public:
  void Add(std::string_view part);
  std::string text() const { return current_.empty() ? last_ : current_; }

 private:
  std::string current_;
  std::string last_;
};

/// What a worker and its commands write to stderr. Any thread adds; the main thread writes, when stderr can take it. So
/// if nobody reads stderr, leases are still extended and signals still handled.
///
/// Bounded: above kFullBytes the worker reads no command's stderr, so that the command waits as it would without us;
/// above kMaxBytes the queue drops what is added.
class StderrQueue {
 public:
  static constexpr size_t kFullBytes = size_t{64} << 10;
  static constexpr size_t kMaxBytes = size_t{4} << 20;

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
  const Descriptor wake_ = MakeEvent();
  mutable std::mutex mutex_;  // never held while writing
  std::string text_;
};

}  // namespace tocsin::cli
