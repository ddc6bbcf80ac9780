#include "cli/verbs/outcome.h"

#include <algorithm>

#include "cli/command.h"
#include "cli/text/human_time.h"

namespace tocsin::cli {
namespace {

struct Outcome {
  std::string_view name;
  std::string_view text;
  int status;
};

constexpr Outcome kOutcomes[] = {
    {"accepted", "", kExitOk},
    {"duplicate", "", kExitOk},
    {"amended", "", kExitOk},
    {"cancelled", "it will never be delivered", kExitOk},
    {"confirmed", "the receiver has taken the probe", kExitOk},
    {"counted", "", kExitOk},
    {"dead", "it is a dead letter now", kExitOk},
    {"dropped", "the topic is removed with all its jobs", kExitOk},
    {"fired", "it is due now", kExitOk},
    {"ok", "", kExitOk},
    {"repeated", "this event was counted before", kExitOk},

    {"conflict", "the id is stored with other content", kExitNo},
    {"finished", "it is done, cancelled or dead; nothing changed", kExitNo},
    {"in_flight", "a consumer has it; nothing changed", kExitNo},
    {"not_counted", "the job does not wait for events, or has fired already", kExitNo},
    {"refused", "the receiver does not want it; a job would become a dead letter", kExitNo},
    {"retry", "the receiver has not confirmed; a job would be tried again", kExitNo},
    {"stale", "not the delivery token of the current lease; nothing changed", kExitNo},
    {"unknown", "no such job is stored", kExitNo},

    {"over_capacity", "nothing was stored; the same call may succeed later", kExitCannotRun},
    {"overloaded", "nothing was done; the same call may succeed later", kExitCannotRun},
    {"storage_full", "nothing was stored; the same call may succeed later", kExitCannotRun},
};

Outcome OutcomeOf(const json::object& object) {
  const auto* const row = std::ranges::find(kOutcomes, TextOf(object, "outcome"), &Outcome::name);
  return row == std::end(kOutcomes) ? Outcome{.name = {}, .text = {}, .status = kExitNo} : *row;
}

}  // namespace

Result<int> StatusOf(const json::object& object) {
  if (!object.contains("outcome")) return kExitOk;
  const Outcome outcome = OutcomeOf(object);
  if (outcome.status == kExitCannotRun) return Fail(Code::kOverloaded, "{}: {}", outcome.name, outcome.text);
  return outcome.status;
}

Result<int> StatusOf(const json::array& list) {
  int highest = kExitOk;
  for (const json::value& one : list) {
    const auto status = one.is_object() ? StatusOf(one.get_object()) : kExitNo;
    if (!status) return status;
    highest = std::max(highest, *status);
  }
  return highest;
}

std::string OutcomeText(const Output& out, const json::object& object) {
  const Outcome outcome = OutcomeOf(object);
  std::string text = out.Paint(outcome.status == kExitOk && outcome.name != "dead" ? Colour::kGreen : Colour::kYellow,
                               Printable(TextOf(object, "outcome")));
  if (!outcome.text.empty()) text += fmt::format(": {}", outcome.text);
  if (const int64_t due_ms = IntegerOf(object, "due_ms"); due_ms > 0) {
    text += fmt::format(", due {}", ShowMoment(FromMs(due_ms)));
  }
  return text;
}

}  // namespace tocsin::cli
