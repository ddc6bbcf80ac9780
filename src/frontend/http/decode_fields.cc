// Bodies and queries by the tables of fields and settings.
#include <cmath>

#include "base/text.h"
#include "frontend/http/decode.h"
#include "spi/delivery_headers.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;
using api::Arguments;
using api::Field;
using api::FieldKind;
using api::In;
using api::Wire;

/// The parser makes a double of an integer that 64 bits cannot hold. Every double of this size is an integer.
bool IsHuge(const boost::json::value& value) {
  constexpr double kInt64End = 0x1p63;
  return value.is_double() && std::abs(value.get_double()) >= kInt64End;
}

std::string_view KindOf(const boost::json::value& value) {
  // In the order of boost::json::kind.
  constexpr std::string_view kKinds[] = {
      "null",     "true or false", "an integer", "an integer", "a number with a fraction or an exponent",
      "a string", "an array",      "an object"};
  static_assert(static_cast<size_t>(boost::json::kind::object) + 1 == std::size(kKinds));
  if (IsHuge(value)) return "a number of more than 64 bits";
  return kKinds[static_cast<size_t>(value.kind())];
}

Status TakeHeaders(const Field& field, const json::value& value, Arguments& to) {
  const auto* object = value.if_object();
  if (object == nullptr) {
    return FailField(Code::kInvalidArgument, std::string(field.name), "{} takes an object of strings", field.name);
  }
  to.job.headers.reserve(object->size());
  for (const auto& [key, text] : *object) {
    const std::string_view header(key.data(), key.size());
    const auto* content = text.if_string();
    if (content == nullptr) return std::unexpected(Within(AsText(Shown(header), text).error(), field.name));
    to.job.headers.push_back({header, View(*content)});
  }
  return {};
}

Status TakePayload(Document& document, const Field& field, std::string_view text, Arguments& to) {
  if (to.payload) {
    return FailField(Code::kInvalidArgument, std::string(field.name),
                     "payload and payload_base64 exclude each other: give one of them");
  }
  if (field.kind == FieldKind::kPayload) return PutText(field, Wire::kJson, text, to);
  auto bytes = DecodeBase64(text);
  if (!bytes) {
    return FailField(Code::kInvalidArgument, std::string(field.name), "{} is not base64 with padding (RFC 4648)",
                     field.name);
  }
  return PutText(field, Wire::kJson, document.Keep(*std::move(bytes)), to);
}

/// A payload that is JSON itself is delivered as the text that was sent: no digit of a number is lost.
Status TakeJsonPayload(Document& document, const Field& field, const json::value& value, Decoded& to) {
  if (value.is_null()) {
    return FailField(Code::kInvalidArgument, std::string(field.name),
                     "payload is null: leave it out for an empty payload, or send \"null\" as a string");
  }
  to.json_payload = true;
  const std::string_view source = document.PayloadSource(to.job);
  return TakePayload(document, field, document.Keep(std::string(source)), to.arguments);
}

Status Take(Document& document, const Field& field, const json::value& value, Decoded& to) {
  if (field.kind == FieldKind::kTokens) {
    to.tokens = &value;
    return {};
  }
  if (field.kind == FieldKind::kHeaders) return TakeHeaders(field, value, to.arguments);
  if (const json::array* const names = value.if_array(); names != nullptr && field.kind == FieldKind::kNames) {
    for (const json::value& name : *names) {
      TOCSIN_ASSIGN(const std::string_view text, AsText(field.name, name));
      TOCSIN_TRY(PutText(field, Wire::kJson, text, to.arguments));
    }
    return {};
  }
  if (field.kind == FieldKind::kFlag) {
    TOCSIN_ASSIGN(const bool flag, AsBool(field.name, value));
    PutFlag(field, flag, to.arguments);
    return {};
  }
  if (IsNumber(field.kind)) {
    TOCSIN_ASSIGN(const int64_t number, AsInteger(field.name, value, field.min, field.max));
    return PutNumber(field, Wire::kJson, number, to.arguments);
  }
  if (field.kind == FieldKind::kPayload && !value.is_string()) return TakeJsonPayload(document, field, value, to);
  TOCSIN_ASSIGN(const std::string_view text, AsText(field.name, value));
  const bool is_payload = field.kind == FieldKind::kPayload || field.kind == FieldKind::kBase64;
  return is_payload ? TakePayload(document, field, text, to.arguments)
                    : PutText(field, Wire::kJson, text, to.arguments);
}

