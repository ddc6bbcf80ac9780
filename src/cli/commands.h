// The one table of commands: what a row is, the rows, and what a command works with. Parsing, --help, docs/cli.md, the
// man page and the completions all follow from these values; nothing else knows what a command is called or takes.
//
// A verb of the server's API (api/verbs.h) is here by itself; a row in commands.cc adds examples and how its answer is
// printed. A command that does more has a file with its row, declared below. `make docs` writes what follows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/text/output.h"
#include "cli/transport/api.h"

namespace tocsin::cli {

class Arguments;

// Exit statuses. docs/docs.cc says what they mean.
constexpr int kExitOk = 0;
constexpr int kExitNo = 1;
constexpr int kExitUsage = 2;
constexpr int kExitCannotRun = 3;

enum class Kind : uint8_t {
  kText,
  kSwitch,    // has no value
  kNumber,    // a whole number from 0
  kDuration,  // 30m
  kMoment,    // 2026-12-01T09:00+08:00
  kSize,      // 64MiB
  kChoice,    // one of `choices`
};

struct Flag {
  std::string_view name;  // without its dashes
  Kind kind = Kind::kText;
  std::string_view doc = {};
  std::string_view fallback = {};  // the value if the flag is missing; empty: none
  std::string_view value = {};     // what stands for the value in texts; empty: that of its kind (ValueName)
  std::vector<std::string_view> choices = {};
  std::string_view variable = {};  // the environment variable that holds the value if the flag is missing
  bool repeated = false;
  bool required = false;
};

/// An argument that is known by its place. Its name is in capitals, so that it never meets a flag's.
struct Positional {
  std::string_view name;
  std::string_view doc;
  bool required = true;
  bool repeated = false;        // only the last one
  std::string_view words = "";  // the values that it takes, for completions; empty: any
};

struct Example {
  std::string_view line;  // after `tocsin `
  std::string_view what;
};

/// What a command works with. Made by main for one command; one thread.
struct Context {
  const Clock& clock;  // of this machine; the server may have another (ServerNow)
  Output& out;
  Api& api;
};

struct Command {
  std::string_view name;     // one word, or two: "topic set"
  std::string_view summary;  // completes "tocsin NAME ...": begins in lower case, no full stop
  std::string_view details;  // further sentences, or nothing
  std::vector<Positional> positionals;
  std::vector<Flag> flags;
  std::vector<Example> examples;
  std::string_view no;   // when the exit status is 1; empty: never
  bool offline = false;  // does not talk to a server: it ignores --server and access tokens
  /// The exit status. main prints an error, and its code decides the status (ExitStatusOf).
  std::function<Result<int>(Context& context, const Arguments& arguments)> run;
};

struct Group {
  std::string_view title;
  std::vector<Command> commands;
};

/// The server's clock, which due times are compared with: it may be a virtual one. This machine's clock if the server
/// does not answer.
Time ServerNow(Context& context);

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
Command Operate();
Command Operations();
Command ShowOperation();
Command TallyJobs();
Command DeadList();
Command DeadRedrive();
Command DeadRemove();
Command Leases();
Command LeaseRevoke();
Command Stats();
Command Cluster();
Command Alerts();
Command Watch();
Command Load();
Command WorkerRow();
Command Export();
Command Import();
Command TokenCreate();
Command TokenList();
Command TokenRevoke();
Command Demo();
Command JournalVerify();
Command JournalRepair();
Command MysqlSchema();
Command MysqlMigrate();
Command MysqlCheck();
Command Docs();

/// How the program ends after this error.
int ExitStatusOf(Code code);

}  // namespace tocsin::cli
