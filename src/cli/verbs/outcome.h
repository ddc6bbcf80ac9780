// What the outcomes of calls mean for the user: one table for all commands. Functions without state.
#pragma once

#include <string>
#include <string_view>

#include "cli/context.h"

namespace tocsin::cli {

/// The exit status of an object with an outcome: 0 if it has none, 1 for an outcome that this version does not know.
/// kOverloaded if the server could not do it now.
Result<int> StatusOf(const json::object& object);
/// The first error of the objects in the list, or their highest status.
Result<int> StatusOf(const json::array& list);

/// "cancelled: it will never be delivered", in a colour, with the due time if there is one.
std::string OutcomeText(const Output& out, const json::object& object);

}  // namespace tocsin::cli
