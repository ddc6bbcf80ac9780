// `tocsin journal verify|repair`: looks at, and salvages, a data folder that no server uses. Neither ever changes the
// folder.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"

namespace tocsin::cli {

// Exit statuses of tocsin.
constexpr int kExitClean = 0;
constexpr int kExitDamage = 1;
constexpr int kExitUsage = 2;
constexpr int kExitCannotRun = 3;

constexpr const char* kJournalUsage =
    "usage: tocsin journal verify DIR\n"
    "       tocsin journal repair DIR [--output NEW_DIR]\n";

/// `arguments` begins after the word journal. Reports go to stdout, complaints to stderr.
int RunJournal(FileSystem& file_system, const std::vector<std::string>& arguments);

}  // namespace tocsin::cli
