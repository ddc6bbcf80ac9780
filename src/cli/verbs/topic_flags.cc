#include "cli/verbs/topic_flags.h"

#include <algorithm>
#include <string>

#include "cli/commands.h"
#include "cli/text/human.h"
#include "model/delivery.h"
#include "model/topic.h"

namespace tocsin::cli {
namespace {

/// A duration needs no unit in its name; a name that every command takes already gets the word sink before it.
std::string NameOf(const DeliveryField& field) {
  std::string name(field.name);
  if (field.kind == DeliveryFieldKind::kMillis) name.resize(name.rfind("_ms"));
  std::ranges::replace(name, '_', '-');
  const bool taken = std::ranges::find(GlobalFlags(), name, &Flag::name) != GlobalFlags().end();
  return taken ? fmt::format("sink-{}", name) : name;
}

/// As a user would write it.
std::string FallbackOf(const DeliveryField& field) {
  if (field.kind == DeliveryFieldKind::kFlag) return field.fallback == "true" ? "yes" : "no";
  if (field.kind != DeliveryFieldKind::kMillis) return std::string(field.fallback);
  return ExactDuration(Millis(std::stoll(std::string(field.fallback))));
}

/// The texts of all rows of this name, each with its sinks if they differ.
std::string DocOf(std::string_view name) {
  std::string doc;
  for (const DeliveryField& field : DeliveryFields()) {
    if (field.name != name) continue;
    if (!doc.empty()) doc += ' ';
    std::string sinks(field.sinks);
    std::ranges::replace(sinks, ' ', '/');
    if (!sinks.empty()) doc += fmt::format("[{}] ", sinks);
    doc += field.doc;
    if (!field.fallback.empty()) doc += fmt::format(" Default: {}.", FallbackOf(field));
  }
  return doc;
}

Flag YesNo(Flag flag) {
  flag.kind = Kind::kChoice;
  flag.value = "YESNO";
  flag.choices = {"yes", "no"};
  return flag;
}

Flag FlagOf(const DeliveryField& field) {
  Flag flag{.name = Keep(NameOf(field)), .doc = Keep(DocOf(field.name))};
  if (field.kind == DeliveryFieldKind::kFlag) return YesNo(flag);
  if (field.kind == DeliveryFieldKind::kNumber) flag.kind = Kind::kNumber;
  if (field.kind == DeliveryFieldKind::kMillis) flag.kind = Kind::kDuration;
  return flag;
}

Flag FlagOf(const TopicSetting& setting) {
  Flag flag{.name = setting.flag, .kind = Kind::kNumber, .doc = setting.doc};
  if (setting.kind == SettingKind::kFlag) return YesNo(flag);
  if (setting.kind == SettingKind::kBytes) flag.kind = Kind::kSize;
  if (setting.kind == SettingKind::kMillis) flag.kind = Kind::kDuration;
  return flag;
}

std::vector<TopicFlag> MakeFlags() {
  std::vector<TopicFlag> flags;
  for (const TopicSetting& setting : TopicSettings()) flags.push_back({FlagOf(setting), setting.name});
  Flag sink{.name = "sink",
            .kind = Kind::kChoice,
            .doc =
                "Where the server pushes due jobs to; with pull, consumers reserve them. A new sink begins with "
                "its defaults.",
            .choices = {"pull"}};
  sink.choices.insert(sink.choices.end(), SinkNames().begin(), SinkNames().end());
  flags.push_back({std::move(sink), "sink", true});
  for (const std::string_view name : DeliverySettingNames()) {
    flags.push_back({FlagOf(*std::ranges::find(DeliveryFields(), name, &DeliveryField::name)), name, true});
  }
  return flags;
}

}  // namespace

std::span<const TopicFlag> TopicFlags() {
  static const std::vector<TopicFlag> flags = MakeFlags();
  return flags;
}

std::string_view FlagNameOf(std::string_view field) {
  const auto found = std::ranges::find(TopicFlags(), field, &TopicFlag::field);
  return found == TopicFlags().end() ? field : found->flag.name;
}

}  // namespace tocsin::cli
