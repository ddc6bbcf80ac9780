#include "frontend/http/json_writer.h"

#include <array>
#include <charconv>

#include <fmt/format.h>

namespace tocsin::http {
namespace {

constexpr std::array<bool, 256> kEscaped = [] {
  std::array<bool, 256> escaped{};
  for (size_t i = 0; i < 0x20; ++i) escaped[i] = true;
  escaped['"'] = escaped['\\'] = escaped[0x7F] = true;
  return escaped;
}();

void AppendEscape(std::string& out, char c) {
  constexpr std::string_view kShort = "\"\\\n\r\t";
  constexpr std::string_view kLetters = "\"\\nrt";
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '\\';
  if (const size_t at = kShort.find(c); at != std::string_view::npos) {
    out += kLetters[at];
    return;
  }
  const auto byte = static_cast<uint8_t>(c);
  out += {'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
}

}  // namespace

void AppendString(std::string& out, std::string_view text) {
  out += '"';
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!kEscaped[static_cast<uint8_t>(text[i])]) [[likely]]
      continue;
    out.append(text, begin, i - begin);
    AppendEscape(out, text[i]);
    begin = i + 1;
  }
  out.append(text, begin);
  out += '"';
}

void AppendInteger(std::string& out, int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  out.append(digits, end);
}

/// A comma, unless this is the first in an object or array, or the value of a member.
void JsonWriter::Separate() {
  if (out_.empty()) return;
  const char last = out_.back();
  if (last != '{' && last != '[' && last != ':') out_ += ',';
}

void JsonWriter::Object(size_t /*members*/) {
  Separate();
  out_ += '{';
}

void JsonWriter::Array(size_t /*items*/) {
  Separate();
  out_ += '[';
}

void JsonWriter::Name(std::string_view name) {
  Separate();
  AppendString(out_, name);
  out_ += ':';
}

void JsonWriter::Text(std::string_view text) {
  Separate();
  AppendString(out_, IsUtf8(text) ? text : "not valid UTF-8");
}

void JsonWriter::Number(int64_t number) {
  Separate();
  AppendInteger(out_, number);
}

void JsonWriter::Real(double number) {
  Separate();
  fmt::format_to(std::back_inserter(out_), "{:.3f}", number);
}

void JsonWriter::Flag(bool flag) {
  Separate();
  out_ += flag ? "true" : "false";
}

void JsonWriter::Null() {
  Separate();
  out_ += "null";
}

void JsonWriter::Payload(std::string_view payload) {
  Separate();
  const size_t begin = out_.size();
  if (IsUtf8(payload)) {
    out_ += "\"payload\":";
    AppendString(out_, payload);
    if (out_.size() - begin <= 64 + payload.size() / 3 * 4) return;
    out_.resize(begin);
  }
  out_ += "\"payload_base64\":\"";
  AppendBase64(out_, payload);
  out_ += '"';
}

}  // namespace tocsin::http
