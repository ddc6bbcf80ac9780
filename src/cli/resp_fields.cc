#include "cli/resp_fields.h"

#include "cli/api.h"
#include "model/job.h"

namespace tocsin::cli {
namespace {

void Put(Words& words, const Field& field, std::string value) {
  if (!field.word.empty()) words.emplace_back(field.word);
  words.push_back(std::move(value));
}

}  // namespace

std::unexpected<Error> WrongType(std::string_view name, std::string_view wanted) {
  return Refuse(Code::kInvalidArgument, name, "{} takes {}", name, wanted);
}

Status AddInteger(Words& words, const Field& field, const Input& input) {
  const json::value* const value = input.Find(field.name);
  if (value == nullptr) return {};
  if (!value->is_int64() && !value->is_uint64()) return WrongType(field.name, "an integer");
  Put(words, field, value->is_int64() ? fmt::to_string(value->get_int64()) : fmt::to_string(value->get_uint64()));
  return {};
}

Status AddBool(Words& words, const Field& field, const Input& input) {
  const json::value* const value = input.Find(field.name);
  if (value == nullptr) return {};
  if (!value->is_bool()) return WrongType(field.name, "true or false");
  Put(words, field, value->get_bool() ? "true" : "false");
  return {};
}

Status AddText(Words& words, const Field& field, const Input& input) {
  const json::value* const value = input.Find(field.name);
  if (value == nullptr && field.word.empty()) {
    return Refuse(Code::kInvalidArgument, field.name, "{} is missing", field.name);
  }
  if (value == nullptr) return {};
  if (!value->is_string()) return WrongType(field.name, "a string");
  Put(words, field, std::string(value->get_string()));
  return {};
}

Status AddPayload(Words& words, const Field& field, const Input& input) {
  const json::value* const text = input.Find("payload");
  const json::value* const base64 = input.Find("payload_base64");
  if (text != nullptr && base64 != nullptr) {
    return Refuse(Code::kInvalidArgument, "payload_base64", "a job has either payload or payload_base64, not both");
  }
  if (text != nullptr || base64 == nullptr) {
    if (text == nullptr && !field.word.empty()) return {};
    if (text != nullptr && !text->is_string()) return WrongType("payload", "a string");
    Put(words, field, text == nullptr ? "" : std::string(text->get_string()));
    return {};
  }
  if (!base64->is_string()) return WrongType("payload_base64", "a string");
  auto bytes = DecodeBase64(base64->get_string());
  if (!bytes) return WrongType("payload_base64", "base64 with padding (RFC 4648)");
  Put(words, field, *std::move(bytes));
  return {};
}

Status AddNothing(Words&, const Field&, const Input&) { return {}; }

Status AddHeaders(Words& words, const Field& field, const Input& input) {
  const json::value* const value = input.Find(field.name);
  if (value == nullptr) return {};
  if (!value->is_object()) return WrongType(field.name, "an object of strings");
  for (const auto& header : value->get_object()) {
    if (!header.value().is_string()) return WrongType(field.name, "an object of strings");
    words.insert(words.end(),
                 {std::string(field.word), std::string(header.key()), std::string(header.value().get_string())});
  }
  return {};
}

Status AddConflict(Words& words, const Field& field, const Input& input) {
  const json::value* const value = input.Find(field.name);
  if (value == nullptr || *value == "reject") return {};
  if (*value != "replace" && *value != "keep") return WrongType(field.name, "reject, replace or keep");
  words.emplace_back(*value == "replace" ? "REPLACE" : "KEEP");
  return {};
}

Status AddTokens(Words& words, const Field& field, const Input& input) {
  const json::array& tokens = ArrayOf(input.body, field.name);
  if (tokens.empty()) return Refuse(Code::kInvalidArgument, field.name, "{} is missing", field.name);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is_string() || !ParseToken(tokens[i].get_string())) {
      return Refuse(Code::kInvalidArgument, fmt::format("tokens[{}]", i), "this is not a token");
    }
    words.emplace_back(tokens[i].get_string());
  }
  return {};
}

Status AddSwitch(Words& words, const Field& field, const Input& input) {
  const json::value* const value = input.Find(field.name);
  if (value == nullptr) return {};
  if (!value->is_bool()) return WrongType(field.name, "true or false");
  if (value->get_bool()) words.emplace_back(field.word);
  return {};
}

Status AddDelivery(Words& words, const Field& field, const Input& input) {
  const json::value* const value = input.Find(field.name);
  if (value == nullptr) return {};
  if (!value->is_object()) return WrongType(field.name, "an object");
  const json::object& delivery = value->get_object();
  for (const auto& setting : delivery) {
    const Input each{.body = delivery, .query = {}};
    const Field as{setting.key(), setting.key(), AddNothing};
    if (setting.value().is_bool()) {
      TOCSIN_TRY(AddBool(words, as, each));
    } else if (setting.value().is_string()) {
      TOCSIN_TRY(AddText(words, as, each));
    } else {
      TOCSIN_TRY(AddInteger(words, as, each));
    }
  }
  return {};
}

Status AddWord(Words& words, const Field& field, const Input&) {
  words.emplace_back(field.word);
  return {};
}

}  // namespace tocsin::cli
