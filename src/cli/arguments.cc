#include "cli/arguments.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "cli/text/human.h"

namespace tocsin::cli {
namespace {

Result<int64_t> ParseNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc::result_out_of_range) return Fail(Code::kInvalidArgument, "\"{}\" is too large", text);
  if (problem != std::errc{} || end != text.data() + text.size() || number < 0) {
    return Fail(Code::kInvalidArgument, "\"{}\" is not a whole number from 0", text);
  }
  return number;
}

Result<int64_t> CheckChoice(const Flag& flag, std::string_view text) {
  if (std::ranges::find(flag.choices, text) != flag.choices.end()) return 0;
  const std::span before_last(flag.choices.begin(), flag.choices.size() - 1);
  return Fail(Code::kInvalidArgument, "\"{}\" is not {}{}{}{}", text, fmt::join(before_last, ", "),
              before_last.empty() ? "" : " or ", flag.choices.back(), DidYouMean(text, flag.choices));
}

/// The value of `text` for this flag, in ms or bytes; 0 for texts.
Result<int64_t> ParseValue(const Flag& flag, std::string_view text, Time now) {
  switch (flag.kind) {
    case Kind::kText:
    case Kind::kSwitch:
      return 0;
    case Kind::kNumber:
      return ParseNumber(text);
    case Kind::kDuration: {
      TOCSIN_ASSIGN(const Millis duration, ParseDuration(text));
      return duration.count();
    }
    case Kind::kMoment: {
      TOCSIN_ASSIGN(const Time moment, ParseMoment(text, now));
      return ToMs(moment);
    }
    case Kind::kSize:
      return ParseSize(text);
    case Kind::kChoice:
      return CheckChoice(flag, text);
  }
  return 0;
}

bool IsFlag(std::string_view word) { return word.size() > 1 && word[0] == '-'; }
bool IsHelp(std::string_view word) { return word == "--help" || word == "-h"; }

bool IsFamily(std::span<const Group> groups, std::string_view word) {
  const std::string prefix = std::string(word) + ' ';
  auto commands = CommandsOf(groups);
  return std::ranges::any_of(commands, [&](const Command& one) { return one.name.starts_with(prefix); });
}

/// One pass over the words.
class Parser {
 public:
  Parser(const Grammar& grammar, const std::vector<std::string>& words) : grammar_(grammar), words_(words) {}

  Result<Parsed> Run() {
    const bool help_word = !words_.empty() && words_[0] == "help";  // tocsin help submit
    if (help_word) parsed_.action = JobAction::kHelp;
    Status first;  // the first mistake; not reported to a user who asks for help
    for (at_ = help_word ? 1 : 0; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (!flags_ended_ && word == "--") {
        flags_ended_ = true;
      } else if (parsed_.command == nullptr && !(IsFlag(word) && !flags_ended_)) {
        TOCSIN_TRY(TakeName(word));
      } else if (Status taken = TakeArgument(word); !taken && first) {
        first = std::move(taken);
      }
    }
    if (parsed_.action == JobAction::kHelp) {
      if (parsed_.command != nullptr) parsed_.family.clear();
      return std::move(parsed_);
    }
    TOCSIN_TRY(std::move(first));
    if (parsed_.action == JobAction::kVersion) return std::move(parsed_);
    TOCSIN_TRY(CheckComplete());
    TOCSIN_TRY(TakeFallbacks());
    return std::move(parsed_);
  }

 private:
  Status TakeArgument(const std::string& word) {
    if (flags_ended_ || !IsFlag(word)) return TakePositional(word);
    if (IsHelp(word)) {
      parsed_.action = JobAction::kHelp;
    } else if (word == "--version") {
      if (parsed_.action == JobAction::kRun) parsed_.action = JobAction::kVersion;
    } else {
      return TakeFlag(word);
    }
    return {};
  }

