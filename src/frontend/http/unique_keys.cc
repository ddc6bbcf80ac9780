#include "frontend/http/unique_keys.h"

#include <cstring>
#include <set>
#include <string>

#include <boost/json/parse.hpp>

#include "frontend/http/unknown_field.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;

/// `at` is behind the opening quote of a string of valid JSON; returns what is behind the closing one.
const char* SkipString(const char* at, const char* end) {
  while (true) {
    const char* quote = static_cast<const char*>(std::memchr(at, '"', static_cast<size_t>(end - at)));
    const char* slash = quote;
    while (slash[-1] == '\\') --slash;
    at = quote + 1;
    if ((quote - slash) % 2 == 0) return at;  // an odd number of backslashes escapes the quote
  }
}

size_t PairsInText(std::string_view body) {
  size_t pairs = 0;
  const char* const end = body.data() + body.size();
  for (const char* at = body.data(); at < end;) {
    const char c = *at++;
    if (c == ':') ++pairs;
    if (c == '"') at = SkipString(at, end);
  }
  return pairs;
}

size_t PairsIn(const json::value& value) {
  size_t pairs = 0;
  if (const auto* object = value.if_object()) {
    pairs = object->size();
    for (const auto& [key, member] : *object) {
      if (member.is_structured()) pairs += PairsIn(member);
    }
  } else if (const auto* array = value.if_array()) {
    for (const json::value& member : *array) {
      if (member.is_structured()) pairs += PairsIn(member);
    }
  }
  return pairs;
}

/// Walks valid JSON to the first key that its object had already. Only for bodies that have one.
class Finder {
 public:
  explicit Finder(std::string_view body) : at_(body.data()), end_(body.data() + body.size()) {}

  /// The key's path, empty where there is none.
  std::string Find() {
    Value("");
    return found_;
  }

 private:
  char Next() {
    while (at_ < end_ && std::strchr(" \t\r\n", *at_) != nullptr) ++at_;
    return at_ < end_ ? *at_ : '\0';
  }
  std::string Key() {
    const char* begin = at_;
    at_ = SkipString(at_ + 1, end_);
    return std::string(json::parse(std::string_view(begin, static_cast<size_t>(at_ - begin))).as_string());
  }
  void Object(const std::string& path) {
    std::set<std::string, std::less<>> keys;
    for (++at_; Next() != '}' && found_.empty();) {
      std::string key = Key();
      const std::string member = path.empty() ? Shown(key) : fmt::format("{}.{}", path, Shown(key));
      if (!keys.insert(std::move(key)).second) found_ = member;
      Next();
      ++at_;  // the colon
      Value(member);
      if (Next() == ',') ++at_, Next();
    }
    ++at_;
  }
  void Array(const std::string& path) {
    ++at_;
    for (size_t i = 0; Next() != ']' && found_.empty(); ++i) {
      Value(fmt::format("{}[{}]", path, i));
      if (Next() == ',') ++at_;
    }
    ++at_;
  }
  void Value(const std::string& path) {
    if (!found_.empty()) return;
    switch (Next()) {
      case '{':
        return Object(path);
      case '[':
        return Array(path);
      case '"':
        at_ = SkipString(at_ + 1, end_);
        return;
      default:
        while (at_ < end_ && std::strchr(",]} \t\r\n", *at_) == nullptr) ++at_;
    }
  }

  const char* at_;
  const char* const end_;
  std::string found_;
};

}  // namespace

Status CheckKeysAreUnique(std::string_view body, const json::value& root) {
  // Counting is many times faster than comparing keys, and the parser has compared them already.
  if (PairsInText(body) == PairsIn(root)) return {};
  const std::string path = Finder(body).Find();
  return FailField(Code::kInvalidArgument, path, "{} is there twice", path);
}

}  // namespace tocsin::http
