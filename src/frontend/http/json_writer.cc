#include "frontend/http/json_writer.h"

#include <fmt/format.h>

#include "frontend/http/text.h"

namespace tocsin::http {

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
