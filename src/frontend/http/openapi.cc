#include <algorithm>
#include <array>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/syntax.h"
#include "base/version.h"
#include "core/figures.h"
#include "frontend/http/encode.h"
#include "frontend/shared/views.h"
#include "model/topic.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;
using api::Field;
using api::FieldKind;
using api::In;
using api::Verb;

constexpr int64_t kAnyNumber = std::numeric_limits<int64_t>::max();

json::object Reference(std::string_view name) { return {{"$ref", fmt::format("#/components/schemas/{}", name)}}; }

json::object Content(json::object schema, std::string_view type = "application/json") {
  return {{"content", {{type, {{"schema", std::move(schema)}}}}}};
}

json::object Described(json::object object, std::string_view doc) {
  object["description"] = doc;
  return object;
}

json::object Integer(int64_t min, int64_t max = kAnyNumber) {
  json::object schema{{"type", "integer"}, {"minimum", min}};
  if (max < kAnyNumber - 1) schema["maximum"] = max;
  return schema;
}

json::object Text(int64_t min, int64_t max) {
  json::object schema{{"type", "string"}};
  if (min > 0) schema["minLength"] = min;
  if (max < kAnyNumber) schema["maxLength"] = max;
  return schema;
}

json::object Choice(std::span<const std::string_view> choices) {
  return {{"type", "string"}, {"enum", json::array(choices.begin(), choices.end())}};
}