constexpr std::string_view kWhere = "where";

bool SelectsJobs(std::span<const Field> fields) {
  return std::ranges::any_of(fields, [](const Field& field) { return field.in == In::kWhere; });
}

/// A member of the body, or of its selector.
Status TakeMember(Document& document, std::string_view name, const json::value& value, In in,
                  std::span<const Field> fields, Decoded& decoded) {
  const auto field =
      std::ranges::find_if(fields, [&](const Field& each) { return each.in == in && each.name == name; });
  if (field != fields.end()) return Take(document, *field, value, decoded);
  std::vector<std::string_view> known;
  for (const Field& each : fields) {
    if (each.in == in) known.push_back(each.name);
  }
  if (in == In::kBody && SelectsJobs(fields)) known.push_back(kWhere);
  return UnknownField(name, known);
}

Status TakeWhere(Document& document, std::span<const Field> fields, const json::value& value, Decoded& decoded) {
  const json::object* const where = value.if_object();
  if (where == nullptr) return Fail(Code::kInvalidArgument, "where takes an object, such as {{\"key\":\"shop\"}}");
  for (const auto& [key, each] : *where) {
    TOCSIN_TRY(TakeMember(document, {key.data(), key.size()}, each, In::kWhere, fields, decoded));
  }
  return {};
}

/// Receivers learn that the payload is JSON, unless the job has a content type of its own.
void SayJson(NewJob& job) {
  const bool typed = std::ranges::any_of(job.headers, delivery_header::IsContentType, &HeaderView::name);
  if (!typed && job.headers.size() < kHeadersMax) job.headers.push_back({"content-type", "application/json"});
}

/// `index`: of the job in its batch.
Status DecodeJob(Document& document, const json::object& object, size_t index, NewJob& job) {
  const auto fields = VerbOf(api::VerbId::kSubmitJobs).fields;
  Decoded decoded{.job = index};
  TOCSIN_TRY(DecodeBody(document, object, fields, decoded));
  TOCSIN_TRY(CheckTogether(fields, Wire::kJson, decoded.arguments));
  TOCSIN_TRY(FinishJob(Wire::kJson, decoded.arguments));
  job = std::move(decoded.arguments.job);
  if (decoded.json_payload) SayJson(job);
  return {};
}

Status DecodeBatch(Document& document, const json::array& array, std::vector<NewJob>& jobs) {
  jobs.resize(array.size());
  for (size_t i = 0; i < array.size(); ++i) {
    const auto* object = array[i].if_object();
    const Status status = object != nullptr ? DecodeJob(document, *object, i, jobs[i])
                                            : Status(Fail(Code::kInvalidArgument, "a job is an object"));
    if (!status) return std::unexpected(Within(status.error(), fmt::format("jobs[{}]", i)));
  }
  return {};
}

constexpr std::string_view kPull = "pull";
constexpr std::string_view kDelivery = "delivery";

Status PutSetting(TopicChange& change, const TopicSetting& setting, const json::value& value) {
  int64_t number = 0;
  if (setting.kind == SettingKind::kFlag) {
    TOCSIN_ASSIGN(number, AsBool(setting.name, value));
  } else {
    const auto max = static_cast<int64_t>(setting.max);
    TOCSIN_ASSIGN(number, AsInteger(setting.name, value, static_cast<int64_t>(setting.min), max));
  }
  change.settings.emplace_back(&setting, static_cast<uint64_t>(number));
  return {};
}

Status TakeSink(DeliveryChange& change, const json::value& value) {
  TOCSIN_ASSIGN(const std::string_view sink, AsText("sink", value));
  if (sink != kPull && std::ranges::find(SinkNames(), sink) == SinkNames().end()) {
    return FailField(Code::kInvalidArgument, "sink", "sink is \"{}\": it takes {}, {}{}", Shown(sink), kPull,
                     fmt::join(SinkNames(), ", "), DidYouMean(sink, SinkNames()));
  }
  change.sink = sink;
  return {};
}

