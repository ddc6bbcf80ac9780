// tocsin: the command line tool.
#include <cstdio>

#include <fmt/format.h>

#include "cli/journal_command.h"

namespace {

constexpr std::string_view kUsage =
    "tocsin: tools for Tocsin, the timeout centre\n"
    "\n"
    "usage: tocsin journal verify DIR                      looks for damage in a data folder\n"
    "       tocsin journal repair DIR [--output NEW_DIR]   writes what is whole to a new folder (DIR.repaired)\n"
    "       tocsin --help | --version\n"
    "\n"
    "The folder must not be in use by a server. Neither command changes it.\n"
    "exit status: 0 clean, 1 damage found, 2 wrong usage, 3 could not run\n";

int Main(const std::vector<std::string>& words) {
  using namespace tocsin;
  if (words.empty()) {
    fmt::print(stderr, "{}", kUsage);
    return cli::kExitUsage;
  }
  if (words[0] == "--help" || words[0] == "-h") {
    fmt::print("{}", kUsage);
    return cli::kExitClean;
  }
  if (words[0] == "--version") {
    fmt::print("tocsin {}\n", TOCSIN_VERSION);
    return cli::kExitClean;
  }
  if (words[0] == "journal") {
    const auto file_system = MakePosixFileSystem();
    return cli::RunJournal(*file_system, {words.begin() + 1, words.end()});
  }
  fmt::print(stderr, "tocsin: unknown command {}\n{}", words[0], kUsage);
  return cli::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) { return Main({argv + 1, argv + argc}); }
