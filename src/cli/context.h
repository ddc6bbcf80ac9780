// What a command works with. Made by main for one command; one thread.
#pragma once

#include <string>

#include "base/clock.h"
#include "cli/text/output.h"
#include "cli/transport/api.h"

namespace tocsin::cli {

struct Context {
  const Clock& clock;  // of this machine; the server may have another (ServerNow)
  Output& out;
  Api& api;
};

/// The server's clock, which due times are compared with: it may be a virtual one. This machine's clock if the server
/// does not answer.
Time ServerNow(Context& context);

/// Asks on a terminal, unless `yes` is true. A usage error if stdin is not a terminal.
Result<bool> Confirm(bool yes, const std::string& question);

}  // namespace tocsin::cli
