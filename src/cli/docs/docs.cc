#include "cli/docs/docs.h"

#include <array>

#include "api/docs.h"
#include "base/nearest.h"
#include "base/words.h"
#include "cli/arguments.h"

namespace tocsin::cli {
namespace {

constexpr std::array kPages{
    Page{"cli", "docs/cli.md", CliMarkdown},
    Page{"man", "deploy/tocsin.1", ManPage},
    Page{"bash", "deploy/completion/tocsin.bash", BashCompletion},
    Page{"zsh", "deploy/completion/_tocsin", ZshCompletion},
};

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

/// Escapes text for a man page.
std::string Roff(std::string_view text) {
  std::string out = Replaced(Replaced(std::string(text), "\\", "\\e"), "-", "\\-");
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
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

std::span<const Page> Pages() { return kPages; }

std::string CliMarkdown(std::span<const Group> groups, std::span<const Flag> global_flags) {
  std::string text =
      "# The `tocsin` command\n\n"
      "Generated from the table in `src/cli/commands.cc` by `make docs`; a test fails if they differ.\n\n"
      "`tocsin --help` lists the commands and `tocsin COMMAND --help` shows one with examples. "
      "[deploy/tocsin.1](../deploy/tocsin.1)\nis the man page, and [deploy/completion](../deploy/completion) completes "
      "commands and flags in bash and zsh.\n\n"
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
  for (size_t i = 0; i < ExitStatuses().size(); ++i) text += fmt::format("| {} | {} |\n", i, ExitStatuses()[i]);
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
  for (size_t i = 0; i < ExitStatuses().size(); ++i) {
    text += fmt::format(".TP\n.B {}\n{}\n", i, Roff(ExitStatuses()[i]));
  }
  text += ".SH ENVIRONMENT\n";
  for (const Flag& flag : global_flags) {
    if (!flag.variable.empty()) text += fmt::format(".TP\n.B {}\nAs \\-\\-{}.\n", flag.variable, Roff(flag.name));
  }
  return text +
         ".TP\n.B TOCSIN_TOKEN\nThe access token itself.\n"
         ".TP\n.B NO_COLOR\nIf it is set, output has no colours.\n"
         ".SH SEE ALSO\n.BR tocsind (1)\n";
}

Command Docs() {
  return {
      .name = "docs",
      .summary = "prints a page about these commands, or a completion for a shell",
      .positionals = {{.name = "PAGE",
                       .doc = "cli (Markdown), man (a man page), bash or zsh (completions).",
                       .words = "cli man bash zsh"}},
      .examples = {{"docs bash > ~/.local/share/bash-completion/completions/tocsin",
                    "Tab completes commands and flags in the next shell"}},
      .offline = true,
      .run = Run,
  };
}

}  // namespace tocsin::cli
