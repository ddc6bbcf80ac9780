#include "cli/docs/help.h"

#include <algorithm>
#include <vector>

#include "cli/arguments.h"

namespace tocsin::cli {
namespace {

constexpr size_t kWidth = 100;

/// `text` in lines of at most kWidth; the first begins at column `indent`, and so do the others.
std::string Wrapped(std::string_view text, size_t indent) {
  std::string all;
  size_t at = indent;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    if (at > indent && at + 1 + space > kWidth) {
      all += fmt::format("\n{:{}}", "", indent);
      at = indent;
    } else if (at > indent) {
      all += ' ';
      ++at;
    }
    all += text.substr(0, space);
    at += space;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return all + "\n";
}

/// `head` in a column of `column` characters, and `text` beside it.
std::string Beside(std::string_view head, size_t column, std::string_view text) {
  return fmt::format("  {:<{}}", head, column) + Wrapped(text, 2 + column);
}

std::string CommandLines(std::span<const Command> commands, std::string_view family = "") {
  std::string text;
  for (const Command& command : commands) {
    if (!family.empty() && !command.name.starts_with(fmt::format("{} ", family))) continue;
    text += Beside(command.name, 16, command.summary);
  }
  return text;
}

std::string FlagLines(std::span<const Flag> flags) {
  size_t column = 0;
  for (const Flag& flag : flags) column = std::max(column, FlagLine(flag).size() + 2);
  std::string text;
  for (const Flag& flag : flags) text += Beside(FlagLine(flag), column, FlagDoc(flag));
  return text;
}

}  // namespace

std::string FlagLine(const Flag& flag) {
  return flag.kind == Kind::kSwitch ? fmt::format("--{}", flag.name) : fmt::format("--{} {}", flag.name, flag.value);
}

std::string FlagDoc(const Flag& flag) {
  std::string text(flag.doc);
  if (!flag.choices.empty()) {
    text += " One of:";
    for (const std::string_view choice : flag.choices) {
      text += fmt::format(" {}{}", choice, choice == flag.choices.back() ? '.' : ',');
    }
  }
  if (flag.repeated) text += " May be repeated.";
  if (!flag.fallback.empty()) text += fmt::format(" Default: {}.", flag.fallback);
  if (!flag.variable.empty()) text += fmt::format(" Variable: {}.", flag.variable);
  return text;
}

std::string_view MeaningOfStatus(int status) {
  switch (status) {
    case kExitOk:
      return "done";
    case kExitNo:
      return "the answer is no: there is no such job or topic, or what was asked could not be had";
    case kExitUsage:
      return "wrong usage: the message says what is wrong";
    default:
      return "could not run: the server cannot be reached or failed, a file cannot be read, the output not written";
  }
}

std::string HelpText(std::span<const Group> groups, std::span<const Flag> global_flags) {
  std::string text =
      "tocsin: hand a job to Tocsin, the timeout centre, and get it back at an exact later moment\n"
      "\n"
      "A first job, with a server at hand (`make run` in another terminal):\n"
      "  tocsin submit demo \"hello\" --in 5s    stores it; due in five seconds\n"
      "  tocsin reserve demo --wait 10s        waits until it is due, prints it and its TOKEN\n"
      "  tocsin ack demo TOKEN                 ends it; without this it would come again\n"
      "\n"
      "usage: tocsin COMMAND [arguments] [flags]\n"
      "       tocsin COMMAND --help    what a command takes, with examples\n";
  for (const Group& group : groups) text += fmt::format("\n{}:\n{}", group.title, CommandLines(group.commands));
  text += "\nFlags of every command:\n" + FlagLines(global_flags);
  text += "  --help, --version\n";
  text +=
      "\n"
      "Durations: 500ms 30s 30m 2h 7d 1w 1h30m. Moments: 2026-12-01T09:00+08:00, \"2026-12-01 09:00\" (local time),\n"
      "\"tomorrow 09:00\", @1796000000000 (ms since 1970).\n"
      "\nExit status:\n";
  for (const int status : {kExitOk, kExitNo, kExitUsage, kExitCannotRun}) {
    text += Beside(std::to_string(status), 3, MeaningOfStatus(status));
  }
  return text;
}

std::string FamilyHelp(std::span<const Group> groups, std::string_view family) {
  std::string text = fmt::format("usage: tocsin {} COMMAND [arguments]\n\n", family);
  for (const Group& group : groups) text += CommandLines(group.commands, family);
  return text + fmt::format("\nsee: tocsin {} COMMAND --help\n", family);
}

std::string CommandHelp(const Command& command) {
  std::string text = fmt::format("tocsin {}: {}\n\nusage: {}\n", command.name, command.summary, UsageOf(command));
  if (!command.details.empty()) text += "\n" + Wrapped(command.details, 0);
  if (!command.positionals.empty()) text += "\n";
  for (const Positional& one : command.positionals) text += Beside(one.name, 10, one.doc);
  if (!command.flags.empty()) text += "\nFlags:\n" + FlagLines(command.flags);
  if (!command.examples.empty()) text += "\nExamples:\n";
  for (const Example& example : command.examples)
    text += fmt::format("  tocsin {}\n      {}\n", example.line, example.what);
  text += "\nExit status:\n" + Beside("0", 3, "done");
  if (!command.no.empty()) text += Beside("1", 3, command.no);
  text += Beside("2", 3, "wrong usage") + Beside("3", 3, "could not run");
  return text + "\nFlags of every command (--server, --token-file, --timeout, --json): tocsin --help\n";
}

}  // namespace tocsin::cli
