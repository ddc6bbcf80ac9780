// One JSON object, made field by field. Names and texts are our own: nothing in them needs escaping.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/net.h"

namespace tocsin::bench {

class Json {
 public:
  Json& Number(std::string_view name, double value) { return Add(name, fmt::format("{:.6g}", value)); }
  Json& Count(std::string_view name, size_t value) { return Add(name, fmt::format("{}", value)); }
  Json& Bool(std::string_view name, bool value) { return Add(name, value ? "true" : "false"); }
  Json& Text(std::string_view name, std::string_view value) { return Add(name, fmt::format("\"{}\"", value)); }
  Json& Object(std::string_view name, const Json& value) { return Add(name, value.text()); }
  /// The field of another object, under a name of its own here.
  Json& Take(std::string_view name, const Json& from, std::string_view field) {
    for (const auto& [known, value] : from.fields_) {
      if (known == field) return Add(name, value);
    }
    Die("no figure {}", field);
  }
  std::string text() const {
    std::string out;
    for (const auto& [name, value] : fields_) out += fmt::format("{}\"{}\": {}", out.empty() ? "" : ", ", name, value);
    return fmt::format("{{{}}}", out);
  }

 private:
  Json& Add(std::string_view name, std::string value) {
    fields_.emplace_back(name, std::move(value));
    return *this;
  }

  std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace tocsin::bench
