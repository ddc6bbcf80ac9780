// JsonWriter: answers as JSON, appended to its own string. Texts that are not valid UTF-8 are replaced: they come from
// other programs, or were cut to their limit within a character.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "frontend/shared/value_writer.h"

namespace tocsin::http {

/// "text", quoted and escaped. `text` is valid UTF-8.
void AppendString(std::string& out, std::string_view text);
void AppendInteger(std::string& out, int64_t value);

class JsonWriter final : public shared::ValueWriter {
 public:
  void Object(size_t /*members*/) override { Next() += '{'; }
  void EndObject() override { out_ += '}'; }
  void Name(std::string_view name) override {
    AppendString(Next(), name);
    out_ += ':';
  }
  void Array(size_t /*items*/) override { Next() += '['; }
  void EndArray() override { out_ += ']'; }
  void Text(std::string_view text) override { AppendString(Next(), IsUtf8(text) ? text : "not valid UTF-8"); }
  void Number(int64_t number) override { AppendInteger(Next(), number); }
  void Real(double number) override { fmt::format_to(std::back_inserter(Next()), "{:.3f}", number); }
  void Flag(bool flag) override { Next() += flag ? "true" : "false"; }
  void Null() override { Next() += "null"; }
  /// As text if that is shorter: a control character takes six bytes when it is escaped. Otherwise as base64.
  void Payload(std::string_view payload) override;

  void Reserve(size_t bytes) { out_.reserve(bytes); }
  std::string Take() { return std::move(out_); }

 private:
  /// With a comma, unless the first in an object or array, or the value of a member, comes next.
  std::string& Next();

  std::string out_;
};

}  // namespace tocsin::http
