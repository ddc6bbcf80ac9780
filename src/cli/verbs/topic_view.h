// A topic as the server shows it, for the eye. Functions without state.
#pragma once

#include "cli/context.h"

namespace tocsin::cli {

/// Its settings, and its figures where the answer has them; a line each. With --json, the object.
void PrintTopic(Output& out, const json::object& topic);

/// "12ms": the value at a quantile of `lateness_ms`, or nothing where nothing was delivered yet.
std::string LatenessOf(const json::object& topic, std::string_view quantile);

}  // namespace tocsin::cli