  /// The message, and how the command is used, or the commands of the family.
  std::unexpected<Error> Wrong(std::string message) const {
    if (parsed_.command != nullptr) {
      return Fail(Code::kInvalidArgument, "{}\nusage: {}\nsee: tocsin {} --help", message, UsageOf(*parsed_.command),
                  parsed_.command->name);
    }
    if (parsed_.family.empty()) {
      return Fail(Code::kInvalidArgument, "{}\nusage: tocsin COMMAND [arguments]\nsee: tocsin --help", message);
    }
    for (const Command& command : CommandsOf(grammar_.groups)) {
      if (command.name.starts_with(parsed_.family + ' ')) message += "\nusage: " + UsageOf(command);
    }
    return Fail(Code::kInvalidArgument, "{}\nsee: tocsin {} --help", message, parsed_.family);
  }

  Status TakeName(const std::string& word) {
    const std::string name = parsed_.family.empty() ? word : parsed_.family + ' ' + word;
    parsed_.command = FindCommand(grammar_.groups, name);
    if (parsed_.command != nullptr) return {};
    if (parsed_.family.empty() && IsFamily(grammar_.groups, word)) {
      parsed_.family = word;
      return {};
    }
    std::vector<std::string> known;
    for (const Command& command : CommandsOf(grammar_.groups)) {
      known.emplace_back(command.name);
      const size_t space = command.name.find(' ');
      if (parsed_.family.empty() && space != std::string_view::npos) known.emplace_back(command.name.substr(0, space));
    }
    return Wrong(fmt::format("unknown command \"{}\"{}", name, DidYouMean(name, known)));
  }

  /// Those of the command, if there is one yet, and those of every command.
  std::array<std::span<const Flag>, 2> Flags() const {
    if (parsed_.command == nullptr) return {std::span<const Flag>(), grammar_.global_flags};
    return {parsed_.command->flags, grammar_.global_flags};
  }

  const Flag* FindFlag(std::string_view name) const {
    for (const std::span<const Flag> flags : Flags()) {
      if (const auto found = std::ranges::find(flags, name, &Flag::name); found != flags.end()) return &*found;
    }
    return nullptr;
  }

  std::unexpected<Error> UnknownFlag(std::string_view word) const {
    std::vector<std::string> known{"--help", "--version"};
    for (const std::span<const Flag> flags : Flags() | std::views::reverse) {
      for (const Flag& flag : flags) known.push_back("--" + std::string(flag.name));
    }
    std::string hint = DidYouMean(word, known);
    if (hint.empty() && parsed_.command != nullptr) hint = "; put an argument that begins with - after --";
    return Wrong(fmt::format("unknown flag \"{}\"{}", word, hint));
  }

