#include "model/names.h"

namespace tocsin {

std::string_view NameOf(SubmitOutcome outcome) {
  switch (outcome) {
    case SubmitOutcome::kAccepted:
      return "accepted";
    case SubmitOutcome::kDuplicate:
      return "duplicate";
    case SubmitOutcome::kConflict:
      return "conflict";
    case SubmitOutcome::kInFlight:
      return "in_flight";
    case SubmitOutcome::kOverCapacity:
      return "over_capacity";
    case SubmitOutcome::kStorageFull:
      return "storage_full";
    case SubmitOutcome::kOverloaded:
      return "overloaded";
  }
  return "unknown";
}

std::string_view NameOf(AmendOutcome outcome, std::string_view done) {
  switch (outcome) {
    case AmendOutcome::kDone:
      return done;
    case AmendOutcome::kInFlight:
      return "in_flight";
    case AmendOutcome::kFinished:
      return "finished";
    case AmendOutcome::kOverCapacity:
      return "over_capacity";
    case AmendOutcome::kStorageFull:
      return "storage_full";
    case AmendOutcome::kOverloaded:
      return "overloaded";
    case AmendOutcome::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view NameOf(CountOutcome outcome) {
  switch (outcome) {
    case CountOutcome::kCounted:
      return "counted";
    case CountOutcome::kFired:
      return "fired";
    case CountOutcome::kRepeated:
      return "repeated";
    case CountOutcome::kNotCounted:
      return "not_counted";
    case CountOutcome::kFinished:
      return "finished";
    case CountOutcome::kOverloaded:
      return "overloaded";
    case CountOutcome::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view NameOf(SettleOutcome outcome) {
  switch (outcome) {
    case SettleOutcome::kOk:
      return "ok";
    case SettleOutcome::kDead:
      return "dead";
    case SettleOutcome::kOverloaded:
      return "overloaded";
    case SettleOutcome::kStale:
      break;
  }
  return "stale";
}

bool IsStored(SubmitOutcome outcome) {
  return outcome == SubmitOutcome::kAccepted || outcome == SubmitOutcome::kDuplicate;
}

Code CodeOf(SubmitOutcome outcome) {
  switch (outcome) {
    case SubmitOutcome::kConflict:
    case SubmitOutcome::kInFlight:
      return Code::kConflict;
    case SubmitOutcome::kOverCapacity:
      return Code::kOverCapacity;
    case SubmitOutcome::kStorageFull:
      return Code::kStorageFull;
    case SubmitOutcome::kOverloaded:
      return Code::kOverloaded;
    case SubmitOutcome::kAccepted:
    case SubmitOutcome::kDuplicate:
      break;
  }
  return Code::kInternal;
}

std::optional<Error> RefusalOf(AmendOutcome outcome) {
  switch (outcome) {
    case AmendOutcome::kOverCapacity:
      return Error{Code::kOverCapacity, "the larger payload does not fit into the topic or the node", "payload"};
    case AmendOutcome::kStorageFull:
      return Error{Code::kStorageFull, "the disk is full; nothing was changed", {}};
    case AmendOutcome::kOverloaded:
      return Error{Code::kOverloaded, "the job's shard has too much to do; nothing was changed", {}};
    case AmendOutcome::kDone:
    case AmendOutcome::kInFlight:
    case AmendOutcome::kFinished:
    case AmendOutcome::kUnknown:
      break;
  }
  return std::nullopt;
}

}  // namespace tocsin
