// StopSignal: SIGINT and SIGTERM as a descriptor to wait for. Made once, before a command starts threads or processes:
// it blocks the two signals in this thread and all threads that it starts later.
#pragma once

#include "base/time.h"
#include "cli/process/descriptor.h"

namespace tocsin::cli {

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

}  // namespace tocsin::cli
