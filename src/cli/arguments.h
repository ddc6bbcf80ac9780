// The words of the command line, parsed against a table of commands. The parser checks values for their kind, so that
// handlers get only well-formed ones.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/commands.h"

namespace tocsin::cli {

/// The values that were given, by name: of a flag without its dashes, or of a positional.
class Arguments {
 public:
  bool Has(std::string_view name) const { return values_.contains(name); }
  /// The accessors below return nothing if the argument is absent; a flag with a fallback never is.
  std::optional<std::string> Text(std::string_view name) const;
  std::optional<int64_t> Number(std::string_view name) const;  // also bytes of a size, ms of a moment
  std::optional<Millis> Duration(std::string_view name) const;
  /// Of a repeated argument, in the order given.
  std::vector<std::string> All(std::string_view name) const;

  /// For the parser: keeps `text` if the flag takes it. A positional has no flag.
  Status Add(std::string_view name, const Flag* flag, std::string text, Time now);

 private:
  struct Value {
    std::string text;
    int64_t number = 0;  // in ms or bytes; 0 for texts
  };
  std::map<std::string, std::vector<Value>, std::less<>> values_;
};

/// What the command line is parsed against.
struct Grammar {
  std::span<const Group> groups;
  std::span<const Flag> global_flags;
  std::function<std::optional<std::string>(std::string_view)> variable;  // of the environment
  Time now;                                                              // for moments such as "tomorrow 09:00"
};

enum class JobAction : uint8_t { kRun, kHelp, kVersion };

struct Parsed {
  JobAction action = JobAction::kRun;
  const Command* command = nullptr;  // of kHelp: null if help is for all, or for `family`
  std::string family;                // of kHelp: the first word of some commands, such as topic
  Arguments arguments;
};

/// An error's message ends with how the command is used.
Result<Parsed> Parse(const Grammar& grammar, const std::vector<std::string>& words);

/// What stands for the flag's value in texts, such as DURATION; nothing for a switch.
std::string_view ValueName(const Flag& flag);

/// "tocsin submit TOPIC [PAYLOAD] [flags]"
std::string UsageOf(const Command& command);

const Command* FindCommand(std::span<const Group> groups, std::string_view name);

/// The commands of all groups.
inline auto CommandsOf(std::span<const Group> groups) {
  return groups | std::views::transform(&Group::commands) | std::views::join;
}

}  // namespace tocsin::cli
