// A job as the server shows it, for people. Functions without state.
#pragma once

#include <string>

#include "cli/context.h"

namespace tocsin::cli {

/// Its fields, a line each. `now` is the server's.
void PrintJob(Output& out, const json::object& job, Time now);

/// "2026-12-01T09:00:00+08:00 (in 29m 58s)", or what it waits for instead.
std::string DueOf(const json::object& job, Time now);

/// The payload on one line; the size of one that is not text.
std::string PayloadPreview(const json::object& job);

}  // namespace tocsin::cli
