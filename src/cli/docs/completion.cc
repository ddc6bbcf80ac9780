// Completions for shells: commands, flags, and the values of flags that are choices or files. Topics and ids are not
// completed: a Tab should not need a server.
#include <algorithm>
#include <map>
#include <set>

#include "cli/arguments.h"
#include "cli/docs/docs.h"

namespace tocsin::cli {
namespace {

/// "--in|--at": every flag of any command that takes a value, so that the shell does not take the value for a command.
/// A flag takes a value in all commands or in none (docs_test.cc).
std::string ValueFlags(std::span<const Group> groups, std::span<const Flag> global_flags) {
  std::set<std::string_view> names;
  const auto add = [&](const Flag& flag) {
    if (flag.kind != Kind::kSwitch) names.insert(flag.name);
  };
  std::ranges::for_each(global_flags, add);
  for (const Command& command : CommandsOf(groups)) std::ranges::for_each(command.flags, add);
  return fmt::format("--{}", fmt::join(names, "|--"));
}

struct Word {
  std::string_view name;
  std::string_view summary;
};

/// The words that may follow: "" -> the first words; "topic" -> its second words. A first word that begins several
/// commands has no summary.
std::map<std::string, std::vector<Word>> WordsAfter(std::span<const Group> groups) {
  std::map<std::string, std::vector<Word>> words;
  for (const Command& command : CommandsOf(groups)) {
    const size_t space = command.name.find(' ');
    const std::string_view first = command.name.substr(0, space);
    if (space == std::string_view::npos) {
      words[""].push_back({first, command.summary});
      continue;
    }
    auto& family = words[std::string(first)];
    if (family.empty()) words[""].push_back({first, ""});
    family.push_back({command.name.substr(space + 1), command.summary});
  }
  return words;
}

std::string Families(const std::map<std::string, std::vector<Word>>& words) {
  std::string text;
  for (const auto& [first, seconds] : words) {
    if (!first.empty()) text += (text.empty() ? "" : "|") + first;
  }
  return text;
}

/// In single quotes, for a shell.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void AppendBashValues(std::string& text, std::string_view command, std::span<const Flag> flags) {
  for (const Flag& flag : flags) {
    const std::string values = flag.kind == Kind::kChoice    ? fmt::format("-W '{}'", fmt::join(flag.choices, " "))
                               : flag.value == "FILE"        ? "-f"
                               : flag.value.ends_with("DIR") ? "-d"
                                                             : "";
    if (!values.empty()) text += fmt::format("    '{}--{}') echo \"{}\" ;;\n", command, flag.name, values);
  }
}

constexpr std::string_view kBashFunction = R"bash(_tocsin() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= word offer i
  if [[ $current == = ]]; then  # --state=, which bash takes apart
    current=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    case $word in
      --)
        COMPREPLY=($(compgen -f -- "$current"))
        return
        ;;
      {value_flags})
        [[ ${{COMP_WORDS[i+1]}} == = ]] && ((i++))
        ((i++))
        ;;
      -*) ;;
      *)
        case $command in
          '') command=$word ;;
          {families}) command="$command $word" ;;
        esac
        ;;
    esac
  done
  COMPREPLY=()
  case $previous in
    {value_flags})
      offer=$(_tocsin_values "$command" "$previous")
      [ -n "$offer" ] && eval "COMPREPLY=(\$(compgen $offer -- \"\$current\"))"
      return
      ;;
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$(_tocsin_flags "$command") {global}--help" -- "$current"))
  elif offer=$(_tocsin_words "$command") && [ -n "$offer" ]; then
    COMPREPLY=($(compgen -W "$offer" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -F _tocsin tocsin
)bash";

std::string BashWords(std::span<const Group> groups) {
  std::string text = "# The words that may follow the words of a command so far.\n_tocsin_words() {\n  case $1 in\n";
  for (const auto& [first, seconds] : WordsAfter(groups)) {
    text += fmt::format("    {}) echo '{}' ;;\n", first.empty() ? "''" : first,
                        fmt::join(seconds | std::views::transform(&Word::name), " "));
  }
  for (const Command& command : CommandsOf(groups)) {
    if (command.positionals.empty() || command.positionals[0].words.empty()) continue;
    text += fmt::format("    {}) echo '{}' ;;\n", Quoted(command.name), command.positionals[0].words);
  }
  return text + "  esac\n}\n\n";
}

std::string BashFlags(std::span<const Group> groups) {
  std::string text = "# The flags of a command.\n_tocsin_flags() {\n  case $1 in\n";
  for (const Command& command : CommandsOf(groups)) {
    if (command.flags.empty()) continue;
    text += fmt::format("    {}) echo '--{}' ;;\n", Quoted(command.name),
                        fmt::join(command.flags | std::views::transform(&Flag::name), " --"));
  }
  return text + "  esac\n}\n\n";
}

std::string BashValueTable(std::span<const Group> groups, std::span<const Flag> global_flags) {
  std::string text =
      "# What compgen offers as the value of a command's flag.\n_tocsin_values() {\n  case \"$1 $2\" in\n";
  for (const Command& command : CommandsOf(groups)) {
    AppendBashValues(text, fmt::format("{} ", command.name), command.flags);
  }
  text += "  esac\n  case $2 in\n";
  AppendBashValues(text, "", global_flags);
  return text + "  esac\n}\n\n";
}

/// Inside [...] of _arguments.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshFlag(const Flag& flag) {
  std::string spec = fmt::format("{}--{}{}[{}]", flag.repeated ? "*" : "", flag.name,
                                 flag.kind == Kind::kSwitch ? "" : "=", ZshText(flag.doc));
  if (flag.kind == Kind::kSwitch) return Quoted(spec);
  spec += fmt::format(":{}:", ValueName(flag));
  if (flag.kind == Kind::kChoice) spec += fmt::format("({})", fmt::join(flag.choices, " "));
  if (flag.value == "FILE") spec += "_files";
  if (flag.value.ends_with("DIR")) spec += "_files -/";
  return Quoted(spec);
}

