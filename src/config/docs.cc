#include "config/docs.h"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "base/errors.h"
#include "base/roff.h"
#include "base/text.h"
#include "base/version.h"
#include "config/options.h"

namespace tocsin {
namespace {

constexpr std::array kCommands{
    Command{"--config", "FILE", "Read options from this TOML file. Also TOCSIN_CONFIG."},
    Command{"--new", "", "Begin without any job if data_dir has lost all its segments; otherwise nothing changes."},
    Command{"--config-check", "", "Check the options, print what is in effect, and exit: 0 if they are valid, else 2."},
    Command{"--print-docs", "PAGE", "Print a generated page and exit: configuration, errors, sample or man."},
    Command{"--version", "", "Print the version and exit."},
    Command{"--help", "", "Print this and exit."},
};

constexpr size_t kWidth = 100;

/// `text` in lines of at most kWidth, each with `indent` spaces before it.
std::string Wrapped(std::string_view text, std::string_view indent) {
  std::string all;
  std::string line;
  const auto flush = [&] {
    if (!line.empty()) all += fmt::format("{}{}\n", indent, line);
    line.clear();
  };
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (indent.size() + line.size() + 1 + word.size() > kWidth) flush();
    if (!line.empty()) line += ' ';
    line += word;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  flush();
  return all;
}

std::string_view TableOf(const Option& option) {
  const size_t dot = option.key.rfind('.');
  return dot == std::string_view::npos ? "" : option.key.substr(0, dot);
}

/// What `of` returns for the options, in their order, each value once.
template <class Of>
std::vector<std::string_view> Distinct(Of of) {
  std::vector<std::string_view> values;
  for (const Option& option : Options()) {
    const std::string_view value = std::invoke(of, option);
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  return values;
}

}  // namespace

std::span<const Command> Commands() { return kCommands; }

std::string VersionText() { return fmt::format("tocsind {}\n", Version()); }

std::string HelpText() {
  std::string text =
      R"(tocsind is a timeout centre: hand it a job now, and get it back at an exact later moment, at least once,
whatever crashes in between. Without any option it serves on its embedded store, in ./tocsin-data.

Usage: tocsind [options]

Each option can be a flag, an environment variable (--http-listen is TOCSIN_HTTP_LISTEN) or a key of the
file (http.listen). Flags win over the environment, and the environment over the file.
)";
  for (const std::string_view group : Distinct(&Option::group)) {
    text += fmt::format("\n{}:\n", group);
    for (const Option& option : Options()) {
      if (option.group != group) continue;
      text += fmt::format("  {} {}  (default {})\n", FlagOf(option.key), TypeOf(option),
                          option.fallback.empty() ? "empty" : option.fallback);
      text += Wrapped(option.doc, "      ");
      if (const std::string bounds = BoundsOf(option); !bounds.empty()) text += Wrapped(bounds + ".", "      ");
    }
  }
  text += "\nProgram:\n";
  for (const Command& command : Commands()) {
    text += fmt::format("  {}{}{}\n", command.flag, command.value.empty() ? "" : " ", command.value);
    text += Wrapped(command.doc, "      ");
  }
  return text + R"(
Examples:
  tocsind                                           try it: it prints its URL and a first job to copy
  tocsind --config /etc/tocsin.toml --config-check  is this file right?
  tocsind --clock virtual --data-dir /tmp/t         for tests: time moves when the test says so
)";
}

std::string ManPage() {
  std::string text =
      ".\\\" Generated from src/config/options.cc by `make docs`.\n"
      ".TH TOCSIND 8 \"\" Tocsin \"System Administration\"\n"
      ".SH NAME\ntocsind \\- the server of Tocsin, a timeout centre\n"
      ".SH SYNOPSIS\n.B tocsind\n[options]\n"
      ".SH DESCRIPTION\n"
      "Takes jobs now and hands each back at an exact later moment, at least once, whatever crashes in between.\n"
      ".PP\nEach option can be a flag, an environment variable or a key of the TOML file. Flags win over the\n"
      "environment, and the environment over the file.\n";
  for (const std::string_view group : Distinct(&Option::group)) {
    text += fmt::format(".SH {}\n", Capitals(group));
    for (const Option& option : Options()) {
      if (option.group != group) continue;
      text +=
          fmt::format(".TP\n.BI \"{} \" {}\n{}\n", Roff(FlagOf(option.key)), Roff(TypeOf(option)), Roff(option.doc));
      if (const std::string bounds = BoundsOf(option); !bounds.empty()) text += Roff(bounds) + ".\n";
      text += fmt::format("Default: {}. In the file: {}. Variable: {}.\n",
                          option.fallback.empty() ? "empty" : Roff(option.fallback), Roff(option.key),
                          Roff(VariableOf(option.key)));
    }
  }
  text += ".SH PROGRAM\n";
  for (const Command& command : Commands()) {
    text += fmt::format(".TP\n.BI \"{} \" {}\n{}\n", Roff(command.flag), command.value, Roff(command.doc));
  }
  return text +
         ".SH FILES\n"
         ".TP\n.I /etc/tocsin/tocsin.toml\nThe configuration of the service tocsin of systemd.\n"
         ".TP\n.I /var/lib/tocsin/data\nThe jobs of that service, unless the configuration names another folder.\n"
         ".SH SEE ALSO\n.BR tocsin (1)\n";
}

