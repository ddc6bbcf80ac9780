// The texts that are generated from the table of commands. tools/generate_docs.sh writes them to docs/cli.md,
// deploy/tocsin.1 and deploy/completion/; docs_test.cc fails if a file differs.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace tocsin::cli {

struct Page {
  std::string_view name;  // of `tocsin docs NAME`
  std::string_view path;  // where it is committed
  std::string (*text)(std::span<const Group> groups, std::span<const Flag> global_flags);
};
std::span<const Page> Pages();

std::string CliMarkdown(std::span<const Group> groups, std::span<const Flag> global_flags);
std::string ManPage(std::span<const Group> groups, std::span<const Flag> global_flags);
std::string BashCompletion(std::span<const Group> groups, std::span<const Flag> global_flags);
std::string ZshCompletion(std::span<const Group> groups, std::span<const Flag> global_flags);

}  // namespace tocsin::cli
