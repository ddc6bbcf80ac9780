#include "cli/docs/docs.h"

#include <algorithm>

#include "api/syntax.h"
#include "base/roff.h"
#include "base/text.h"
#include "cli/arguments.h"

namespace tocsin::cli {
namespace {

constexpr size_t kWidth = 100;

/// What each exit status means, from 0.
constexpr std::string_view kExitStatuses[] = {
    "done", "the answer is no: the section of the command says when",
    "wrong usage, or a value that the server refuses: the message says what is wrong",
    "could not run: the server cannot be reached, refuses the access token, is overloaded or failed; a file cannot be "
    "read or written"};

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

/// "--in DURATION"
std::string FlagLine(const Flag& flag) {
  return flag.kind == Kind::kSwitch ? fmt::format("--{}", flag.name)
                                    : fmt::format("--{} {}", flag.name, ValueName(flag));
}

/// The flag's text with its choices, default and variable.
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

std::string FlagLines(std::span<const Flag> flags) {
  size_t column = 0;
  for (const Flag& flag : flags) column = std::max(column, FlagLine(flag).size() + 2);
  std::string text;
  for (const Flag& flag : flags) text += Beside(FlagLine(flag), column, FlagDoc(flag));
  return text;
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// A cell of a table.
std::string Cell(std::string_view text) { return Replaced(std::string(text), "|", "\\|"); }

std::string FlagTable(std::span<const Flag> flags) {
  std::string text = "\n| flag | meaning |\n|---|---|\n";
  for (const Flag& flag : flags) text += fmt::format("| `{}` | {} |\n", FlagLine(flag), Cell(FlagDoc(flag)));
  return text;
}

std::string CommandMarkdown(const Command& command) {
  std::string text = fmt::format("\n### `tocsin {}`\n\n`{}`\n\n{}{}.", command.name, UsageOf(command),
                                 static_cast<char>(std::toupper(command.summary[0])), command.summary.substr(1));
  if (!command.details.empty()) text += fmt::format(" {}", command.details);
  text += "\n";
  if (!command.positionals.empty()) {
    text += "\n| argument | meaning |\n|---|---|\n";
    for (const Positional& one : command.positionals) text += fmt::format("| `{}` | {} |\n", one.name, Cell(one.doc));
  }
  if (!command.flags.empty()) text += FlagTable(command.flags);
  if (!command.examples.empty()) text += "\n```\n";
  for (const Example& example : command.examples) text += fmt::format("tocsin {}   # {}\n", example.line, example.what);
  if (!command.examples.empty()) text += "```\n";
  if (!command.no.empty()) text += fmt::format("\nExit status 1: {}.\n", command.no);
  return text;
}

std::string RoffFlags(std::span<const Flag> flags) {
  std::string text;
  for (const Flag& flag : flags) text += fmt::format(".TP\n.B {}\n{}\n", Roff(FlagLine(flag)), Roff(FlagDoc(flag)));
  return text;
}

std::string CommandRoff(const Command& command) {
  std::string text = fmt::format(".SS {}\n.B {}\n.PP\n{}{}.\n", Roff(command.name), Roff(UsageOf(command)),
                                 static_cast<char>(std::toupper(command.summary[0])), Roff(command.summary.substr(1)));
  if (!command.details.empty()) text += Roff(command.details) + "\n";
  for (const Positional& one : command.positionals) text += fmt::format(".TP\n.I {}\n{}\n", one.name, Roff(one.doc));
  text += RoffFlags(command.flags);
  for (const Example& example : command.examples) {
    text += fmt::format(".PP\n{}:\n.PP\n.RS\n.nf\n{}\n.fi\n.RE\n", Roff(example.what),
                        Roff(fmt::format("tocsin {}", example.line)));
  }
  if (!command.no.empty()) text += fmt::format(".PP\nExit status 1: {}.\n", Roff(command.no));
  return text;
}

std::string CliMarkdown(std::span<const Group> groups, std::span<const Flag> global_flags) {
  std::string text =
      "# The `tocsin` command\n\n"
      "Generated from the table in `src/cli/commands.cc` by `make docs`; a test fails if they differ.\n\n"
      "`tocsin --help` lists the commands and `tocsin COMMAND --help` shows one with examples. "
      "[deploy/tocsin.1](../deploy/tocsin.1)\nis the man page, and [deploy/completion](../deploy/completion) completes "
      "commands and flags in bash, zsh and fish.\n\n"
      "```\n"
      "tocsin submit demo \"hello\" --in 5s    # stores a job; due in five seconds\n"
      "tocsin reserve demo --wait 10s        # waits until it is due, prints it and its delivery TOKEN\n"
      "tocsin ack demo TOKEN                 # ends it; without this it is delivered again\n"
      "```\n\n"
      "**Durations** are whole numbers with units, the larger first: `500ms` `30s` `30m` `2h` `7d` `1w` `1h30m`. "
      "**Moments** are\n`2026-12-01T09:00+08:00`, `2026-12-01T09:00:00.250Z`, `2026-12-01 09:00` and `2026-12-01` in "
      "local time, `today` or `tomorrow`\nwith a time of day, or `@` and milliseconds since 1970. **Sizes** are whole "
      "numbers with `B`, `KiB`, `MiB`, `GiB` or `TiB`.\n\n"
      "A flag is `--flag VALUE` or `--flag=VALUE`, anywhere after the command; `--` ends the flags. Output is for "
      "people, with\ncolours on a terminal unless `NO_COLOR` is set; scripts ask for `--json` and look at the exit "
      "status.\n";
  text += "\n## Flags of every command\n" + FlagTable(global_flags);
  text += "\n## Exit status\n\n| status | meaning |\n|---|---|\n";
  for (size_t i = 0; i < std::size(kExitStatuses); ++i) text += fmt::format("| {} | {} |\n", i, kExitStatuses[i]);
  for (const Group& group : groups) {
    text += fmt::format("\n## {}\n", group.title);
    for (const Command& command : group.commands) text += CommandMarkdown(command);
  }
  return text;
}

std::string ManPage(std::span<const Group> groups, std::span<const Flag> global_flags) {
  std::string text =
      ".\\\" Generated from src/cli/commands.cc by `make docs`.\n"
      ".TH TOCSIN 1 \"\" Tocsin \"User Commands\"\n"
      ".SH NAME\ntocsin \\- hand a job to Tocsin, and get it back at an exact later moment\n"
      ".SH SYNOPSIS\n.B tocsin\n.I COMMAND\n[arguments] [flags]\n"
      ".SH DESCRIPTION\n"
      "Talks to a Tocsin server (\\fBtocsind\\fR): submits jobs, takes those that are due, acknowledges them, and "
      "manages topics.\n"
      ".PP\nDurations are whole numbers with units: 500ms 30s 30m 2h 7d 1w 1h30m.\n"
      "Moments are 2026\\-12\\-01T09:00+08:00, \"2026\\-12\\-01 09:00\" in local time, \"tomorrow 09:00\", or "
      "@1796000000000 (ms since 1970).\n"
      ".SH FLAGS OF EVERY COMMAND\n";
  text += RoffFlags(global_flags);
  text += ".TP\n.B \\-\\-help\nPrint help, of the command before it if there is one.\n";
  text += ".TP\n.B \\-\\-version\nPrint the version.\n";
  for (const Group& group : groups) {
    text += fmt::format(".SH {}\n", Capitals(group.title));
    for (const Command& command : group.commands) text += CommandRoff(command);
  }
  text += ".SH EXIT STATUS\n";
  for (size_t i = 0; i < std::size(kExitStatuses); ++i) {
    text += fmt::format(".TP\n.B {}\n{}\n", i, Roff(kExitStatuses[i]));
  }
  text += ".SH ENVIRONMENT\n";
  for (const Flag& flag : global_flags) {
    if (!flag.variable.empty()) text += fmt::format(".TP\n.B {}\nAs \\-\\-{}.\n", flag.variable, Roff(flag.name));
  }
  return text +
         ".TP\n.B TOCSIN_TOKEN\nThe access token itself.\n"
         ".TP\n.B NO_COLOR\nIf it is set, output has no colours.\n"
         ".SH SEE ALSO\n.BR tocsind (8)\n";
}

Result<int> Run(Context& context, const Arguments& arguments) {
  const std::string name = *arguments.Text("PAGE");
  std::vector<std::string_view> names;
  for (const Page& page : Pages()) {
    names.push_back(page.name);
    if (page.name != name) continue;
    context.out.Write(page.text(Groups(), GlobalFlags()));
    return kExitOk;
  }
  if (const auto table = api::DocTable(name)) {
    context.out.Write(*table);
    return kExitOk;
  }
  return Fail(Code::kInvalidArgument, "PAGE: \"{}\" is not {}{}", name, fmt::join(names, ", "),
              DidYouMean(name, names));
}

}  // namespace

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
  for (size_t i = 0; i < std::size(kExitStatuses); ++i) text += Beside(std::to_string(i), 3, kExitStatuses[i]);
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
  for (size_t i = 0; i < std::size(kExitStatuses); ++i) {
    const std::string_view meaning = i == kExitNo ? command.no : kExitStatuses[i];
    if (!meaning.empty()) text += Beside(std::to_string(i), 3, meaning);
  }
  return text + "\nFlags of every command (--server, --token-file, --ca, --cert, --timeout, --json): tocsin --help\n";
}

std::span<const Page> Pages() {
  static constexpr Page kPages[] = {
      {"cli", "docs/cli.md", CliMarkdown},
      {"man", "deploy/tocsin.1", ManPage},
      {"bash", "deploy/completion/tocsin.bash", BashCompletion},
      {"zsh", "deploy/completion/_tocsin", ZshCompletion},
      {"fish", "deploy/completion/tocsin.fish", FishCompletion},
  };
  return kPages;
}

Command Docs() {
  return {
      .name = "docs",
      .summary = "prints a page about these commands, or a completion for a shell",
      .positionals = {{.name = "PAGE",
                       .doc = "cli (Markdown), man (a man page), bash, zsh or fish (completions).",
                       .words = "cli man bash zsh fish"}},
      .examples = {{"docs bash > ~/.local/share/bash-completion/completions/tocsin",
                    "Tab completes commands and flags in the next shell"}},
      .offline = true,
      .run = Run,
  };
}

}  // namespace tocsin::cli
