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

/// What an exit status means, whatever the command.
std::string_view MeaningOfStatus(int status);

}  // namespace tocsin::cli
