// Progress: one line on a terminal that shows how far a long command is; silent if stderr is not a terminal. One
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace tocsin::cli {

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
