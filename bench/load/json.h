// One JSON object, made field by field. Names and texts are our own: nothing in them needs escaping.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tocsin::bench {

class Json {
 public:
  Json& Number(std::string_view name, double value) { return Add(name, fmt::format("{:.6g}", value)); }
  Json& Count(std::string_view name, size_t value) { return Add(name, fmt::format("{}", value)); }
  Json& Bool(std::string_view name, bool value) { return Add(name, value ? "true" : "false"); }
  Json& Text(std::string_view name, std::string_view value) { return Add(name, fmt::format("\"{}\"", value)); }
  Json& Object(std::string_view name, const Json& value) { return Add(name, value.text()); }
  std::string text() const { return fmt::format("{{{}}}", fields_); }

 private:
  Json& Add(std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(fields_), "{}\"{}\": {}", fields_.empty() ? "" : ", ", name, value);
    return *this;
  }

  std::string fields_;
};

}  // namespace tocsin::bench