  Status TakeFlag(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string written = word.substr(0, equals);
    const Flag* const flag = written.starts_with("--") ? FindFlag(std::string_view(written).substr(2)) : nullptr;
    if (flag == nullptr) return UnknownFlag(written);
    if (!flag->repeated && parsed_.arguments.Has(flag->name)) return Wrong(fmt::format("{} is given twice", written));
    std::string value;
    if (flag->kind == Kind::kSwitch) {
      if (equals != std::string::npos) return Wrong(fmt::format("{} takes no value", written));
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (at_ + 1 < words_.size() && !IsKnownFlag(words_[at_ + 1]) &&
               (flag->kind == Kind::kText || !IsHelp(words_[at_ + 1]))) {
      value = words_[++at_];
    } else {
      return Wrong(fmt::format("{} needs a value: {} {}", written, written, ValueName(*flag)));
    }
    return Add(flag->name, flag, written, std::move(value));
  }

  /// Whether a word in the place of a value is the next flag instead.
  bool IsKnownFlag(std::string_view word) const {
    return word.starts_with("--") && (word == "--" || FindFlag(word.substr(2, word.find('=') - 2)) != nullptr);
  }

  Status Add(std::string_view name, const Flag* flag, std::string_view written, std::string value) {
    Status added = parsed_.arguments.Add(name, flag, std::move(value), grammar_.now);
    if (!added) return Wrong(fmt::format("{}: {}", written, added.error().message));
    return {};
  }

  Status TakePositional(const std::string& word) {
    const auto& positionals = parsed_.command->positionals;
    if (next_ == positionals.size()) return Wrong(fmt::format("\"{}\" is too much", word));
    const Positional& positional = positionals[next_];
    if (positional.required && word.empty()) return Wrong(fmt::format("{} is empty", positional.name));
    if (!positional.repeated) ++next_;
    return Add(positional.name, nullptr, positional.name, word);
  }

  Status CheckComplete() {
    if (parsed_.command == nullptr) {
      return Wrong(parsed_.family.empty() ? "no command is given" : fmt::format("{} what?", parsed_.family));
    }
    for (const Positional& positional : parsed_.command->positionals) {
      if (!positional.required || parsed_.arguments.Has(positional.name)) continue;
      return Wrong(fmt::format("{} is missing: {}", positional.name, positional.doc));
    }
    for (const Flag& flag : parsed_.command->flags) {
      if (!flag.required || parsed_.arguments.Has(flag.name)) continue;
      return Wrong(fmt::format("--{} {} is missing: {}", flag.name, ValueName(flag), flag.doc));
    }
    return {};
  }

  /// Takes what was not given from the environment, or from the table.
  Status TakeFallbacks() {
    for (const std::span<const Flag> flags : Flags()) {
      for (const Flag& flag : flags) {
        if (parsed_.arguments.Has(flag.name)) continue;
        const auto value = flag.variable.empty() ? std::nullopt : grammar_.variable(flag.variable);
        if (value && !value->empty()) {
          TOCSIN_TRY(Add(flag.name, &flag, flag.variable, *value));
        } else if (!flag.fallback.empty()) {
          TOCSIN_TRY(Add(flag.name, &flag, flag.name, std::string(flag.fallback)));
        }
      }
    }
    return {};
  }

  const Grammar& grammar_;
  const std::vector<std::string>& words_;
  size_t at_ = 0;
  size_t next_ = 0;  // positional
  bool flags_ended_ = false;
  Parsed parsed_;
};

}  // namespace

std::optional<std::string> Arguments::Text(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second.front().text;
}

std::optional<int64_t> Arguments::Number(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second.front().number;
}

std::optional<Millis> Arguments::Duration(std::string_view name) const {
  return Number(name).transform([](int64_t ms) { return Millis(ms); });
}

std::vector<std::string> Arguments::All(std::string_view name) const {
  std::vector<std::string> texts;
  if (const auto found = values_.find(name); found != values_.end()) {
    for (const Value& value : found->second) texts.push_back(value.text);
  }
  return texts;
}

Status Arguments::Add(std::string_view name, const Flag* flag, std::string text, Time now) {
  TOCSIN_ASSIGN(const int64_t number, flag == nullptr ? 0 : ParseValue(*flag, text, now));
  values_[std::string(name)].push_back({std::move(text), number});
  return {};
}

Result<Parsed> Parse(const Grammar& grammar, const std::vector<std::string>& words) {
  return Parser(grammar, words).Run();
}

std::string_view ValueName(const Flag& flag) {
  // In the order of Kind.
  static constexpr std::string_view kOfKinds[] = {"TEXT", "", "N", "DURATION", "MOMENT", "SIZE", "WHAT"};
  return flag.value.empty() ? kOfKinds[std::to_underlying(flag.kind)] : flag.value;
}

std::string UsageOf(const Command& command) {
  std::string text = fmt::format("tocsin {}", command.name);
  for (const Positional& positional : command.positionals) {
    const std::string_view dots = positional.repeated ? "..." : "";
    text += positional.required ? fmt::format(" {}{}", positional.name, dots)
                                : fmt::format(" [{}{}]", positional.name, dots);
  }
  bool optional = false;
  for (const Flag& flag : command.flags) {
    if (flag.required) text += fmt::format(" --{} {}", flag.name, ValueName(flag));
    optional |= !flag.required;
  }
  return optional ? text + " [flags]" : text;
}

const Command* FindCommand(std::span<const Group> groups, std::string_view name) {
  for (const Command& command : CommandsOf(groups)) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

}  // namespace tocsin::cli
