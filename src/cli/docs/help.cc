#include <algorithm>
#include <array>
#include <vector>

#include "cli/arguments.h"
#include "cli/docs/docs.h"

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
  return flag.kind == Kind::kSwitch ? fmt::format("--{}", flag.name)
                                    : fmt::format("--{} {}", flag.name, ValueName(flag));
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

std::span<const std::string_view> ExitStatuses() {
  static constexpr std::array<std::string_view, 4> kMeanings{
      "done", "the answer is no: the section of the command says when",
      "wrong usage, or a value that the server refuses: the message says what is wrong",
      "could not run: the server cannot be reached, refuses the access token, is overloaded or failed; a file cannot "
      "be "
      "read or written"};
  return kMeanings;
}

std::string HelpText(std::span<const Group> groups, std::span<const Flag> global_flags) {
  std::string text =
      "tocsin: hand a job to Tocsin, the timeout centre, and get it back at an exact later moment\n"
      "\n"
      "A first job, on a running server (`make run` in another terminal):\n"
      "  tocsin submit demo \"hello\" --in 5s    stores it; due in five seconds\n"
      "  tocsin reserve demo --wait 10s        waits until it is due, prints it and its delivery TOKEN\n"
      "  tocsin ack demo TOKEN                 ends it; without this it is delivered again\n"
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
  for (size_t i = 0; i < ExitStatuses().size(); ++i) text += Beside(std::to_string(i), 3, ExitStatuses()[i]);
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
  text += "\nExit status:\n";
  for (size_t i = 0; i < ExitStatuses().size(); ++i) {
    const std::string_view meaning = i == kExitNo ? command.no : ExitStatuses()[i];
    if (!meaning.empty()) text += Beside(std::to_string(i), 3, meaning);
  }
  return text + "\nFlags of every command (--server, --token-file, --timeout, --json): tocsin --help\n";
}

}  // namespace tocsin::cli
