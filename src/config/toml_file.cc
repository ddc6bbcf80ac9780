#include <algorithm>
#include <ranges>
#include <sstream>

#include <toml.hpp>

#include "base/text.h"
#include "config/options.h"

namespace tocsin {
namespace {

// The library parses nested values recursively and could run out of stack. No valid file has many brackets, so bound
// their number, and with it their depth.
constexpr auto kBracketsMax = 256;

/// The number of the first line that is not UTF-8, or 0. The library notices too, but reads past its buffer to say so.
size_t FirstBadLine(std::string_view text) {
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    if (!IsUtf8(text.substr(0, end))) return line;
    text.remove_prefix(end);
  }
  return 0;
}

/// The line of a value, as editors write it.
std::string Place(const std::string& name, const toml::value& value) {
  return fmt::format("{}:{}", name, value.location().line());
}

bool IsTable(std::string_view path) {
  const std::string prefix = std::string(path) + ".";
  return std::ranges::any_of(Options(), [&](const Option& option) { return option.key.starts_with(prefix); });
}

/// Numbers, true and false must be bare and all else quoted, except that a size may be a bare number of bytes.
Result<std::string> ValueText(const Option& option, const toml::value& value) {
  const bool size = std::holds_alternative<uint64_t Config::*>(option.member);
  const bool number = std::holds_alternative<int Config::*>(option.member);
  if (value.is_integer() && (number || size)) return fmt::format("{}", value.as_integer());
  const bool on_or_off = std::holds_alternative<bool Config::*>(option.member);
  if (value.is_boolean() && on_or_off) return value.as_boolean() ? "true" : "false";
  if (value.is_string() && !number && !on_or_off) return value.as_string().str;
  return Fail(Code::kInvalidArgument, "{} must be {}", option.key,
              number      ? "a whole number without quotes"
              : on_or_off ? "true or false without quotes"
                          : "a string in quotes");
}

Status Flatten(const toml::table& table, const std::string& prefix, const std::string& name,
               std::vector<Setting>& settings) {
  for (const auto& [key, value] : table) {
    const std::string path = prefix + key;
    const std::string place = Place(name, value);
    if (const Option* option = FindOption(path)) {
      Result<std::string> text = ValueText(*option, value);
      if (!text) return std::unexpected(std::move(text).error().Prefixed(place));
      settings.push_back({option, *std::move(text), place});
    } else if (value.is_table() && IsTable(path)) {
      TOCSIN_TRY(Flatten(value.as_table(), path + ".", name, settings));
    } else {
      return FailField(Code::kUnknownField, path, "{}: unknown key \"{}\"{}", place, path,
                       DidYouMean(path, std::views::transform(Options(), &Option::key)));
    }
  }
  return {};
}

/// The library's messages show the line with an arrow below it; the first line is enough.
std::string FirstLine(std::string_view message) {
  constexpr std::string_view kPrefix = "[error] ";
  if (message.starts_with(kPrefix)) message.remove_prefix(kPrefix.size());
  return std::string(message.substr(0, message.find('\n')));
}

}  // namespace

Result<std::vector<Setting>> ParseToml(const std::string& text, const std::string& name) {
  if (std::ranges::count_if(text, [](char c) { return c == '[' || c == '{'; }) > kBracketsMax) {
    return Fail(Code::kInvalidArgument, "{}: more than {} brackets: this is not a configuration of Tocsin", name,
                kBracketsMax);
  }
  if (const size_t line = FirstBadLine(text); line > 0) {
    return Fail(Code::kInvalidArgument, "{}:{}: TOML is UTF-8, and this line is not", name, line);
  }
  std::vector<Setting> settings;
  try {
    std::istringstream stream(text);
    const toml::value root = toml::parse(stream, name);
    TOCSIN_TRY(Flatten(root.as_table(), "", name, settings));
  } catch (const toml::exception& problem) {
    return Fail(Code::kInvalidArgument, "{}:{}: {}", name, problem.location().line(), FirstLine(problem.what()));
  } catch (const std::exception& problem) {
    return Fail(Code::kInvalidArgument, "{}: {}", name, FirstLine(problem.what()));
  }
  return settings;
}

}  // namespace tocsin
