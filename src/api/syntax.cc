#include "api/syntax.h"

#include <algorithm>

#include "base/text.h"
#include "model/topic.h"

namespace tocsin::api {
namespace {

bool IsWord(const Field& field) { return !field.word.empty() || field.kind == FieldKind::kBareChoice; }

std::string_view ValueOf(const Field& field) {
  if (field.kind == FieldKind::kMillis || field.kind == FieldKind::kMoment) return "ms";
  return field.kind == FieldKind::kNumber ? "n" : field.name;
}

/// "DELAY ms", "DEAD", "REPLACE | KEEP".
std::string UsageOf(const Field& field) {
  if (field.kind == FieldKind::kBareChoice) return fmt::format("{}", fmt::join(RespWords({&field, 1}), " | "));
  if (field.kind == FieldKind::kFlag) return std::string(field.word);
  if (field.kind == FieldKind::kHeaders) return fmt::format("{} name value ...", field.word);
  if (field.kind == FieldKind::kChoice) return fmt::format("{} {}", field.word, fmt::join(field.choices, "|"));
  return fmt::format("{} {}", field.word, ValueOf(field));
}

void AddWords(const Verb& verb, Syntax& syntax) {
  bool joined = false;  // with the field before
  for (const Field& field : verb.fields) {
    if (!IsWord(field)) continue;
    syntax.text += fmt::format("{}{}", joined ? " | " : " [", UsageOf(field));
    joined = field.excludes_next && field.kind != FieldKind::kPayload;
    if (!joined) syntax.text += ']';
    syntax.args_max += 1 + ValuesOf(field);
  }
}

std::string SettingUsage(std::string_view name) {
  if (const TopicSetting* const setting = FindTopicSetting(name)) {
    if (setting->kind == SettingKind::kFlag) return "true|false";
    return setting->kind == SettingKind::kMillis ? "ms" : "n";
  }
  if (name == "sink") return fmt::format("{}", fmt::join(DeliveryNames(), "|"));
  constexpr std::string_view kUsages[] = {"text", "n", "ms", "true|false"};  // in the order of DeliveryFieldKind
  const auto field = std::ranges::find(DeliveryFields(), name, &DeliveryField::name);
  return std::string(kUsages[static_cast<size_t>(field->kind)]);
}

}  // namespace

bool IsFixed(const Field& field) {
  return field.in != In::kQuery && field.word.empty() &&
         (field.required || field.fixed || field.kind == FieldKind::kPayload);
}

size_t ValuesOf(const Field& field) {
  if (field.kind == FieldKind::kFlag || field.kind == FieldKind::kBareChoice) return 0;
  return field.kind == FieldKind::kHeaders ? 2 : 1;
}

std::vector<std::string> RespWords(std::span<const Field> fields) {
  std::vector<std::string> words;
  for (const Field& field : fields) {
    if (!field.word.empty()) words.emplace_back(field.word);
    if (field.kind != FieldKind::kBareChoice) continue;
    for (const std::string_view choice : field.choices.subspan(1)) words.push_back(Capitals(choice));
  }
  return words;
}

std::vector<std::string_view> DeliveryNames() {
  std::vector<std::string_view> names{"pull"};
  names.insert(names.end(), SinkNames().begin(), SinkNames().end());
  return names;
}

const std::vector<std::string>& SettingNames() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const TopicSetting& setting : TopicSettings()) all.emplace_back(setting.name);
    all.emplace_back("sink");
    for (const std::string_view name : DeliverySettingNames()) all.emplace_back(name);
    return all;
  }();
  return names;
}

Syntax SyntaxOf(const Verb& verb) {
  Syntax syntax;
  const auto fixed = [&](std::string_view name) {
    syntax.text += fmt::format("{}{}", syntax.text.empty() ? "" : " ", name);
    ++syntax.args_min;
  };
  if (verb.HasTopic()) fixed("topic");
  if (verb.HasId()) fixed("id");
  bool many = false;
  for (const Field& field : verb.fields) {
    if (field.kind == FieldKind::kTokens || field.kind == FieldKind::kHeaders) many = true;
    if (field.kind == FieldKind::kTokens) {
      fixed("token");
      syntax.text += " [token ...]";
    } else if (IsFixed(field)) {
      fixed(field.name);
    }
  }
  syntax.args_max = syntax.args_min;
  AddWords(verb, syntax);
  if (verb.takes_settings) {
    for (const std::string& name : SettingNames()) {
      syntax.text += fmt::format(" [{} {}]", Capitals(name), SettingUsage(name));
    }
    syntax.args_max += 2 * SettingNames().size();
  }
  if (many) syntax.args_max = kAnyNumber;
  if (syntax.text.starts_with(' ')) syntax.text.erase(0, 1);  // there are words only
  return syntax;
}

}  // namespace tocsin::api
