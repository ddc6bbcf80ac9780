// What the rows and handlers of several commands share.
#pragma once

#include <span>
#include <string>

#include "cli/arguments.h"
#include "cli/context.h"

namespace tocsin::cli {

inline constexpr Positional kTopic{"TOPIC", "Name of the topic."};
inline constexpr Positional kJobId{"ID", "The job's id, given by the server or by its submitter."};

/// --key, which finds a job that was submitted with its own id and a key.
Flag KeyFlag();
/// --yes, for what cannot be undone.
Flag YesFlag();
/// --in and --at.
std::vector<Flag> DueFlags();
/// --file, beside a positional PAYLOAD.
Flag FileFlag();

std::string JobPathOf(const Arguments& arguments, std::string_view rest = "");

/// Adds delay_ms or due_ms where --in or --at is given.
Status PutDue(json::object& body, const Arguments& arguments);
/// Adds the payload from PAYLOAD or --file, where either is given; "-" is stdin.
Status PutPayloadOf(json::object& body, const Arguments& arguments);

/// What an outcome means for the one who asked.
struct Outcome {
  std::string_view name;
  std::string_view text;
  bool yes = false;  // exit status 0
};

/// Prints the answer {"outcome": ...} of a call about one job: its status is 0 where the outcome's row says yes.
int PrintOutcome(Context& context, const json::object& answer, std::span<const Outcome> outcomes);

}  // namespace tocsin::cli