/// In single quotes, for fish, which escapes with a backslash inside them.
std::string FishQuoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

/// "a|b" as two words.
std::string FishWords(std::string text) {
  std::ranges::replace(text, '|', ' ');
  return text;
}

std::string FishWhen(std::string_view command) {
  return fmt::format("complete -c tocsin -n {} ", FishQuoted(fmt::format("test (__tocsin_command) = '{}'", command)));
}

std::string FishFlag(const Flag& flag) {
  std::string text = fmt::format("-l {}", flag.name);
  if (flag.kind == Kind::kChoice) {
    text += fmt::format(" -xa '{}'", fmt::join(flag.choices, " "));
  } else if (flag.kind != Kind::kSwitch) {
    text += flag.value == "FILE" || flag.value.ends_with("DIR") ? " -rF" : " -x";
  }
  return fmt::format("{} -d {}\n", text, FishQuoted(flag.doc));
}

}  // namespace

std::string BashCompletion(std::span<const Group> groups, std::span<const Flag> global_flags) {
  std::string text =
      "# bash completion for tocsin. Generated from src/cli/commands.cc by `make docs`.\n"
      "# To use it: source this file, or copy it to ~/.local/share/bash-completion/completions/tocsin\n\n";
  text += BashWords(groups) + BashFlags(groups) + BashValueTable(groups, global_flags);
  std::string global_names;
  for (const Flag& flag : global_flags) global_names += fmt::format("--{} ", flag.name);
  const std::string value_flags = ValueFlags(groups, global_flags);
  return text + fmt::format(kBashFunction, fmt::arg("value_flags", value_flags),
                            fmt::arg("families", Families(WordsAfter(groups))), fmt::arg("global", global_names));
}

