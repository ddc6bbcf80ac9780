#include "cli/transport/api.h"

#include "base/text.h"
#include "cli/text/output.h"

namespace tocsin::cli {
namespace {

/// The code of this name. A newer server may send one that we do not know; then the HTTP status decides.
Code CodeNamed(std::string_view name, unsigned status) {
  auto row = std::ranges::find(ErrorTable(), name, &ErrorRow::name);
  if (row == ErrorTable().end()) row = std::ranges::find(ErrorTable(), static_cast<int>(status), &ErrorRow::http);
  return row == ErrorTable().end() ? Code::kInternal : row->code;
}

std::unexpected<Error> ServerError(const json::object& error, unsigned status) {
  const std::string code = Printable(TextOf(error, "code"));
  const std::string field = Printable(TextOf(error, "field"));
  return FailField(CodeNamed(code, status), field, "{}: {}{}", code, Printable(TextOf(error, "message")),
                   field.empty() ? "" : fmt::format(" ({})", field));
}

/// No Tocsin server answers like this: a proxy answered, or another program listens there.
std::unexpected<Error> ForeignAnswer(const std::string& url, unsigned status) {
  if (status >= 502 && status <= 504) {
    return Fail(Code::kIo, "cannot reach the server behind {}: what listens there answered {}", url, status);
  }
  return Fail(Code::kInternal, "{} answered {} with something else than it should: is it a Tocsin server?", url,
              status);
}

}  // namespace

Result<json::object> Api::Call(std::string_view method, std::string_view target, const json::object* body,
                               std::optional<Millis> limit) {
  TOCSIN_ASSIGN(const HttpAnswer answer,
                http_.Call(method, target, body == nullptr ? "" : json::serialize(*body), limit.value_or(limit_)));
  boost::system::error_code problem;
  json::value value = json::parse(answer.body, problem);
  if (problem || !value.is_object()) return ForeignAnswer(url(), answer.status);
  json::object& object = value.get_object();
  if (const json::object& error = ObjectOf(object, "error"); !error.empty()) return ServerError(error, answer.status);
  // A submit that stored nothing has an error status too, but its outcomes are an answer.
  if (answer.status >= 300 && ArrayOf(object, "jobs").empty()) return ForeignAnswer(url(), answer.status);
  return std::move(object);
}

std::string TopicPath(std::string_view topic, std::string_view rest) {
  std::string path = "/v1/topics/";
  AppendPercent(path, topic);
  return path += rest;
}

void AppendQuery(std::string& target, std::string_view name, std::string_view value) {
  target += fmt::format("{}{}=", target.contains('?') ? '&' : '?', name);
  AppendPercent(target, value);
}

std::string ListTarget(std::string_view topic, std::string_view state, int64_t limit, std::string_view cursor,
                       std::string_view reason) {
  std::string target = TopicPath(topic, fmt::format("/jobs?state={}&limit={}", state, limit));
  if (!cursor.empty()) AppendQuery(target, "cursor", cursor);
  if (!reason.empty()) AppendQuery(target, "reason", reason);
  return target;
}

int64_t IntegerOf(const json::object& object, std::string_view name, int64_t fallback) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr || !value->is_number()) return fallback;
  boost::system::error_code problem;
  const auto number = value->to_number<int64_t>(problem);
  return problem ? fallback : number;
}

std::string TextOf(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

bool BoolOf(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

const json::object& ObjectOf(const json::object& object, std::string_view name) {
  static const json::object empty;
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_object() ? value->get_object() : empty;
}

const json::array& ArrayOf(const json::object& object, std::string_view name) {
  static const json::array empty;
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_array() ? value->get_array() : empty;
}

void PutPayload(json::object& object, std::string_view bytes) {
  if (IsUtf8(bytes)) {
    object["payload"] = bytes;
    return;
  }
  std::string text;
  AppendBase64(text, bytes);
  object["payload_base64"] = text;
}

std::string PayloadOf(const json::object& object) {
  if (!object.contains("payload_base64")) return TextOf(object, "payload");
  return DecodeBase64(TextOf(object, "payload_base64")).value_or("");
}

}  // namespace tocsin::cli
