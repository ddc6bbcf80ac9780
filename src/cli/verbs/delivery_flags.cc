#include "cli/verbs/delivery_flags.h"

#include <algorithm>
#include <deque>
#include <string>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/text/human_time.h"
#include "model/delivery.h"

namespace tocsin::cli {
namespace {

std::string_view Keep(std::string text) {
  static std::deque<std::string> kept;  // views stay good while it grows
  return kept.emplace_back(std::move(text));
}

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
  switch (field.kind) {
    case DeliveryFieldKind::kText:
    case DeliveryFieldKind::kNumber:
      return std::string(field.fallback);
    case DeliveryFieldKind::kMillis:
      return ExactDuration(Millis(std::stoll(std::string(field.fallback))));
    case DeliveryFieldKind::kFlag:
      return field.fallback == "true" ? "yes" : "no";
  }
  return "";
}

/// What the rows of this name say, each with its sinks where they differ.
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

Flag FlagOf(const DeliveryField& field) {
  Flag flag{.name = Keep(NameOf(field)), .doc = Keep(DocOf(field.name))};
  switch (field.kind) {
    case DeliveryFieldKind::kText:
      flag.value = "TEXT";
      break;
    case DeliveryFieldKind::kNumber:
      flag.kind = Kind::kNumber;
      flag.value = "N";
      break;
    case DeliveryFieldKind::kMillis:
      flag.kind = Kind::kDuration;
      flag.value = "DURATION";
      break;
    case DeliveryFieldKind::kFlag:
      flag.kind = Kind::kChoice;
      flag.value = "YESNO";
      flag.choices = {"yes", "no"};
      break;
  }
  return flag;
}

std::vector<DeliveryFlag> MakeFlags() {
  Flag sink{.name = "sink",
            .kind = Kind::kChoice,
            .value = "SINK",
            .doc =
                "Where due jobs are pushed to; with pull, consumers reserve them. Another sink begins with its "
                "defaults.",
            .choices = {"pull"}};
  sink.choices.insert(sink.choices.end(), SinkNames().begin(), SinkNames().end());
  std::vector<DeliveryFlag> flags{{std::move(sink), "sink"}};
  for (const std::string_view name : DeliverySettingNames()) {
    flags.push_back({FlagOf(*std::ranges::find(DeliveryFields(), name, &DeliveryField::name)), name});
  }
  return flags;
}

}  // namespace

std::span<const DeliveryFlag> DeliveryFlags() {
  static const std::vector<DeliveryFlag> flags = MakeFlags();
  return flags;
}

std::string_view FlagNameOf(std::string_view field) {
  const auto found = std::ranges::find(DeliveryFlags(), field, &DeliveryFlag::field);
  return found == DeliveryFlags().end() ? field : found->flag.name;
}

}  // namespace tocsin::cli
