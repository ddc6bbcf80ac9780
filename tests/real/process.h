// Process: one program that a test runs beside itself, in a folder of its own. It leads its own session and is killed
// with the thread that started it, whatever ends the test; its output is a file, shown if a start fails.
//
// Threads: one at a time. Start it on a thread that outlives it: the kernel kills it when that thread ends.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/time.h"

namespace tocsin::real {

/// A folder under $TMPDIR that is removed, with all in it, at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Where a program of the PATH (or of /usr/sbin) is; empty if it is not installed.
std::string FindProgram(std::string_view name);

/// Tries until `condition` holds or the time is over; whether it held. A short wait lies between two tries.
bool WaitFor(Millis within, const std::function<bool()>& condition);

void WriteFile(const std::filesystem::path& file, std::string_view text);

class Process {
 public:
  /// `arguments` begins with the program. Its output is appended to `log`.
  Process(std::vector<std::string> arguments, std::filesystem::path folder, std::filesystem::path log);
  ~Process();  // SIGKILL
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Starts it, also again after it ended; returns when `ready` holds. An Error (with the end of its output) if it
  /// ends first, or is not ready in time: then it does not run.
  Status Start(const std::function<bool()>& ready, Millis within = Millis(30'000));
  /// Runs it to its end; an Error unless that is status 0.
  Status Run(Millis within = Millis(30'000));

  /// SIGTERM, and waits for its end; SIGKILL after ten seconds. Nothing if it does not run.
  void Stop();
  void Kill();
  void Pause();     // SIGSTOP; returns when it stands still
  void Continue();  // SIGCONT

  bool running();
  bool paused() const { return paused_; }
  pid_t pid() const { return pid_; }
  /// The end of its output.
  std::string Output() const;

 private:
  Status Spawn();
  /// Whether it ended within the time; its status is in status_ then.
  bool Ended(Millis within);
  void Forget();

  std::vector<std::string> arguments_;
  std::filesystem::path folder_;
  std::filesystem::path log_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  int status_ = 0;  // of waitpid
  bool paused_ = false;
};

}  // namespace tocsin::real
