// The texts of --help, and the pages that are generated from the table of commands. tools/generate_docs.sh writes the
// pages to docs/cli.md, deploy/tocsin.1 and deploy/completion/; docs_test.cc fails if a file differs.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/commands.h"

namespace tocsin::cli {

struct Page {
  std::string_view name;  // of `tocsin docs NAME`
  std::string_view path;  // where it is committed
  std::string (*text)(std::span<const Group> groups, std::span<const Flag> global_flags);
};
std::span<const Page> Pages();

std::string BashCompletion(std::span<const Group> groups, std::span<const Flag> global_flags);
std::string ZshCompletion(std::span<const Group> groups, std::span<const Flag> global_flags);
std::string FishCompletion(std::span<const Group> groups, std::span<const Flag> global_flags);

/// Of the whole program.
std::string HelpText(std::span<const Group> groups, std::span<const Flag> global_flags);
/// Of the commands that begin with `family`.
std::string FamilyHelp(std::span<const Group> groups, std::string_view family);
std::string CommandHelp(const Command& command);

}  // namespace tocsin::cli
