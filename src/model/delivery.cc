#include "model/delivery.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/nearest.h"
#include "base/text.h"

namespace tocsin {
namespace {

constexpr std::string_view kNames[] = {"webhook", "kafka", "rabbitmq"};

constexpr uint64_t kTextMax = 2048;
constexpr uint64_t kNameMax = 256;

constexpr DeliveryField kFields[] = {
    {.name = "in_flight",
     .sinks = "webhook",
     .kind = DeliveryFieldKind::kNumber,
     .min = 1,
     .max = 10'000,
     .fallback = "64",
     .doc = "Jobs under way at once; no batch is larger. 1 keeps the order of jobs."},
    {.name = "in_flight",
     .sinks = "kafka",
     .kind = DeliveryFieldKind::kNumber,
     .min = 1,
     .max = 100'000,
     .fallback = "20000",
     .doc = "Jobs sent and not confirmed yet."},
    {.name = "in_flight",
     .sinks = "rabbitmq",
     .kind = DeliveryFieldKind::kNumber,
     .min = 1,
     .max = 100'000,
     .fallback = "5000",
     .doc = "Jobs sent and not confirmed yet."},
    {.name = "rate",
     .kind = DeliveryFieldKind::kNumber,
     .max = 10'000'000,
     .fallback = "0",
     .doc = "Jobs a second at most, for each node. 0: no limit."},
    {.name = "url",
     .sinks = "webhook",
     .min = 1,
     .max = kTextMax,
     .doc = "Where jobs are posted to: http:// or https://, without a user name."},
    {.name = "secret",
     .sinks = "webhook",
     .max = kNameMax,
     .doc = "The name of the secret that signs requests; the server keeps the secret itself. Empty: no signature."},
    {.name = "timeout_ms",
     .sinks = "webhook kafka rabbitmq",
     .kind = DeliveryFieldKind::kMillis,
     .min = 100,
     .max = 600'000,
     .fallback = "5000",
     .doc = "How long the receiver may take to confirm."},
    {.name = "batch",
     .sinks = "webhook",
     .kind = DeliveryFieldKind::kNumber,
     .min = 1,
     .max = 1000,
     .fallback = "1",
     .doc = "Jobs in one request. More than 1: a JSON list, answered with an outcome for each."},
    {.name = "retry_4xx",
     .sinks = "webhook",
     .kind = DeliveryFieldKind::kFlag,
     .fallback = "false",
     .doc = "Whether the answers 400 to 499 are tried again too, instead of making the job a dead letter at once."},
    {.name = "kafka_topic",
     .sinks = "kafka",
     .min = 1,
     .max = kNameMax,
     .fallback = "ready_{topic}",
     .doc = "The topic of Kafka. {topic}, {key}, {id} and {header:NAME} stand for what the job has."},
    {.name = "kafka_key",
     .sinks = "kafka",
     .max = kTextMax,
     .fallback = "{key}",
     .doc = "The key of the message, by which Kafka chooses the partition; the same marks."},
    {.name = "exchange",
     .sinks = "rabbitmq",
     .max = kNameMax,
     .doc =
         "The exchange; the same marks as in routing_key. Empty: the default one, where the routing key is a queue."},
    {.name = "routing_key",
     .sinks = "rabbitmq",
     .max = kNameMax,
     .fallback = "ready_{topic}",
     .doc = "The routing key. {topic}, {key}, {id} and {header:NAME} stand for what the job has."},
};

bool Has(std::string_view sinks, std::string_view sink) {
  if (sinks.empty()) return true;
  while (!sinks.empty()) {
    const size_t end = std::min(sinks.find(' '), sinks.size());
    if (sinks.substr(0, end) == sink) return true;
    sinks.remove_prefix(std::min(end + 1, sinks.size()));
  }
  return false;
}

std::string FieldName(std::string_view name) { return fmt::format("delivery.{}", name); }

std::unexpected<Error> UnknownSetting(std::string_view sink, std::string_view name) {
  std::vector<std::string_view> known;
  for (const DeliveryField* field : DeliveryFieldsOf(sink)) known.push_back(field->name);
  const std::string shown = Shown(name);
  return FailField(Code::kInvalidArgument, FieldName(shown), "delivery.{} is no setting of the sink {}{}", shown, sink,
                   DidYouMean(name, known));
}

Status CheckText(const DeliveryField& field, std::string_view text) {
  if (text.size() < field.min || text.size() > field.max) {
    return FailField(Code::kInvalidArgument, FieldName(field.name), "delivery.{} has {} bytes: the range is {} to {}",
                     field.name, text.size(), field.min, field.max);
  }
  if (!IsUtf8(text)) {
    return FailField(Code::kInvalidArgument, FieldName(field.name), "delivery.{} is not valid UTF-8", field.name);
  }
  const bool control =
      std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (control) {
    return FailField(Code::kInvalidArgument, FieldName(field.name), "delivery.{} has a control character", field.name);
  }
  return {};
}

Status CheckNumber(const DeliveryField& field, std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < field.min || number > field.max) {
    return FailField(Code::kInvalidArgument, FieldName(field.name),
                     "delivery.{} is \"{}\": it takes a number from {} to {}", field.name, Shown(text), field.min,
                     field.max);
  }
  return {};
}

Status CheckValue(const DeliveryField& field, std::string_view text) {
  switch (field.kind) {
    case DeliveryFieldKind::kText:
      return CheckText(field, text);
    case DeliveryFieldKind::kNumber:
    case DeliveryFieldKind::kMillis:
      return CheckNumber(field, text);
    case DeliveryFieldKind::kFlag:
      if (text == "true" || text == "false") return {};
      return FailField(Code::kInvalidArgument, FieldName(field.name), "delivery.{} is \"{}\": it takes true or false",
                       field.name, Shown(text));
  }
  std::unreachable();
}

}  // namespace

