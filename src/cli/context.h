// What a command works with. Made by main for one command; one thread.
#pragma once

#include <string>

#include "base/clock.h"
#include "cli/text/output.h"
#include "cli/transport/api.h"

namespace tocsin::cli {

struct Context {
  const Clock& clock;  // of this machine: the server's may be another one (ServerNow)
  Output& out;
  Api& api;
};

/// The server's clock, which due times are compared with: it may be a virtual one. This machine's where the server does
/// not tell.
Time ServerNow(Context& context);

/// Asks on a terminal; `yes` answers for the user. A usage error where nobody can be asked.
Result<bool> Confirm(bool yes, const std::string& question);

/// All of a file, or of stdin where the path is "-".
Result<std::string> ReadAll(const std::string& path);

}  // namespace tocsin::cli
