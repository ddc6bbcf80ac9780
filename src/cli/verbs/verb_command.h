// A verb of the server (api/verbs.h) as a command that sends one request and prints its answer. The table of verbs
// gives its arguments, flags, request and summary; what only people need is added here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/verbs.h"
#include "cli/arguments.h"

namespace tocsin::cli {

/// The verb of this command. The table has it.
const api::Verb& VerbNamed(std::string_view command);

/// TOPIC and ID as in the verb's path, PAYLOAD, TOKEN..., and each other field that is not a flag.
std::vector<Positional> PositionalsOf(const api::Verb& verb);
/// A flag for each field that has one, --file if there is a payload, and the settings of topics.
std::vector<Flag> FlagsOf(const api::Verb& verb);
/// The flag of one field, which the verb has.
Flag FlagOf(const api::Verb& verb, std::string_view field);

struct Request {
  std::string target;  // path and query
  json::object body;
};
/// Leaves out the field `without`.
Result<Request> RequestOf(const api::Verb& verb, const Arguments& arguments, std::string_view without = {});

/// The server's answer. An error if it does not answer for each delivery token.
Result<json::object> Send(Context& context, const api::Verb& verb, const Request& request,
                          std::optional<Millis> limit = std::nullopt);

/// Asks on a terminal. A usage error if stdin is not a terminal.
Result<bool> Confirm(const std::string& question);

/// For calls that look at all jobs of a topic.
constexpr Millis kLongCall{600'000};

struct VerbExtras {
  std::string_view details;
  std::vector<Flag> flags;  // not of the verb's fields
  std::vector<Example> examples;
  std::string_view no;        // as of Command
  std::string_view question;  // to ask first, unless --yes is given; {} is the topic
  std::string_view list;      // the list in the answer; with --json each of its objects is a line
  /// A line for success: {TOPIC} is an argument, {left} a number in the answer, {purged|job is|jobs are} a number with
  /// the words that follow it.
  std::string_view done;
  /// Prints the answer for people; without it, its outcome, `done` and its fields are printed.
  void (*print)(Context& context, const Arguments& arguments, const json::object& answer) = nullptr;
  /// Runs the command, if one request is not all.
  Result<int> (*run)(Context& context, const Arguments& arguments) = nullptr;
};

/// The command of this name, which the table of verbs has.
Command VerbCommand(std::string_view name, VerbExtras extras);

}  // namespace tocsin::cli
