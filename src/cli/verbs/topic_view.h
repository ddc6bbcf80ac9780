// A topic as the server shows it, for people. Functions without state.
#pragma once

#include "cli/arguments.h"
#include "cli/context.h"

namespace tocsin::cli {

/// Its settings, and its figures if the answer has them; a line each.
void PrintTopic(Context& context, const Arguments& arguments, const json::object& topic);

/// A line for each topic of the answer.
void PrintTopics(Context& context, const Arguments& arguments, const json::object& answer);

/// "12ms": the value at a quantile of `lateness_ms`, or nothing if nothing was delivered yet.
std::string LatenessOf(const json::object& topic, std::string_view quantile);

}  // namespace tocsin::cli