std::span<const std::string_view> SinkNames() { return kNames; }
std::span<const DeliveryField> DeliveryFields() { return kFields; }

std::vector<const DeliveryField*> DeliveryFieldsOf(std::string_view sink) {
  std::vector<const DeliveryField*> fields;
  for (const DeliveryField& field : kFields) {
    if (Has(field.sinks, sink)) fields.push_back(&field);
  }
  return fields;
}

std::vector<std::string_view> DeliverySettingNames() {
  std::vector<std::string_view> names;
  for (const DeliveryField& field : kFields) {
    if (std::ranges::find(names, field.name) == names.end()) names.push_back(field.name);
  }
  return names;
}

const DeliveryField* FindDeliveryField(std::string_view sink, std::string_view name) {
  for (const DeliveryField& field : kFields) {
    if (field.name == name && Has(field.sinks, sink)) return &field;
  }
  return nullptr;
}

std::string_view Delivery::Text(std::string_view name) const {
  const auto at = settings.find(name);
  if (at != settings.end()) return at->second;
  const DeliveryField* field = FindDeliveryField(sink, name);
  TOCSIN_CHECK(field != nullptr);
  return field->fallback;
}

uint64_t Delivery::Number(std::string_view name) const {
  const std::string_view text = Text(name);
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool Delivery::Flag(std::string_view name) const { return Text(name) == "true"; }

void Apply(const DeliveryChange& change, Delivery& delivery) {
  if (change.sink) {
    const std::string sink = *change.sink == "pull" ? "" : *change.sink;
    if (sink != delivery.sink) delivery = {.sink = sink, .settings = {}};
  }
  for (const auto& [name, value] : change.settings) delivery.settings.insert_or_assign(name, value);
}

Status Validate(const Delivery& delivery) {
  if (!delivery.Pushes()) {
    if (delivery.settings.empty()) return {};
    const std::string name = Shown(delivery.settings.begin()->first);
    return FailField(Code::kInvalidArgument, FieldName(name),
                     "delivery.{} is a setting of a sink, but the delivery is pull: name delivery.sink too", name);
  }
  if (std::ranges::find(kNames, delivery.sink) == std::end(kNames)) {
    return FailField(Code::kInvalidArgument, "delivery.sink", "delivery.sink is \"{}\": it takes pull, {}{}",
                     Shown(delivery.sink), fmt::join(kNames, ", "), DidYouMean(delivery.sink, kNames));
  }
  for (const auto& [name, value] : delivery.settings) {
    const DeliveryField* field = FindDeliveryField(delivery.sink, name);
    if (field == nullptr) return UnknownSetting(delivery.sink, name);
    TOCSIN_TRY(CheckValue(*field, value));
  }
  for (const DeliveryField* field : DeliveryFieldsOf(delivery.sink)) {
    const bool needed = field->fallback.empty() && field->min > 0;
    if (needed && !delivery.settings.contains(field->name)) {
      return FailField(Code::kInvalidArgument, FieldName(field->name), "delivery.{} is missing: the sink {} needs it",
                       field->name, delivery.sink);
    }
  }
  return {};
}

}  // namespace tocsin
