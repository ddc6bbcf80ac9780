// What is said of topics.
#include <utility>

#include "base/nearest.h"
#include "frontend/http/decode.h"
#include "frontend/http/fields.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;

constexpr std::string_view kPull = "pull";
constexpr std::string_view kDelivery = "delivery";

Status PutSetting(TopicChange& change, const TopicSetting& setting, const json::value& value) {
  uint64_t number = 0;
  if (setting.kind == SettingKind::kFlag) {
    TOCSIN_TRY(Put(number, AsBool(setting.name, value)));
  } else {
    const auto max = static_cast<int64_t>(setting.max);
    TOCSIN_TRY(Put(number, AsInteger(setting.name, value, static_cast<int64_t>(setting.min), max)));
  }
  change.settings.emplace_back(&setting, number);
  return {};
}

Status TakeSink(DeliveryChange& change, const json::value& value) {
  const auto sink = AsText("sink", value);
  if (!sink) return std::unexpected(sink.error());
  if (*sink != kPull && std::ranges::find(SinkNames(), *sink) == SinkNames().end()) {
    return FailField(Code::kInvalidArgument, "sink", "sink is \"{}\": it takes {}, {}{}", Shown(*sink), kPull,
                     fmt::join(SinkNames(), ", "), DidYouMean(*sink, SinkNames()));
  }
  change.sink = *sink;
  return {};
}

/// A setting as the text that it is kept as. What it may be for the topic's sink is the topic's own to check.
Result<std::string> SettingText(const DeliveryField& field, const json::value& value) {
  switch (field.kind) {
    case DeliveryFieldKind::kText: {
      const auto text = AsText(field.name, value);
      return text ? Result<std::string>(std::string(*text)) : std::unexpected(text.error());
    }
    case DeliveryFieldKind::kNumber:
    case DeliveryFieldKind::kMillis: {
      if (const auto* number = value.if_int64()) return fmt::to_string(*number);
      if (const auto* number = value.if_uint64()) return fmt::to_string(*number);
      return std::unexpected(AsInteger(field.name, value, 0, 0).error());
    }
    case DeliveryFieldKind::kFlag: {
      const auto flag = AsBool(field.name, value);
      return flag ? Result<std::string>(*flag ? "true" : "false") : std::unexpected(flag.error());
    }
  }
  std::unreachable();
}

Status TakeSetting(DeliveryChange& change, std::string_view name, const json::value& value) {
  if (name == "sink") return TakeSink(change, value);
  const auto field = std::ranges::find(DeliveryFields(), name, &DeliveryField::name);
  if (field == DeliveryFields().end()) {
    std::vector<std::string_view> known = DeliverySettingNames();
    known.insert(known.begin(), "sink");
    return UnknownField(name, known);
  }
  auto text = SettingText(*field, value);
  if (!text) return std::unexpected(std::move(text).error());
  change.settings.insert_or_assign(std::string(name), *std::move(text));
  return {};
}

Status TakeDelivery(TopicChange& change, std::string_view name, const json::value& value) {
  const json::object* const object = value.if_object();
  if (object == nullptr) {
    return FailField(Code::kInvalidArgument, std::string(name), "{} takes an object, such as {{\"sink\":\"pull\"}}",
                     name);
  }
  DeliveryChange& delivery = change.delivery.emplace();
  for (const auto& [key, setting] : *object) {
    if (Status taken = TakeSetting(delivery, {key.data(), key.size()}, setting); !taken) {
      return std::unexpected(Within(std::move(taken).error(), name));
    }
  }
  return {};
}

std::unexpected<Error> UnknownSetting(std::string_view name) {
  std::vector<std::string_view> known;
  for (const TopicSetting& setting : TopicSettings()) known.push_back(setting.name);
  known.push_back(kDelivery);
  return UnknownField(name, known);
}

}  // namespace

Result<TopicChange> DecodeTopicChange(const Document& document) {
  TopicChange change;
  for (const auto& [key, value] : document.root()) {
    const std::string_view name(key.data(), key.size());
    if (name == kDelivery) {
      TOCSIN_TRY(TakeDelivery(change, name, value));
    } else if (const TopicSetting* const setting = FindTopicSetting(name)) {
      TOCSIN_TRY(PutSetting(change, *setting, value));
    } else {
      return UnknownSetting(name);
    }
  }
  return change;
}

}  // namespace tocsin::http
