#include <algorithm>

#include "api/syntax.h"
#include "model/topic.h"

namespace tocsin::api {
namespace {

/// The anchor that a heading such as `POST /v1/topics/{topic}/jobs` gets.
std::string AnchorOf(const Verb& verb) {
  std::string anchor;
  for (const char c : verb.http) {
    if (c == ' ') anchor += '-';
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) anchor += static_cast<char>(std::tolower(c));
  }
  return anchor;
}

std::string Calls() {
  std::string text = "| call | what it does | scope |\n|---|---|---|\n";
  for (const Verb& verb : Verbs()) {
    text +=
        fmt::format("| [`{}`](#{}) | {} | {} |\n", verb.http, AnchorOf(verb), verb.summary, auth::ScopeOf(verb.access));
  }
  return text;
}

/// The table of docs/resp.md that a command is in.
std::string_view FamilyOf(std::string_view command) {
  if (command.starts_with("TOPIC.")) return "TOPIC.";
  const bool of_jobs = command.starts_with("JOB.") || command.starts_with("LEASE.") || command.starts_with("DEAD.");
  return of_jobs ? "JOB." : "";
}

std::string Commands(std::string_view family) {
  std::string text;
  for (const Verb& verb : Verbs()) {
    if (verb.command.empty() || FamilyOf(verb.command) != family) continue;
    const std::string syntax = SyntaxOf(verb).text;
    text += fmt::format("- `{}{}{}`\n  {}. Reply: {}.\n", verb.command, syntax.empty() ? "" : " ", syntax, verb.summary,
                        verb.reply);
  }
  return text;
}

std::string_view TypeOf(FieldKind kind) {
  if (IsNumber(kind)) return "integer";
  if (kind == FieldKind::kFlag) return "true or false";
  if (kind == FieldKind::kPayload) return "string, or other JSON";
  if (kind == FieldKind::kHeaders) return "object of strings";
  return kind == FieldKind::kTokens || kind == FieldKind::kNames ? "array of strings" : "string";
}

std::string RangeOf(int64_t min, int64_t max) {
  if (max >= std::numeric_limits<int64_t>::max() - 1) return fmt::format("from {}", min);
  return fmt::format("{} to {}", min, max);
}

std::string RangeOf(const Field& field) {
  if (!field.choices.empty()) return fmt::format("`{}`", fmt::join(field.choices, "`, `"));
  if (IsNumber(field.kind)) return RangeOf(field.min, field.max);
  if (field.kind == FieldKind::kName) return "a name";
  return field.max < std::numeric_limits<int64_t>::max() ? fmt::format("up to {} bytes", field.max) : "";
}

std::string Fields(const Verb& verb) {
  std::string text = "| field | type | range | default | meaning |\n|---|---|---|---|---|\n";
  const bool has_body = std::ranges::any_of(verb.fields, [](const Field& field) { return field.in == In::kBody; });
  for (const Field& field : verb.fields) {
    if (field.in == In::kResp) continue;
    const std::string_view where = verb.InWhere(field)                  ? ", in `where`"
                                   : has_body && field.in == In::kQuery ? ", in the query"
                                                                        : "";
    std::string fallback(field.required ? "required" : field.fallback);
    std::erase(fallback, '"');
    text += fmt::format("| `{}` | {}{} | {} | {} | {} |\n", field.name, TypeOf(field.kind), where, RangeOf(field),
                        fallback, field.doc);
  }
  return text;
}

std::string Settings() {
  std::string text = "| setting | type | range | default | meaning |\n|---|---|---|---|---|\n";
  for (const TopicSetting& setting : TopicSettings()) {
    const bool is_flag = setting.kind == SettingKind::kFlag;
    const uint64_t fallback = setting.get(Topic{});
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", setting.name, is_flag ? "true or false" : "integer",
                        is_flag ? "" : RangeOf(static_cast<int64_t>(setting.min), static_cast<int64_t>(setting.max)),
                        is_flag ? (fallback != 0 ? "true" : "false") : fmt::to_string(fallback), setting.doc);
  }
  return text;
}

}  // namespace

Result<std::string> DocTable(std::string_view which) {
  if (which == "calls") return Calls();
  if (which == "commands JOB") return Commands("JOB.");
  if (which == "commands TOPIC") return Commands("TOPIC.");
  if (which == "commands") return Commands("");
  if (which == "settings") return Settings();
  constexpr std::string_view kFields = "fields ";
  if (which.starts_with(kFields)) {
    const auto verb = std::ranges::find(Verbs(), which.substr(kFields.size()), &Verb::name);
    if (verb != Verbs().end()) return Fields(*verb);
  }
  return Fail(Code::kInvalidArgument, "there is no table \"{}\"", which);
}

}  // namespace tocsin::api