/// A setting as the text that it is kept as. What it may be for the topic's sink is the topic's own to check.
Result<std::string> SettingText(const DeliveryField& field, const json::value& value) {
  if (field.kind == DeliveryFieldKind::kText) {
    TOCSIN_ASSIGN(const std::string_view text, AsText(field.name, value));
    return std::string(text);
  }
  if (field.kind == DeliveryFieldKind::kFlag) {
    TOCSIN_ASSIGN(const bool flag, AsBool(field.name, value));
    return flag ? "true" : "false";
  }
  if (const auto* number = value.if_int64()) return fmt::to_string(*number);
  if (const auto* number = value.if_uint64()) return fmt::to_string(*number);
  return std::unexpected(
      AsInteger(field.name, value, static_cast<int64_t>(field.min), static_cast<int64_t>(field.max)).error());
}

Status TakeSetting(DeliveryChange& change, std::string_view name, const json::value& value) {
  if (name == "sink") return TakeSink(change, value);
  const auto field = std::ranges::find(DeliveryFields(), name, &DeliveryField::name);
  if (field == DeliveryFields().end()) {
    std::vector<std::string_view> known = DeliverySettingNames();
    known.insert(known.begin(), "sink");
    return UnknownField(name, known);
  }
  TOCSIN_ASSIGN(std::string text, SettingText(*field, value));
  change.settings.insert_or_assign(std::string(name), std::move(text));
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

}  // namespace

Status DecodeBody(Document& document, const json::object& object, std::span<const Field> fields, Decoded& decoded) {
  const bool selects = SelectsJobs(fields);
  for (const auto& [key, value] : object) {
    const std::string_view name(key.data(), key.size());
    if (selects && name == kWhere) {
      if (Status taken = TakeWhere(document, fields, value, decoded); !taken) {
        return std::unexpected(Within(std::move(taken).error(), kWhere));
      }
    } else {
      TOCSIN_TRY(TakeMember(document, name, value, In::kBody, fields, decoded));
    }
  }
  return {};
}

Status DecodeQuery(const Query& query, std::span<const Field> fields, Arguments& arguments) {
  for (const auto& [name, text] : query) {
    const Field& field = *std::ranges::find(fields, name, &Field::name);  // the router let no other pass
    if (!IsNumber(field.kind)) {
      TOCSIN_TRY(PutText(field, Wire::kJson, text, arguments));
      continue;
    }
    TOCSIN_ASSIGN(const int64_t number, api::ReadNumber(name, text, field.min, field.max));
    TOCSIN_TRY(PutNumber(field, Wire::kJson, number, arguments));
  }
  return {};
}

Result<SubmitRequest> DecodeSubmit(std::string topic, std::shared_ptr<Document> document, size_t batch_max) {
  SubmitRequest request{.topic = std::move(topic), .jobs = {}, .bytes = {}};
  const json::object& root = document->root();
  if (const json::value* jobs = root.if_contains("jobs")) {
    if (root.size() > 1) {
      const auto other = std::ranges::find_if(root, [](const auto& field) { return field.key() != "jobs"; });
      const std::string name = Shown(other->key());
      return FailField(Code::kInvalidArgument, name, "{} stands beside jobs: it belongs into each job", name);
    }
    TOCSIN_ASSIGN(const json::array* const array, AsBatch("jobs", *jobs, batch_max));
    TOCSIN_TRY(DecodeBatch(*document, *array, request.jobs));
  } else {
    TOCSIN_TRY(DecodeJob(*document, root, 0, request.jobs.emplace_back()));
  }
  request.bytes = std::move(document);
  return request;
}

Result<SettleRequest> DecodeSettle(const api::Verb& verb, SettleKind kind, std::string topic,
                                   std::shared_ptr<Document> document, size_t batch_max) {
  Decoded decoded;
  TOCSIN_TRY(DecodeBody(*document, document->root(), verb.fields, decoded));
  TOCSIN_TRY(CheckTogether(verb.fields, Wire::kJson, decoded.arguments));
  if (decoded.tokens == nullptr) return FailField(Code::kInvalidArgument, "tokens", "tokens is missing");
  TOCSIN_ASSIGN(const json::array* const array, AsBatch("tokens", *decoded.tokens, batch_max));
  const Settlement each = SettlementOf(kind, decoded.arguments);
  SettleRequest request{.topic = std::move(topic), .settlements = {}, .bytes = {}};
  request.settlements.reserve(array->size());
  for (const json::value& element : *array) {
    const auto* text = element.if_string();
    const auto token = text == nullptr ? std::nullopt : ParseToken(View(*text));
    if (!token) {
      return FailField(Code::kInvalidArgument, fmt::format("tokens[{}]", request.settlements.size()),
                       "this is not a delivery token that a reserve gave out");
    }
    request.settlements.emplace_back(each).token = *token;
  }
  request.bytes = std::move(document);
  return request;
}

