// The one table of commands. A verb of the server's API (api/verbs.h) is here by itself; a row in commands.cc adds
// examples and how its answer is printed. A command that does more has a file with its row, declared below.
// `make docs` writes what follows from the table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"

namespace tocsin::cli {

/// In the order of --help.
std::span<const Group> Groups();

/// Flags that every command takes.
std::span<const Flag> GlobalFlags();

/// Keeps a text that a row refers to until the program ends.
std::string_view Keep(std::string text);

// Rows that have a file of their own.
Command Submit();
Command Reserve();
Command List();
Command DeadList();
Command Stats();
Command Cluster();
Command Watch();
Command WorkerRow();
Command Export();
Command Import();
Command TokenCreate();
Command TokenList();
Command TokenRevoke();
Command Demo();
Command JournalVerify();
Command JournalRepair();
Command Docs();

}  // namespace tocsin::cli
