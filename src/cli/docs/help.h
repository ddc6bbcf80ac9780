// The texts of --help, from the table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"

namespace tocsin::cli {

/// Of the whole program.
std::string HelpText(std::span<const Group> groups, std::span<const Flag> global_flags);
/// Of the commands that begin with `family`.
std::string FamilyHelp(std::span<const Group> groups, std::string_view family);
std::string CommandHelp(const Command& command);

/// "--in DURATION"
std::string FlagLine(const Flag& flag);
/// The flag's text with its choices, default and variable.
std::string FlagDoc(const Flag& flag);

/// The exit statuses, from 0, and what they mean.
std::span<const std::string_view> ExitStatuses();

}  // namespace tocsin::cli
