// What export and import share: the lines of a file, and how far a run is. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "cli/transport/api.h"

namespace tocsin::cli {

/// A job as the server shows it, and its topic. docs/operations.md describes the lines.
json::object TransferLine(std::string_view topic, const json::object& shown);

struct TransferJob {
  std::string topic;
  json::object job;  // to submit
};

/// Whether jobs lose their past: state, attempts, reason and times.
enum class AsNew : uint8_t { kNo, kYes };

/// From line `number` of a file: a job as a server shows it, or as a submit takes it. `topic` wins over the line's own,
/// unless it is empty. A job without an id gets one made of its line and number, so that submitting it again is a
/// duplicate and never a second job. kInvalidArgument if the line is not an object, names no topic, or is a job that is
/// done or cancelled. The server checks everything else.
Result<TransferJob> ParseTransferLine(std::string_view line, int64_t number, std::string_view topic, AsNew as_new);

/// How far a long transfer is, in a small file beside the data (FILE.progress), so that a run that was interrupted can
/// continue. Replaced in one step: a reader sees the old or the new state.
class Checkpoint {
 public:
  /// Beside `file`.
  explicit Checkpoint(const std::string& file) : path_(file + ".progress") {}

  const std::string& path() const { return path_; }
  /// Nothing if there is none. kCorrupt if it cannot be parsed.
  Result<std::optional<json::object>> Load() const;
  Status Save(const json::object& state) const;
  /// The transfer is over.
  Status Remove() const;

 private:
  const std::string path_;
};

/// One line on a terminal that shows how far a long command is; silent if stderr is not a terminal.
class Progress {
 public:
  /// `verb`: what was done to the jobs, such as exported.
  Progress(const Clock& clock, std::string verb);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `jobs` since the start; `part` of the whole, from 0 to 1, or less than 0 if it is not known.
  void Show(int64_t jobs, double part);
  /// Removes the line; call it before writing anything else.
  void Clear();

 private:
  const Clock& clock_;
  const std::string verb_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point shown_;
  bool visible_ = false;
};

/// "exported 12,000 jobs  45,000/s  [####    ] 48 %"
std::string ProgressLine(const std::string& verb, int64_t jobs, double part, std::chrono::nanoseconds took);

/// 12,000
std::string Grouped(int64_t number);

}  // namespace tocsin::cli
