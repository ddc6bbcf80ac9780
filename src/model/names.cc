#include "model/names.h"

#include <algorithm>

namespace tocsin {
namespace {

// In the order of the enums.
constexpr std::string_view kSubmitNames[] = {"accepted",      "duplicate",    "conflict",   "in_flight",
                                             "over_capacity", "storage_full", "overloaded", "unavailable"};
constexpr Code kSubmitCodes[] = {Code::kInternal,     Code::kInternal,    Code::kConflict,   Code::kConflict,
                                 Code::kOverCapacity, Code::kStorageFull, Code::kOverloaded, Code::kUnavailable};
constexpr std::string_view kAmendNames[] = {"done",         "in_flight",         "finished",
                                            "unknown",      "changed_meanwhile", "over_capacity",
                                            "storage_full", "overloaded",        "unavailable"};
constexpr std::string_view kCountNames[] = {"counted",  "fired",   "repeated",   "not_counted",
                                            "finished", "unknown", "overloaded", "unavailable"};
constexpr std::string_view kSettleNames[] = {"ok", "dead", "stale", "overloaded", "unavailable"};

/// An outcome that a store made up has the last value.
template <class T, size_t kSize, class Outcome>
constexpr T At(const T (&values)[kSize], Outcome outcome) {
  return values[std::min(static_cast<size_t>(outcome), kSize - 1)];
}

}  // namespace

std::string_view NameOf(SubmitOutcome outcome) { return At(kSubmitNames, outcome); }
std::string_view NameOf(AmendOutcome outcome, std::string_view done) {
  return outcome == AmendOutcome::kDone ? done : At(kAmendNames, outcome);
}
std::string_view NameOf(CountOutcome outcome) { return At(kCountNames, outcome); }
std::string_view NameOf(SettleOutcome outcome) { return At(kSettleNames, outcome); }

bool IsStored(SubmitOutcome outcome) {
  return outcome == SubmitOutcome::kAccepted || outcome == SubmitOutcome::kDuplicate;
}

Code CodeOf(SubmitOutcome outcome) { return At(kSubmitCodes, outcome); }

std::optional<Error> RefusalOf(AmendOutcome outcome) {
  if (outcome == AmendOutcome::kOverCapacity) {
    return Error{Code::kOverCapacity, "the larger payload does not fit into the topic or the node", "payload"};
  }
  if (outcome == AmendOutcome::kStorageFull) {
    return Error{Code::kStorageFull, "the disk is full; nothing was changed", {}};
  }
  if (outcome == AmendOutcome::kUnavailable) {
    return Error{Code::kUnavailable, "the store failed for this job; whether it was changed is unknown", {}};
  }
  if (outcome != AmendOutcome::kOverloaded) return std::nullopt;
  return Error{Code::kOverloaded, "the job's shard has too much to do; nothing was changed", {}};
}

std::optional<Error> RefusalOf(CountOutcome outcome) {
  if (outcome == CountOutcome::kUnavailable) {
    return Error{Code::kUnavailable, "the store failed for this job; whether the event was counted is unknown", {}};
  }
  if (outcome != CountOutcome::kOverloaded) return std::nullopt;
  return Error{Code::kOverloaded, "the job's shard has too much to do; nothing was counted", {}};
}

}  // namespace tocsin
