// The names of states and outcomes on every wire, and which outcomes are errors. Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "model/job.h"

namespace tocsin {

// In the order of the enums.
constexpr std::string_view kStateNames[] = {"scheduled", "leased", "dead", "done", "cancelled"};
/// The same, and `ready`: what a selector takes.
constexpr std::string_view kSelectStateNames[] = {"scheduled", "leased", "dead", "done", "cancelled", "ready"};
constexpr std::string_view kSortNames[] = {"none", "due", "created"};
constexpr std::string_view kTallyByNames[] = {"nothing", "state", "reason", "key", "header", "minute"};
constexpr std::string_view kActionNames[] = {"cancel", "reschedule", "redrive", "purge", "fire", "attempts"};
/// How a list of topics is sorted: mostly names of figures.
constexpr std::string_view kTopicSortNames[] = {"name",  "ready",    "scheduled", "leased",  "dead",
                                                "bytes", "accepted", "delivered", "lateness"};
constexpr std::string_view kOrderNames[] = {"asc", "desc"};
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
std::optional<Error> RefusalOf(CountOutcome outcome);

/// The outcome for one item of a batch, if a store answered this error for it and something else for others.
template <class Outcome>
Outcome FailedOutcome(Code code) {
  if constexpr (requires { Outcome::kStorageFull; }) {
    if (code == Code::kStorageFull) return Outcome::kStorageFull;
  }
  return code == Code::kOverloaded ? Outcome::kOverloaded : Outcome::kUnavailable;
}

/// Whether an error says that nothing was done. Otherwise the outcome is unknown.
constexpr bool NothingWasDone(Code code) {
  return code == Code::kStorageFull || code == Code::kOverloaded || code == Code::kTopicNotFound;
}

}  // namespace tocsin
