// StopSignal: SIGINT and SIGTERM as something to wait for. Made once, before a command starts threads or processes; the
// two signals are blocked from then on, in all threads that come later.
#pragma once

#include "base/time.h"
#include "cli/process/descriptor.h"

namespace tocsin::cli {

class StopSignal {
 public:
  StopSignal();

  /// Waits up to `limit` for one; whether it came. Each is told once.
  bool Wait(Millis limit);
  /// Readable when one has come.
  int fd() const { return fd_.get(); }
  /// Takes one that has come.
  bool Take() { return Wait(Millis(0)); }

 private:
  Descriptor fd_;
};

}  // namespace tocsin::cli
