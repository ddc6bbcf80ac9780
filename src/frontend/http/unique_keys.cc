#include "frontend/http/unique_keys.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>

#include "frontend/http/unknown_field.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;

constexpr size_t kKeysMax = 1'000;  // far more than any object of a call has

/// `at` is after the opening quote of a string of valid JSON. Returns the position after the closing quote.
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

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool EndsNumber(char c) { return c == ',' || c == ']' || c == '}' || IsBlank(c); }

/// Walks valid JSON to the first object whose end is reached and that has a key twice, or too many to look at. Only for
/// bodies that have a key twice; takes about as long as parsing them.
class Finder {
 public:
  explicit Finder(std::string_view body) : at_(body.data()), end_(body.data() + body.size()) {}

  Error Find() {
    Value();
    return {Code::kInvalidArgument, fault_, path_};
  }

 private:
  /// Where the walk is: in a member of an object, or in an element of an array.
  struct Step {
    std::string_view key;
    size_t index = 0;
    bool in_array = false;
  };

  bool found() const { return !fault_.empty(); }
  char Next() {
    while (at_ < end_ && IsBlank(*at_)) ++at_;
    return at_ < end_ ? *at_ : '\0';
  }
  std::string_view Key() {
    const char* const begin = at_;
    at_ = SkipString(at_ + 1, end_);
    const std::string_view quoted(begin, static_cast<size_t>(at_ - begin));
    if (!quoted.contains('\\')) return quoted.substr(1, quoted.size() - 2);
    if (++escaped_ > kKeysMax) fault_ = "a key is there twice, among more than 1000 that have escapes";
    return decoded_.emplace_back(json::parse(quoted).as_string());
  }
  void Object() {
    const size_t keys_before = keys_.size();
    const size_t decoded_before = decoded_.size();
    steps_.emplace_back();
    for (++at_; Next() != '}';) {
      keys_.push_back(steps_.back().key = Key());
      if (keys_.size() - keys_before > kKeysMax) return FoundTooMany();
      if (found()) return;
      Next();
      ++at_;  // the colon
      Value();
      if (found()) return;
      if (Next() == ',') ++at_, Next();
    }
    ++at_;
    const auto begin = keys_.begin() + static_cast<ptrdiff_t>(keys_before);
    std::ranges::sort(begin, keys_.end());
    if (const auto twice = std::ranges::adjacent_find(begin, keys_.end()); twice != keys_.end()) {
      return FoundTwice(*twice);
    }
    steps_.pop_back();
    keys_.resize(keys_before);
    decoded_.resize(decoded_before);
  }
  void Array() {
    steps_.push_back({.in_array = true});
    for (++at_; Next() != ']'; ++steps_.back().index) {
      Value();
      if (found()) return;
      if (Next() == ',') ++at_;
    }
    ++at_;
    steps_.pop_back();
  }
  void Value() {
    switch (Next()) {
      case '{':
        return Object();
      case '[':
        return Array();
      case '"':
        at_ = SkipString(at_ + 1, end_);
        return;
      default:
        while (at_ < end_ && !EndsNumber(*at_)) ++at_;
    }
  }
  void FoundTwice(std::string_view key) {
    steps_.back().key = key;
    MakePath();
    fault_ = fmt::format("{} is there twice", path_);
  }
  void FoundTooMany() {
    steps_.pop_back();
    MakePath();
    fault_ = fmt::format("{} has more than {} keys", path_.empty() ? "the body" : path_, kKeysMax);
  }
  void MakePath() {
    for (const Step& step : steps_) {
      if (step.in_array) {
        path_ += fmt::format("[{}]", step.index);
      } else {
        path_ += (path_.empty() ? "" : ".") + Shown(step.key);
      }
    }
  }

  const char* at_;
  const char* const end_;
  std::vector<Step> steps_;
  std::vector<std::string_view> keys_;  // of the objects that the walk is in, one after the other
  std::deque<std::string> decoded_;     // those of them that have escapes
  size_t escaped_ = 0;                  // keys so far: decoding one takes longer than parsing it
  std::string path_;
  std::string fault_;
};

}  // namespace

Status CheckKeysAreUnique(std::string_view body, const json::value& root) {
  // Counting is many times faster than comparing keys, and the parser has compared them already.
  if (PairsInText(body) == PairsIn(root)) return {};
  return std::unexpected(Finder(body).Find());
}

}  // namespace tocsin::http
