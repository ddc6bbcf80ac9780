// Makes a Config from the command line, the environment and the file. Pure: everything it reads comes through Inputs.
//
// Flags win over the environment, the environment over the file, the file over the defaults. Every given value must be
// valid, even if another one overrides it; names that are not in the table are errors.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace tocsin {

/// The resources of the machine or the container, on which some defaults depend.
struct Machine {
  int cores = 1;
  uint64_t memory_bytes = uint64_t{1} << 30;
  std::string host = "localhost";  // its name
};

struct Inputs {
  std::vector<std::string> arguments;                            // without the program's name
  std::vector<std::pair<std::string, std::string>> environment;  // variables that do not begin with TOCSIN_ are ignored
  std::function<Result<std::string>(const std::string& path)> read_file;
  Machine machine;
};

/// The real ones, for main().
Inputs ProcessInputs(int argc, const char* const* argv, const char* const* environment);

enum class Action {
  kServe,
  kPrint,  // --help, --version, --config-check, --print-docs: print `text` and exit with 0
};

struct Loaded {
  Action action = Action::kServe;
  Config config;
  std::string text;
};

/// An error's message names the option, the value, its bounds and where it was given; main() prints it and exits
/// with 2.
Result<Loaded> LoadConfig(const Inputs& inputs);

}  // namespace tocsin
