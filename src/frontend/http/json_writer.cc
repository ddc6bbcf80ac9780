#include "frontend/http/json_writer.h"

#include <array>
#include <charconv>

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

std::string& JsonWriter::Next() {
  const char last = out_.empty() ? '{' : out_.back();
  if (last != '{' && last != '[' && last != ':') out_ += ',';
  return out_;
}

void JsonWriter::Payload(std::string_view payload) {
  const size_t begin = Next().size();
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
