// A command that sends one request of the table of verbs (api/verbs.h) and prints its answer. The table gives its
// arguments, flags, request and summary; what only people need is added here.
#pragma once

#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/context.h"

namespace tocsin::cli {

struct VerbExtras {
  std::string_view details;
  std::vector<Flag> flags;  // not of the verb's fields
  std::vector<Example> examples;
  std::string_view no;        // as of Command
  std::string_view question;  // to ask first, unless --yes is given; {} is the topic
  std::string_view list;      // the list in the answer; with --json each of its objects is a line
  std::string_view done;      // a line for success: {TOPIC} is an argument, {purged} a number in the answer
  /// Prints the answer for people; without it, its outcome, `done` and its fields are printed.
  void (*print)(Context& context, const Arguments& arguments, const json::object& answer) = nullptr;
  /// Runs the command, if one request is not all.
  Result<int> (*run)(Context& context, const Arguments& arguments) = nullptr;
};

/// The command of this name, which the table of verbs has.
Command VerbCommand(std::string_view name, VerbExtras extras);

}  // namespace tocsin::cli
