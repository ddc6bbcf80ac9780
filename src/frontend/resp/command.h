// Command: one command of RESP. Most come from the table of verbs (api/verbs.h); those that only RESP has are in
// files of their own in commands/. Call: one command on its way, which lives until `run` returns.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "api/syntax.h"
#include "auth/access.h"
#include "base/result.h"

namespace tocsin::resp {

class Session;
struct Call;

struct Command {
  std::string_view name;         // in capitals
  std::string_view syntax = {};  // of what follows the name
  std::string_view summary;      // one line, for COMMAND DOCS and docs/resp.md
  size_t args_min = 0;           // after the name
  size_t args_max = 0;
  auth::Access access = auth::Access::kKnown;  // a scope on a topic is asked for the first argument
  /// Commands pipelined after it wait for its answer. The other commands go into batches, or answer at once.
  bool holds = false;
  bool waits = false;  // it is begun when everything before it is answered
  bool writes = false;
  Status (*run)(Call& call) = nullptr;  // answers, or returns the error to answer with
  const api::Verb* verb = nullptr;
};

using api::kAnyNumber;

struct Call {
  const Command& command;
  std::span<const std::string_view> args;  // after the name
  Session& session;

  std::string_view topic() const { return args.front(); }
};

/// All of them, by name.
std::span<const Command> Commands();
/// The name may be in any case. Null if there is none.
const Command* FindCommand(std::string_view name);
/// The error for a command that does not exist, with what a user of Redis may have wanted.
Error UnknownCommand(std::string_view name);

}  // namespace tocsin::resp