std::string ConfigurationMarkdown() {
  std::string text = R"(# Configuration

Generated from the table in `src/config/options.cc` by `make docs`; a test fails when they differ.

Every option has a key in the TOML file (`--config FILE`, or `TOCSIN_CONFIG`), a flag and an environment variable. Flags
win over the environment, the environment over the file, the file over the defaults. A name that is not in these tables
is an error, which names the nearest known one. `tocsind --config-check` checks everything and prints what is in effect;
[deploy/tocsin.toml](../deploy/tocsin.toml) is a file to begin with.

A **size** is a whole number with B, KiB, MiB, GiB or TiB (without a unit: bytes). A **duration** is one with ms, s, m, h
or d. **Addresses** are host:port, with commas between them. In the file, numbers, true and false are bare and everything
else is in quotes.
)";
  for (const std::string_view group : Distinct(&Option::group)) {
    text += fmt::format("\n## {}\n", group);
    for (const Option& option : Options()) {
      if (option.group != group) continue;
      text += fmt::format("\n### `{}`\n\n{}\n\n", option.key, option.doc);
      text += "| type | default | allowed | flag | variable |\n|---|---|---|---|---|\n";
      const std::string bounds = BoundsOf(option);
      text += fmt::format("| {} | {} | {} | `{}` | `{}` |\n", TypeOf(option),
                          option.fallback.empty() ? "empty" : fmt::format("`{}`", option.fallback),
                          bounds.empty() ? "any" : bounds, FlagOf(option.key), VariableOf(option.key));
    }
  }
  text += "\n## Arguments of the program\n\n| argument | meaning |\n|---|---|\n";
  for (const Command& command : Commands()) {
    text +=
        fmt::format("| `{}{}{}` | {} |\n", command.flag, command.value.empty() ? "" : " ", command.value, command.doc);
  }
  return text;
}

std::string ErrorsMarkdown() {
  std::string text = R"(# Errors

Generated from the table in `src/base/errors.cc` by `make docs`; a test fails when they differ.

Every error has one of these codes, whichever protocol was used. **Retry** says whether the same call may succeed later
without a change.

| code | HTTP | RESP | gRPC | retry | meaning |
|---|---|---|---|---|---|
)";
  for (const ErrorRow& row : ErrorTable()) {
    text += fmt::format("| `{}` | {} | `{}` | `{}` | {} | {} |\n", row.name, row.http, row.resp, row.grpc,
                        row.retry ? "yes" : "no", row.doc);
  }
  return text;
}

std::string SampleToml() {
  std::string text =
      "# Tocsin's configuration: every option with its default. Remove the # before a line to change it, then check:\n"
      "#   tocsind --config tocsin.toml --config-check\n"
      "# Generated from src/config/options.cc by `make docs`.\n";
  // The first option has no table: in TOML everything after a table's header belongs to that table.
  for (const std::string_view table : Distinct(TableOf)) {
    if (!table.empty()) text += fmt::format("\n[{}]\n", table);
    for (const Option& option : Options()) {
      if (TableOf(option) != table) continue;
      const std::string_view key = option.key.substr(table.empty() ? 0 : table.size() + 1);
      text += "\n" + Wrapped(option.doc, "# ");
      if (const std::string bounds = BoundsOf(option); !bounds.empty()) text += Wrapped(bounds + ".", "# ");
      text += "#" + TomlLine(option, key, option.fallback) + "\n";
    }
  }
  return text;
}

}  // namespace tocsin
