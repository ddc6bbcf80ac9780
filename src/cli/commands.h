// The one table of commands. To add a command: write a file with its row and its handler (see fire.cc), declare it in
// verbs.h, list it in commands.cc, and run `make docs`.
#pragma once

#include <span>

#include "cli/command.h"

namespace tocsin::cli {

/// In the order of --help.
std::span<const Group> Groups();

/// Flags that every command takes.
std::span<const Flag> GlobalFlags();

}  // namespace tocsin::cli
