// What is said of topics.
#include <utility>

#include "base/nearest.h"
#include "frontend/http/decode.h"
#include "frontend/http/fields.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;

constexpr std::string_view kPull = "pull";

/// What else holds for the number is the topic's own to check.
template <auto kMember, int64_t kMin = 0, int64_t kMax = std::numeric_limits<int64_t>::max()>
Status TakeNumber(TopicChange& change, std::string_view name, const json::value& value) {
  return Put(change.*kMember, AsInteger(name, value, kMin, kMax));
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

constexpr Field<TopicChange> kFields[] = {
    {"slots", TakeNumber<&TopicChange::slots, 1, kSlotsMax>},
    {"capacity_jobs", TakeNumber<&TopicChange::capacity_jobs>},
    {"capacity_bytes", TakeNumber<&TopicChange::capacity_bytes>},
    {"lease_ms",
     [](TopicChange& c, std::string_view name, const json::value& v) { return Put(c.lease, AsMillis(name, v)); }},
    {"max_attempts", TakeNumber<&TopicChange::max_attempts, 1, kAttemptsMax>},
    {"backoff_base_ms", [](TopicChange& c, std::string_view name,
                           const json::value& v) { return Put(c.backoff_base, AsMillis(name, v)); }},
    {"backoff_max_ms",
     [](TopicChange& c, std::string_view name, const json::value& v) { return Put(c.backoff_max, AsMillis(name, v)); }},
    {"count_limit", TakeNumber<&TopicChange::count_limit, 1, kCountMax>},
    {"retention_ms",
     [](TopicChange& c, std::string_view name, const json::value& v) { return Put(c.retention, AsMillis(name, v)); }},
    {"paused",
     [](TopicChange& c, std::string_view name, const json::value& v) { return Put(c.paused, AsBool(name, v)); }},
    {"delivery", TakeDelivery},
};

}  // namespace

Result<TopicChange> DecodeTopicChange(const Document& document) {
  TopicChange change;
  TOCSIN_TRY(ReadFields(change, document.root(), kFields));
  return change;
}

}  // namespace tocsin::http
