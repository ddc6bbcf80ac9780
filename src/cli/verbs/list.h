// Pages of jobs: what `list` and `dead list` share.
#pragma once

#include "cli/arguments.h"
#include "cli/context.h"

namespace tocsin::cli {

/// --limit and --all.
std::vector<Flag> PageFlags();

/// Shows the jobs of TOPIC in this state.
Result<int> ListJobs(Context& context, const Arguments& arguments, const std::string& state);

}  // namespace tocsin::cli
