#include "model/delivery.h"

#include <algorithm>
#include <charconv>
#include <ranges>
#include <utility>

#include "base/text.h"

namespace tocsin {
namespace {

constexpr std::string_view kNames[] = {"webhook", "kafka", "rabbitmq"};

constexpr uint64_t kTextMax = 2048;
constexpr uint64_t kNameMax = 256;

using enum DeliveryFieldKind;

constexpr DeliveryField kFields[] = {
    {"in_flight", "webhook", kNumber, 1, 10'000, "64",
     "Jobs under way at once; no batch is larger. 1 keeps the order of jobs."},
    {"in_flight", "kafka", kNumber, 1, 100'000, "20000", "Jobs sent and not confirmed yet."},
    {"in_flight", "rabbitmq", kNumber, 1, 100'000, "5000", "Jobs sent and not confirmed yet."},
    {"rate", "", kNumber, 0, 10'000'000, "0", "Jobs a second at most, for each node. 0: no limit."},
    {"url", "webhook", kText, 1, kTextMax, "", "Where jobs are posted to: http:// or https://, without a user name."},
    {"secret", "webhook", kText, 0, kNameMax, "",
     "The name of the secret that signs requests; the server keeps the secret itself. Empty: no signature."},
    {"timeout_ms", "webhook kafka rabbitmq", kMillis, 100, 600'000, "5000",
     "How long the receiver may take to confirm."},
    {"outage_ms", "", kMillis, 0, 2'592'000'000, "86400000",
     "How long jobs wait for a receiver that cannot be reached and keep their attempts. Then each try costs one."},
    {"batch", "webhook", kNumber, 1, 1000, "1",
     "Jobs in one request. More than 1: a JSON list, answered with an outcome for each."},
    {"final_statuses", "webhook", kText, 0, kNameMax, "410",
     "Statuses that make the job a dead letter at once, such as 410,422; 4xx: 400 to 499, except 408, 425 and 429. "
     "Others are tried again."},
    {"retry_4xx", "webhook", kFlag, 0, 0, "false", "Whether no status is final, whatever final_statuses says."},
    {"kafka_topic", "kafka", kText, 1, kNameMax, "ready_{topic}",
     "The topic of Kafka. {topic}, {key}, {id} and {header:NAME} stand for what the job has."},
    {"kafka_key", "kafka", kText, 0, kTextMax, "{key}",
     "The key of the message, by which Kafka chooses the partition; the same marks."},
    {"exchange", "rabbitmq", kText, 0, kNameMax, "",
     "The exchange; the same marks as in routing_key. Empty: the default one, where the routing key is a queue."},
    {"routing_key", "rabbitmq", kText, 0, kNameMax, "ready_{topic}",
     "The routing key. {topic}, {key}, {id} and {header:NAME} stand for what the job has."},
};

bool Has(std::string_view sinks, std::string_view sink) {
  const auto is_sink = [sink](auto part) { return std::string_view(part) == sink; };
  return sinks.empty() || std::ranges::any_of(std::views::split(sinks, ' '), is_sink);
}

/// "delivery.NAME " and the rest.
template <class... Args>
std::unexpected<Error> Refuse(std::string_view name, fmt::format_string<Args...> format, Args&&... args) {
  const std::string field = fmt::format("delivery.{}", Shown(name));
  return FailField(Code::kInvalidArgument, field, "{} {}", field, fmt::format(format, std::forward<Args>(args)...));
}

Status CheckText(const DeliveryField& field, std::string_view text) {
  if (text.size() < field.min || text.size() > field.max) {
    return Refuse(field.name, "has {} bytes: the range is {} to {}", text.size(), field.min, field.max);
  }
  if (!IsUtf8(text)) return Refuse(field.name, "is not valid UTF-8");
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(text, control)) return Refuse(field.name, "has a control character");
  return {};
}

Status CheckNumber(const DeliveryField& field, std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool valid = error == std::errc() && end == text.data() + text.size();
  if (valid && number >= field.min && number <= field.max) return {};
  return Refuse(field.name, "is \"{}\": it takes a number from {} to {}", Shown(text), field.min, field.max);
}

Status CheckValue(const DeliveryField& field, std::string_view text) {
  if (field.kind == kText) return CheckText(field, text);
  if (field.kind != kFlag) return CheckNumber(field, text);
  if (text == "true" || text == "false") return {};
  return Refuse(field.name, "is \"{}\": it takes true or false", Shown(text));
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
  const auto* const found = std::ranges::find_if(
      kFields, [&](const DeliveryField& field) { return field.name == name && Has(field.sinks, sink); });
  return found == std::end(kFields) ? nullptr : found;
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

std::string PlaceOf(const Delivery& delivery) {
  const auto text = [&delivery](std::string_view name) {
    return FindDeliveryField(delivery.sink, name) == nullptr ? std::string_view() : delivery.Text(name);
  };
  if (const std::string_view url = text("url"); !url.empty()) {
    const size_t scheme = url.find("://");
    const size_t authority = scheme == std::string_view::npos ? 0 : scheme + 3;
    std::string_view host = url.substr(authority, url.find_first_of("/?#", authority) - authority);
    host.remove_prefix(host.rfind('@') + 1);  // npos + 1 is 0
    return std::string(url.substr(0, authority)).append(host);
  }
  std::string place;
  for (const std::string_view name : {"kafka_topic", "exchange", "routing_key"}) {
    if (!text(name).empty()) place.append(place.empty() ? "" : " ").append(text(name));
  }
  return place;
}

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
    return Refuse(delivery.settings.begin()->first,
                  "is a setting of a sink, but the delivery is pull: name delivery.sink too");
  }
  if (std::ranges::find(kNames, delivery.sink) == std::end(kNames)) {
    return Refuse("sink", "is \"{}\": it takes pull, {}{}", Shown(delivery.sink), fmt::join(kNames, ", "),
                  DidYouMean(delivery.sink, kNames));
  }
  const std::vector<const DeliveryField*> fields = DeliveryFieldsOf(delivery.sink);
  for (const auto& [name, value] : delivery.settings) {
    if (const DeliveryField* field = FindDeliveryField(delivery.sink, name)) {
      TOCSIN_TRY(CheckValue(*field, value));
      continue;
    }
    const auto known = std::views::transform(fields, &DeliveryField::name);
    return Refuse(name, "is no setting of the sink {}{}", delivery.sink, DidYouMean(name, known));
  }
  for (const DeliveryField* field : fields) {
    const bool needed = field->fallback.empty() && field->min > 0;
    if (needed && !delivery.settings.contains(field->name)) {
      return Refuse(field->name, "is missing: the sink {} needs it", delivery.sink);
    }
  }
  return {};
}

}  // namespace tocsin
