// Jobs, topics and outcomes as the server shows them, for people. Functions without state.
#pragma once

#include <string>
#include <string_view>

#include "cli/arguments.h"

namespace tocsin::cli {

/// The fields of a job, a line each. `now` is the server's.
void PrintJob(Output& out, const json::object& job, Time now);
/// "2026-12-01T09:00:00+08:00 (in 29m 58s)", or what it waits for instead.
std::string DueOf(const json::object& job, Time now);
/// The payload on one line; the size of one that is not text.
std::string PayloadPreview(const json::object& job);

/// The settings of a topic, and its figures if the answer has them; a line each.
void PrintTopic(Context& context, const Arguments& arguments, const json::object& topic);
/// A line for each topic of the answer.
void PrintTopics(Context& context, const Arguments& arguments, const json::object& answer);
/// "12ms": the value at a quantile of `lateness_ms`, or nothing if nothing was delivered yet.
std::string LatenessOf(const json::object& topic, std::string_view quantile);

/// The exit status of an object with an outcome: 0 if it has none, 1 for an outcome that this version does not know.
/// kOverloaded if the server could not do it now.
Result<int> StatusOf(const json::object& object);
/// The first error of the objects in the list, or their highest status.
Result<int> StatusOf(const json::array& list);
/// "cancelled: it will never be delivered", in a colour, with the due time if there is one.
std::string OutcomeText(const Output& out, const json::object& object);

}  // namespace tocsin::cli
