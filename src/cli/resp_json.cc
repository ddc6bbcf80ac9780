#include "cli/resp_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string>

#include "base/text.h"

namespace tocsin::cli {
namespace {

namespace json = boost::json;
using Kind = RespValue::Kind;

json::string TextJson(std::string_view text) { return json::string(IsUtf8(text) ? text : "not valid UTF-8"); }

/// Bytes that `text` takes within the quotes of JSON as the server writes it.
size_t EscapedSize(std::string_view text) {
  size_t size = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool named = c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t';
    size += named ? 2 : byte < 0x20 || byte == 0x7F ? 6 : 1;
  }
  return size;
}

/// As HTTP: as text where that is not much longer than base64.
void PutShownPayload(json::object& object, std::string_view bytes) {
  constexpr size_t kFrame = std::string_view(",\"payload\":\"\"").size();
  if (IsUtf8(bytes) && kFrame + EscapedSize(bytes) <= 64 + bytes.size() / 3 * 4) {
    object["payload"] = bytes;
    return;
  }
  std::string text;
  AppendBase64(text, bytes);
  object["payload_base64"] = text;
}

json::value NumberJson(std::string_view text) {
  int64_t integer = 0;
  const char* const end = text.data() + text.size();
  if (const auto [at, problem] = std::from_chars(text.data(), end, integer); problem == std::errc{} && at == end) {
    return integer;
  }
  double number = 0;
  if (const auto [at, problem] = std::from_chars(text.data(), end, number); problem == std::errc{} && at == end) {
    return number;
  }
  return TextJson(text);
}

/// name:value lines; those with a # are titles.
std::vector<std::pair<std::string_view, std::string_view>> LinesOf(std::string_view info) {
  std::vector<std::pair<std::string_view, std::string_view>> lines;
  while (!info.empty()) {
    std::string_view line = info.substr(0, info.find('\n'));
    info.remove_prefix(std::min(line.size() + 1, info.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos) lines.emplace_back(line.substr(0, colon), line.substr(colon + 1));
  }
  return lines;
}

}  // namespace

json::value ToJson(const RespValue& value) {
  switch (value.kind) {
    case Kind::kNull:
      return nullptr;
    case Kind::kText:
    case Kind::kError:
      return TextJson(value.text);
    case Kind::kInteger:
      return value.integer;
    case Kind::kDouble:
      return value.number;
    case Kind::kBool:
      return value.integer != 0;
    case Kind::kArray: {
      json::array array;
      for (const RespValue& item : value.items) array.push_back(ToJson(item));
      return array;
    }
    case Kind::kMap:
      return ObjectJson(value);
  }
  return nullptr;
}

json::value JsonAt(const RespValue& array, size_t index) {
  return index < array.items.size() ? ToJson(array.items[index]) : nullptr;
}

json::object ObjectJson(const RespValue& map) {
  json::object object;
  for (size_t i = 0; i + 1 < map.items.size(); i += 2) object[TextJson(map.items[i].text)] = ToJson(map.items[i + 1]);
  return object;
}

json::object JobJson(const RespValue& map) {
  json::object job;
  for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
    if (map.items[i].text == "payload") {
      PutShownPayload(job, map.items[i + 1].text);
    } else {
      job[TextJson(map.items[i].text)] = ToJson(map.items[i + 1]);
    }
  }
  return job;
}

json::object DeliveredJson(const RespValue& array) {
  constexpr size_t kPayload = 2;
  constexpr size_t kKey = 7;
  constexpr size_t kHeaders = 8;
  json::object job{{"id", JsonAt(array, 0)},      {"token", JsonAt(array, 1)},
                   {"attempt", JsonAt(array, 3)}, {"max_attempts", JsonAt(array, 4)},
                   {"due_ms", JsonAt(array, 5)},  {"lease_deadline_ms", JsonAt(array, 6)}};
  if (json::value key = JsonAt(array, kKey); key.is_string()) job["key"] = std::move(key);
  if (array.items.size() > kHeaders && !array.items[kHeaders].items.empty()) {
    job["headers"] = ObjectJson(array.items[kHeaders]);
  }
  if (array.items.size() > kPayload) PutShownPayload(job, array.items[kPayload].text);
  return job;
}

json::object StatsJson(std::string_view info) {
  const auto lines = LinesOf(info);
  json::object stats;
  for (const auto& [line, name] :
       {std::pair("tocsin_version", "version"), std::pair("now_ms", "now_ms"), std::pair("uptime_ms", "uptime_ms"),
        std::pair("shards", "shards"), std::pair("connections", "connections"), std::pair("topics", "topics")}) {
    const auto found = std::ranges::find(lines, line, [](const auto& one) { return one.first; });
    if (found != lines.end()) stats[name] = NumberJson(found->second);
  }
  for (const std::string_view part : {"totals", "conservation", "lateness_ms"}) {
    json::object figures;
    for (const auto& [name, value] : lines) {
      if (!name.starts_with(part) || name.substr(part.size(), 1) != "_") continue;
      figures[TextJson(name.substr(part.size() + 1))] = NumberJson(value);
    }
    stats[part] = std::move(figures);
  }
  return stats;
}

}  // namespace tocsin::cli
