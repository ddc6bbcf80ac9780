// What states and outcomes are called on every wire, and which of them are errors. Pure.
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
/// `done`: what kDone is called here.
std::string_view NameOf(AmendOutcome outcome, std::string_view done);
std::string_view NameOf(CountOutcome outcome);
std::string_view NameOf(SettleOutcome outcome);

/// Accepted, or stored already.
bool IsStored(SubmitOutcome outcome);
/// The error that stands for an outcome which is not stored.
Code CodeOf(SubmitOutcome outcome);
/// The error that stands for an outcome which says nothing of the job.
std::optional<Error> RefusalOf(AmendOutcome outcome);

}  // namespace tocsin
