// Signals, and Process: a program that a command started, with pipes to it. One thread uses it; several
// threads may each have one.
//
// It leads a session of its own: Ctrl-C on the terminal then reaches only us, and the program cannot wait for ever for
// input from the terminal. It gets SIGTERM when the thread that started it dies. Destroying a Process kills it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/time.h"

namespace tocsin::cli {

/// An event of the system: readable once Signal was called.
Descriptor MakeEvent();
void Signal(const Descriptor& event);

/// SIGINT and SIGTERM as a descriptor to wait for. Made once, before a command starts threads or processes: it blocks
/// the two signals in this thread and all threads that it starts later.
class StopSignal {
 public:
  StopSignal();

  /// Waits up to `limit` for a signal and takes it; true if one came.
  bool Wait(Millis limit);
  /// Readable when one has come.
  int fd() const { return fd_.get(); }
  /// Takes a signal if one has come.
  bool Take() { return Wait(Millis(0)); }

 private:
  Descriptor fd_;
};

/// What this process is called as a consumer unless the user names it: its host and process id.
std::string ConsumerName();

struct Program {
  std::vector<std::string> words;        // the first is looked for in PATH
  std::vector<std::string> environment;  // NAME=value
  // Pipes to or from it. Without one it has no input, and our own output.
  bool pipe_in = false;
  bool pipe_out = false;
  bool pipe_err = false;
  bool out_to_err = false;  // its stdout is our stderr
};

class Process {
 public:
  /// If it cannot be started: kNotFound if the program is at fault, so that a retry will fail too, else kIo.
  static Result<Process> Start(const Program& program);
  Process(Process&&) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  /// Sends a signal to its whole process group.
  void Kill(int signal) const;
  /// Waits until it ends; the status as waitpid gives it.
  int Wait();

  Descriptor in;
  Descriptor out;
  Descriptor err;
  Descriptor ended;  // readable when it has ended

 private:
  explicit Process(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

/// "exit status 3", "signal 9 (Killed)".
std::string ShowStatus(int status);
/// Our own environment, without the variables for which `drop` is true.
std::vector<std::string> EnvironmentWithout(const std::function<bool(std::string_view name)>& drop);

}  // namespace tocsin::cli