std::string ZshCompletion(std::span<const Group> groups, std::span<const Flag> global_flags) {
  const auto words = WordsAfter(groups);
  std::string text = fmt::format(
      "#compdef tocsin\n"
      "# zsh completion for tocsin. Generated from src/cli/commands.cc by `make docs`.\n"
      "# To use it: copy this file, as _tocsin, to a folder of $fpath.\n\n"
      "_tocsin() {{\n"
      "  local command= word\n"
      "  local -i i\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    word=$words[i]\n"
      "    case $word in\n"
      "      ({}) ((i++)) ;;\n"
      "      (-*) ;;\n"
      "      (*)\n"
      "        case $command in\n"
      "          ('') command=$word ;;\n"
      "          ({}) command=\"$command $word\" ;;\n"
      "        esac\n"
      "        ;;\n"
      "    esac\n"
      "  done\n"
      "  local -a global=(\n",
      ValueFlags(groups, global_flags), Families(words));
  for (const Flag& flag : global_flags) text += fmt::format("    {}\n", ZshFlag(flag));
  text += "    '--help[Print help.]'\n  )\n  local -a offer\n  case $command in\n";
  for (const auto& [first, seconds] : words) {
    text += fmt::format("    ({})\n      offer=(\n", Quoted(first));
    for (const Word& word : seconds) {
      text +=
          fmt::format("        {}\n",
                      Quoted(fmt::format("{}{}{}", word.name, word.summary.empty() ? "" : ":", ZshText(word.summary))));
    }
    text += "      )\n      _describe command offer\n      ;;\n";
  }
  for (const Command& command : CommandsOf(groups)) {
    if (command.flags.empty()) continue;
    text += fmt::format("    ({})\n      _arguments $global \\\n", Quoted(command.name));
    for (const Flag& flag : command.flags) text += fmt::format("        {} \\\n", ZshFlag(flag));
    text += "        '*:argument:_files'\n      ;;\n";
  }
  return text + "    (*) _arguments $global '*:argument:_files' ;;\n  esac\n}\n\n_tocsin \"$@\"\n";
}

std::string FishCompletion(std::span<const Group> groups, std::span<const Flag> global_flags) {
  const auto words = WordsAfter(groups);
  std::string text = fmt::format(
      "# fish completion for tocsin. Generated from src/cli/commands.cc by `make docs`.\n"
      "# To use it: copy this file to ~/.config/fish/completions/\n\n"
      "# The words of the command so far, without flags and their values.\n"
      "function __tocsin_command\n"
      "  set -l command\n"
      "  set -l skip 0\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    if test $skip = 1\n"
      "      set skip 0\n"
      "      continue\n"
      "    end\n"
      "    switch $word\n"
      "      case {}\n"
      "        set skip 1\n"
      "      case '-*'\n"
      "      case '*'\n"
      "        switch \"$command\"\n"
      "          case ''\n"
      "            set command $word\n"
      "          case {}\n"
      "            set command \"$command $word\"\n"
      "        end\n"
      "    end\n"
      "  end\n"
      "  echo $command\n"
      "end\n\n",
      FishWords(ValueFlags(groups, global_flags)), FishWords(Families(words)));
  for (const auto& [first, seconds] : words) {
    for (const Word& word : seconds) {
      text += fmt::format("{}-f -a {}{}\n", FishWhen(first), word.name,
                          word.summary.empty() ? "" : fmt::format(" -d {}", FishQuoted(word.summary)));
    }
  }
  for (const Command& command : CommandsOf(groups)) {
    for (const Flag& flag : command.flags) text += FishWhen(command.name) + FishFlag(flag);
    if (command.positionals.empty() || command.positionals[0].words.empty()) continue;
    text += fmt::format("{}-f -a {}\n", FishWhen(command.name), FishQuoted(command.positionals[0].words));
  }
  for (const Flag& flag : global_flags) text += "complete -c tocsin " + FishFlag(flag);
  return text + "complete -c tocsin -l help -d 'Print help.'\n";
}

}  // namespace tocsin::cli
