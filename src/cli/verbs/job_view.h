// A job as the server shows it, for the eye. Functions without state.
#pragma once

#include <string>

#include "cli/context.h"

namespace tocsin::cli {

/// All that is known of it, a line each. `now` is the server's.
void PrintJob(Output& out, const json::object& job, Time now);

/// "2026-12-01T09:00:00+08:00 (in 29m 58s)", or what it waits for instead.
std::string DueOf(const json::object& job, Time now);

/// The payload on one line; bytes that are no text are counted rather than shown.
std::string PayloadPreview(const json::object& job);

}  // namespace tocsin::cli
