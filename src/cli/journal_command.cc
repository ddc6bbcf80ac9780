#include "cli/journal_command.h"

#include <cstdio>

#include "storage/journal/inspect.h"

namespace tocsin::cli {
namespace {

struct Arguments {
  std::string verb;
  std::string folder;
  std::string output;
};

Result<Arguments> Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--output" && arguments.verb == "repair") {
      if (i + 1 == words.size()) return Fail(Code::kInvalidArgument, "--output needs a folder");
      arguments.output = words[++i];
    } else if (word.starts_with('-')) {
      return Fail(Code::kInvalidArgument, "unknown flag {}", word);
    } else if (arguments.verb.empty()) {
      if (word != "verify" && word != "repair") return Fail(Code::kInvalidArgument, "unknown command journal {}", word);
      arguments.verb = word;
    } else if (arguments.folder.empty()) {
      arguments.folder = word;
    } else {
      return Fail(Code::kInvalidArgument, "one folder at a time: {} is too much", word);
    }
  }
  if (arguments.folder.empty()) return Fail(Code::kInvalidArgument, "the data folder is missing");
  while (arguments.folder.size() > 1 && arguments.folder.ends_with('/')) arguments.folder.pop_back();
  if (arguments.output.empty()) arguments.output = arguments.folder + ".repaired";
  return arguments;
}

void PrintDamage(const std::vector<journal::Damage>& damage) {
  for (const journal::Damage& one : damage) fmt::print("  {} at byte {}: {}\n", one.file, one.offset, one.what);
}

int CannotRun(const Error& error) {
  fmt::print(stderr, "tocsin: {}\n", error.message);
  return kExitCannotRun;
}

int Verify(FileSystem& file_system, const std::string& folder) {
  const auto report = journal::Verify(file_system, folder);
  if (!report) return CannotRun(report.error());
  fmt::print("{}: {} segments, {} records, {} bytes; {} live and {} dead jobs\n", folder, report->segments,
             report->records, report->bytes, report->jobs_live, report->jobs_dead);
  if (report->torn_tail_bytes > 0) {
    fmt::print(
        "{} bytes of an unfinished write at the end: the next start cuts them off; nothing acknowledged is in them\n",
        report->torn_tail_bytes);
  }
  if (report->damage.empty()) {
    fmt::print("no damage\n");
    return kExitClean;
  }
  fmt::print("damage in {} places:\n", report->damage.size());
  PrintDamage(report->damage);
  fmt::print("salvage what is whole with: tocsin journal repair {}\n", folder);
  return kExitDamage;
}

int Repair(FileSystem& file_system, const std::string& folder, const std::string& output) {
  const auto report = journal::Repair(file_system, folder, output);
  if (!report) return CannotRun(report.error());
  fmt::print("{}: {} live and {} dead jobs written to {}; {} is unchanged\n", folder, report->jobs_live,
             report->jobs_dead, output, folder);
  if (report->damage.empty()) {
    fmt::print("nothing was left out\n");
  } else {
    fmt::print("left out, because it is damaged:\n");
    PrintDamage(report->damage);
  }
  fmt::print(
      "to put it in use:\n"
      "  mv {0} {0}.damaged\n"
      "  mv {1} {0}\n"
      "then start the server again\n",
      folder, output);
  return report->damage.empty() ? kExitClean : kExitDamage;
}

}  // namespace

int RunJournal(FileSystem& file_system, const std::vector<std::string>& words) {
  const auto arguments = Parse(words);
  if (!arguments) {
    fmt::print(stderr, "tocsin: {}\n{}", arguments.error().message, kJournalUsage);
    return kExitUsage;
  }
  if (arguments->verb == "verify") return Verify(file_system, arguments->folder);
  return Repair(file_system, arguments->folder, arguments->output);
}

}  // namespace tocsin::cli