json::object Object(json::object properties, json::array required) {
  json::object schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

json::object TypeOf(FieldKind kind, int64_t min, int64_t max, std::span<const std::string_view> choices) {
  if (IsNumber(kind)) return Integer(min, max);
  if (kind == FieldKind::kNames) {
    const json::object one = choices.empty() ? json::object{{"type", "string"}} : Choice(choices);
    const json::object texts{{"type", "string"}, {"description", "Several have commas between them."}};
    return {{"anyOf", {texts, json::object{{"type", "array"}, {"items", one}}}}};
  }
  if (!choices.empty()) return Choice(choices);
  if (kind == FieldKind::kFlag) return {{"type", "boolean"}};
  if (kind == FieldKind::kBase64) return {{"type", "string"}, {"contentEncoding", "base64"}};
  if (kind == FieldKind::kHeaders) return {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
  if (kind == FieldKind::kTokens) {
    return {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}, {"maxItems", kBatchMax}};
  }
  return Text(min, max);
}

json::object SchemaOf(const Field& field) {
  json::object schema = Described(TypeOf(field.kind, field.min, field.max, field.choices), field.doc);
  if (!field.fallback.empty()) schema["default"] = json::parse(field.fallback);
  if (field.kind == FieldKind::kPayload) schema["type"] = {"string", "object", "array", "number", "boolean"};
  return schema;
}

/// The body that a verb takes.
json::object BodyOf(const Verb& verb) {
  json::object properties;
  json::array required;
  for (const Field& field : verb.fields) {
    if (verb.InWhere(field)) properties["where"] = Reference("Selector");
    if (field.in != In::kBody) continue;
    properties[field.name] = SchemaOf(field);
    if (field.required) required.emplace_back(field.name);
  }
  return Object(std::move(properties), std::move(required));
}

json::object SelectorSchema() {
  json::object properties;
  for (const Field& field : VerbOf(api::VerbId::kOperate).fields) {
    if (field.in == In::kWhere) properties[field.name] = SchemaOf(field);
  }
  return Described(Object(std::move(properties), {}), "Jobs that meet all of it. Times in milliseconds UTC.");
}

json::object SettingProperties() {
  json::object properties;
  for (const TopicSetting& setting : TopicSettings()) {
    const bool is_flag = setting.kind == SettingKind::kFlag;
    const uint64_t fallback = setting.get(Topic{});
    json::object schema = is_flag ? json::object{{"type", "boolean"}}
                                  : Integer(static_cast<int64_t>(setting.min), static_cast<int64_t>(setting.max));
    schema["default"] = is_flag ? json::value(fallback != 0) : json::value(fallback);
    properties[setting.name] = Described(std::move(schema), setting.doc);
  }
  properties["delivery"] = Reference("Delivery");
  return properties;
}

/// A setting that several sinks have takes the widest of their ranges.
json::object DeliverySchema() {
  json::object properties{
      {"sink", Described(Choice(api::DeliveryNames()), "pull: consumers reserve jobs. Otherwise the server pushes.")}};
  for (const std::string_view name : DeliverySettingNames()) {
    int64_t min = kAnyNumber;
    int64_t max = 0;
    std::string doc;
    DeliveryFieldKind kind{};
    for (const DeliveryField& field : DeliveryFields()) {
      if (field.name != name) continue;
      kind = field.kind;
      min = std::min(min, static_cast<int64_t>(field.min));
      max = std::max(max, static_cast<int64_t>(field.max));
      doc +=
          fmt::format("{}[{}] {}", doc.empty() ? "" : " ", field.sinks.empty() ? "every sink" : field.sinks, field.doc);
    }
    json::object schema = kind == DeliveryFieldKind::kText   ? Text(min, max)
                          : kind == DeliveryFieldKind::kFlag ? json::object{{"type", "boolean"}}
                                                             : Integer(min, max);
    properties[name] = Described(std::move(schema), doc);
  }
  return Described(Object(std::move(properties), {}),
                   "How due jobs reach their receivers. Another sink begins with its defaults; for the same one, what "
                   "is not named keeps its value.");
}

json::object AllRequired(json::object properties) {
  json::array names;
  for (const auto& property : properties) names.emplace_back(property.key());
  return Object(std::move(properties), std::move(names));
}

json::object TopicSchema(bool with_figures) {
  json::object properties{{"topic", {{"type", "string"}}}};
  for (auto& [name, schema] : SettingProperties()) properties[name] = schema;
  if (with_figures) {
    properties["figures"] = Reference("Figures");
    properties["lateness_ms"] = Reference("Lateness");
    properties["oldest_age_ms"] = Described({{"type", {"integer", "null"}}, {"minimum", 0}},
                                            "How long the first ready job has been due; null if none is ready.");
  }
  return AllRequired(std::move(properties));
}

json::object FiguresSchema() {
  json::object properties;
  for (const FigureColumn& column : kFigureColumns) properties[column.name] = Integer(0);
  return AllRequired(std::move(properties));
}

json::object JobSchema(bool shared::JobMember::* wanted) {
  json::object properties;
  json::array required;
  for (const shared::JobMember& member : shared::JobMembers()) {
    if (!(member.*wanted)) continue;
    json::object schema = TypeOf(member.kind, 0, kAnyNumber, member.choices);
    if (member.kind == FieldKind::kMoment) schema["type"] = {"integer", "null"};
    properties[member.name] = Described(std::move(schema), member.doc);
    const bool is_payload = member.kind == FieldKind::kPayload;
    if (is_payload) properties["payload_base64"] = TypeOf(FieldKind::kBase64, 0, 0, {});
    if (member.there == nullptr && !is_payload) required.emplace_back(member.name);
  }
  return Object(std::move(properties), std::move(required));
}

json::object RequestOf(const Verb& verb) {
  json::object schema = verb.takes_settings ? Reference("TopicSettings") : BodyOf(verb);
  bool required = std::ranges::any_of(verb.fields, &Field::required);
  if (verb.id == api::VerbId::kSubmitJobs) {
    schema = {{"anyOf", {Reference("NewJob"), Reference("NewJobs")}}};
    required = true;
  }
  json::object request = Content(std::move(schema));
  request["required"] = required;
  return request;
}

json::object AnswersOf(const Verb& verb) {
  json::object content =
      verb.answer.schema.empty() ? Content({{"type", "object"}}) : Content(Reference(verb.answer.schema));
  if (verb.id == api::VerbId::kShowMetrics) content = Content({{"type", "string"}}, "text/plain");
  if (verb.id == api::VerbId::kShowEvents) content = Content({{"type", "string"}}, "text/event-stream");
  json::object answers{{fmt::to_string(verb.answer.status), Described(content, verb.answer.doc)}};
  if (verb.takes_settings) answers["201"] = Described(content, "The topic is created.");
  if (verb.id == api::VerbId::kSubmitJobs) {
    const json::object outcomes = Content({{"anyOf", {Reference(verb.answer.schema), Reference("Error")}}});
    for (const std::string_view status : {"409", "429", "503", "507"}) {
      answers[status] = Described(outcomes, "No job is stored: each has its outcome, or one error is for all.");
    }
  }
  answers["default"] = {{"$ref", "#/components/responses/Error"}};
  return answers;
}

json::object OperationOf(const Verb& verb) {
  json::object operation{{"operationId", verb.name}, {"summary", verb.summary}};
  operation["description"] =
      fmt::format("{}{}Scope: {}.", verb.details, verb.details.empty() ? "" : " ", auth::ScopeOf(verb.access));
  json::array parameters;
  for (const auto& [name, there] : {std::pair("topic", verb.HasTopic()), std::pair("id", verb.HasId())}) {
    if (there) parameters.push_back(json::object{{"$ref", fmt::format("#/components/parameters/{}", name)}});
  }
  for (const Field& field : verb.fields) {
    if (!verb.InQuery(field)) continue;
    parameters.push_back(
        json::object{{"name", field.name}, {"in", "query"}, {"description", field.doc}, {"schema", SchemaOf(field)}});
  }
  if (!parameters.empty()) operation["parameters"] = std::move(parameters);
  if (verb.TakesBody()) operation["requestBody"] = RequestOf(verb);
  operation["responses"] = AnswersOf(verb);
  return operation;
}

std::string Lower(std::string_view method) {
  std::string lower(method);
  std::ranges::transform(lower, lower.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  return lower;
}

std::string Make() {
  json::value document = json::parse(OpenApiBase());
  document.at("info").as_object()["version"] = Version();
  json::object paths;
  for (const Verb& verb : api::Verbs()) {
    json::value& path = paths[verb.Path()];
    if (path.is_null()) path.emplace_object();
    path.as_object()[Lower(verb.Method())] = OperationOf(verb);
  }
  document.as_object()["paths"] = std::move(paths);
  json::object& schemas = document.at("components").at("schemas").as_object();
  schemas["NewJob"] = BodyOf(VerbOf(api::VerbId::kSubmitJobs));
  schemas["Selector"] = SelectorSchema();
  schemas["Job"] = JobSchema(&shared::JobMember::shown);
  schemas["DeliveredJob"] = JobSchema(&shared::JobMember::delivered);
  schemas["TopicSettings"] = Object(SettingProperties(), {});
  schemas["Topic"] = TopicSchema(false);
  schemas["TopicReport"] = TopicSchema(true);
  schemas["Delivery"] = DeliverySchema();
  schemas["Figures"] = FiguresSchema();
  return json::serialize(document);
}

}  // namespace

const std::string& OpenApiDocument() {
  static const std::string document = Make();
  return document;
}

}  // namespace tocsin::http
