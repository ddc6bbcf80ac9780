// The names of states and outcomes on every wire, and which outcomes are errors. Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "model/job.h"

namespace tocsin {

// In the order of the enums.
constexpr std::string_view kStateNames[] = {"scheduled", "leased", "dead", "done", "cancelled"};
constexpr std::string_view kTriggerNames[] = {"time", "count", "either"};

std::string_view NameOf(SubmitOutcome outcome);
/// `done`: the name of kDone for this call.
std::string_view NameOf(AmendOutcome outcome, std::string_view done);
std::string_view NameOf(CountOutcome outcome);
std::string_view NameOf(SettleOutcome outcome);

/// Accepted, or stored already.
bool IsStored(SubmitOutcome outcome);
/// The error for an outcome that stored nothing.
Code CodeOf(SubmitOutcome outcome);
/// The error for an outcome that says nothing about the job.
std::optional<Error> RefusalOf(AmendOutcome outcome);

}  // namespace tocsin
