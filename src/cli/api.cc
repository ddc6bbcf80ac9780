#include "cli/api.h"

#include "base/text.h"

namespace tocsin::cli {

Result<Reply> Api::Call(std::string_view method, std::string_view target, const json::object* body, Millis wait) {
  auto answer = transport_.Call(method, target, body, limit_ + wait);
  if (!answer) return std::unexpected(std::move(answer).error());
  return Reply{*std::move(answer)};
}

std::string TopicPath(std::string_view topic, std::string_view rest) {
  std::string path = "/v1/topics/";
  AppendPercent(path, topic);
  path += rest;
  return path;
}

std::string JobPath(std::string_view topic, std::string_view id, std::string_view key, std::string_view rest) {
  std::string path = TopicPath(topic, "/jobs/");
  AppendPercent(path, id);
  path += rest;
  if (key.empty()) return path;
  path += "?key=";
  AppendPercent(path, key);
  return path;
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
