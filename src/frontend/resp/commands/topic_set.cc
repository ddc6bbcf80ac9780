#include <algorithm>
#include <set>

#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr std::string_view kSwitch[] = {"false", "true"};

Status TakeSetting(TopicChange& change, const TopicSetting& setting, std::string_view word, std::string_view text) {
  uint64_t number = 0;
  if (setting.kind == SettingKind::kFlag) {
    TOCSIN_TRY(PutChoice(number, word, text, kSwitch));
  } else {
    const auto max = static_cast<int64_t>(setting.max);
    TOCSIN_TRY(Put(number, Number(word, text, static_cast<int64_t>(setting.min), max)));
  }
  change.settings.emplace_back(&setting, number);
  return {};
}

DeliveryChange& DeliveryOf(TopicChange& change) {
  if (!change.delivery) change.delivery.emplace();
  return *change.delivery;
}

/// "pull" and the sinks.
const std::vector<std::string_view>& DeliveryNames() {
  static const auto sinks = [] {
    std::vector<std::string_view> names{"pull"};
    names.insert(names.end(), SinkNames().begin(), SinkNames().end());
    return names;
  }();
  return sinks;
}

Status TakeSink(TopicChange& change, std::string_view word, std::string_view text) {
  size_t sink = 0;
  TOCSIN_TRY(PutChoice(sink, word, text, DeliveryNames()));
  DeliveryOf(change).sink = DeliveryNames()[sink];
  return {};
}

/// Validate checks whether the topic's sink takes the setting.
Status TakeSinkSetting(TopicChange& change, std::string_view name, std::string_view word, std::string_view text) {
  const auto field = std::ranges::find(DeliveryFields(), name, &DeliveryField::name);
  if (field->kind == DeliveryFieldKind::kFlag) {
    bool flag = false;
    TOCSIN_TRY(PutChoice(flag, word, text, kSwitch));
    text = kSwitch[flag ? 1 : 0];
  }
  DeliveryOf(change).settings.insert_or_assign(std::string(name), std::string(text));
  return {};
}

/// The names of all options: the topic's settings, the sink, and the settings of sinks.
const std::vector<std::string>& Names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const TopicSetting& setting : TopicSettings()) all.emplace_back(setting.name);
    all.emplace_back("sink");
    for (const std::string_view name : DeliverySettingNames()) all.emplace_back(name);
    return all;
  }();
  return names;
}

Status Take(TopicChange& change, const std::string& name, std::string_view text) {
  const std::string word = Capitals(name);
  if (const TopicSetting* const setting = FindTopicSetting(name)) return TakeSetting(change, *setting, word, text);
  if (name == "sink") return TakeSink(change, word, text);
  return TakeSinkSetting(change, name, word, text);
}

Result<TopicChange> ReadChange(Values args) {
  TopicChange change;
  std::set<std::string_view> seen;
  for (; !args.empty(); args = args.subspan(2)) {
    const auto name = std::ranges::find_if(Names(), [&](const auto& each) { return SameWord(args[0], each); });
    if (name == Names().end()) {
      std::vector<std::string> words;
      for (const std::string& each : Names()) words.push_back(Capitals(each));
      return UnknownWord("option", args[0], std::vector<std::string_view>(words.begin(), words.end()));
    }
    const std::string word = Capitals(*name);
    if (!seen.insert(*name).second) return FailField(Code::kInvalidArgument, word, "{} is given twice", word);
    if (args.size() == 1) return MissingValue(word, 1, 0);
    TOCSIN_TRY(Take(change, *name, args[1]));
  }
  return change;
}

std::string_view ValueOf(DeliveryFieldKind kind) {
  switch (kind) {
    case DeliveryFieldKind::kText:
      return "text";
    case DeliveryFieldKind::kNumber:
      return "n";
    case DeliveryFieldKind::kMillis:
      return "ms";
    case DeliveryFieldKind::kFlag:
      return "true|false";
  }
  return "text";
}

std::string_view ValueOf(SettingKind kind) {
  if (kind == SettingKind::kFlag) return "true|false";
  return kind == SettingKind::kMillis ? "ms" : "n";
}

std::string_view Syntax() {
  static const std::string syntax = [] {
    std::string text = "topic";
    for (const TopicSetting& setting : TopicSettings()) {
      text += fmt::format(" [{} {}]", Capitals(setting.name), ValueOf(setting.kind));
    }
    text += fmt::format(" [SINK {}]", fmt::join(DeliveryNames(), "|"));
    for (const std::string_view name : DeliverySettingNames()) {
      const auto field = std::ranges::find(DeliveryFields(), name, &DeliveryField::name);
      text += fmt::format(" [{} {}]", Capitals(name), ValueOf(field->kind));
    }
    return text;
  }();
  return syntax;
}

void Run(Call& call) {
  auto change = ReadChange(call.args.subspan(1));
  if (!change) return call.Fail(change.error());
  ChangeTopic(call, {.topic = std::string(call.topic()), .change = *std::move(change)});
}

}  // namespace

const Command kTopicSet = {
    .name = "TOPIC.SET",
    .syntax = Syntax(),
    .summary = "Creates a topic or changes its settings; what is not named keeps its value.",
    .args_min = 1,
    .args_max = 1 + 2 * Names().size(),
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .writes = true,
    .run = Run,
};

}  // namespace tocsin::resp