Result<TopicChange> DecodeTopicChange(const Document& document) {
  TopicChange change;
  for (const auto& [key, value] : document.root()) {
    const std::string_view name(key.data(), key.size());
    if (name == kDelivery) {
      TOCSIN_TRY(TakeDelivery(change, name, value));
    } else if (const TopicSetting* const setting = FindTopicSetting(name)) {
      TOCSIN_TRY(PutSetting(change, *setting, value));
    } else {
      std::vector<std::string_view> known;
      for (const TopicSetting& each : TopicSettings()) known.push_back(each.name);
      known.push_back(kDelivery);
      return UnknownField(name, known);
    }
  }
  return change;
}

Result<std::string_view> AsText(std::string_view name, const boost::json::value& value) {
  if (const auto* text = value.if_string()) return View(*text);
  return FailField(Code::kInvalidArgument, std::string(name), "{} is {}: it takes a string", name, KindOf(value));
}

Result<int64_t> AsInteger(std::string_view name, const boost::json::value& value, int64_t low, int64_t high) {
  if (const auto* number = value.if_int64(); number != nullptr && *number >= low && *number <= high) return *number;
  if (value.is_int64() || value.is_uint64()) {
    return FailField(Code::kInvalidArgument, std::string(name), "{} is {}: the range is {} to {}", name,
                     value.is_int64() ? fmt::to_string(value.get_int64()) : fmt::to_string(value.get_uint64()), low,
                     high);
  }
  if (IsHuge(value)) {
    return FailField(Code::kInvalidArgument, std::string(name), "{} is too {}: the range is {} to {}", name,
                     value.get_double() > 0 ? "large" : "small", low, high);
  }
  return FailField(Code::kInvalidArgument, std::string(name), "{} is {}: it takes an integer", name, KindOf(value));
}

Result<const boost::json::array*> AsBatch(std::string_view name, const boost::json::value& value, size_t batch_max) {
  const auto* array = value.if_array();
  if (array == nullptr) return FailField(Code::kInvalidArgument, std::string(name), "{} takes an array", name);
  if (array->empty() || array->size() > batch_max) {
    return FailField(Code::kInvalidArgument, std::string(name), "{} has {} elements: the range is 1 to {}", name,
                     array->size(), batch_max);
  }
  return array;
}

Result<bool> AsBool(std::string_view name, const boost::json::value& value) {
  if (const auto* truth = value.if_bool()) return *truth;
  return FailField(Code::kInvalidArgument, std::string(name), "{} takes true or false", name);
}

std::unexpected<Error> UnknownField(std::string_view name, std::span<const std::string_view> known) {
  const std::string shown = Shown(name);
  std::string hint = DidYouMean(name, known);
  if (known.empty()) hint = "; none is known here";
  if (hint.empty()) hint = fmt::format("; the known ones are {}", fmt::join(known, ", "));
  return FailField(Code::kUnknownField, shown, "unknown field \"{}\"{}", shown, hint);
}

Error Within(Error error, std::string_view path) {
  error.field = error.field.empty() ? std::string(path) : fmt::format("{}.{}", path, error.field);
  return error;
}

Error OnTheWire(Error error) {
  for (const std::string_view name : {"delay", "due", "wait", "lease"}) {
    if (error.field != name) continue;
    const size_t at = error.message.find(fmt::format("{} is ", name));
    if (at != std::string::npos) error.message.insert(at + name.size(), "_ms");
    error.field += "_ms";
    break;
  }
  // The service puts the element of a batch before the message: "jobs[2]: ...".
  const size_t end = error.message.find("]: ");
  if (end == std::string::npos || !(error.message.starts_with("jobs[") || error.message.starts_with("tokens["))) {
    return error;
  }
  const std::string path = error.message.substr(0, end + 1);
  return Within(std::move(error), path);
}

}  // namespace tocsin::http
