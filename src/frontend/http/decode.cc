#include "frontend/http/decode.h"

#include <cstring>

#include <boost/json/parse.hpp>

#include "base/text.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;

constexpr size_t kDepthMax = 32;
constexpr size_t kArenaMin = 1024;
// A parser keeps its stack, which is many times the size of a body of small values: a connection keeps a small one
// only.
constexpr size_t kKeptParserBytes = 16 << 10;
constexpr size_t kValuesMin = 1 << 20;
constexpr size_t kBytesPerValue = 8;

bool OpensValue(char c) { return c == ',' || c == '[' || c == '{'; }

/// A value takes more than ten times the two bytes that its text may have, in the parser and again in the document.
/// Bounding the values bounds the memory, which is given back with the request, to a small multiple of the body.
size_t ValuesMax(std::string_view body) { return std::max(kValuesMin, body.size() / kBytesPerValue); }

bool HasTooManyValues(std::string_view body) {
  const size_t max = ValuesMax(body);
  if (body.size() <= max) return false;
  // Fast, and enough for nearly all bodies: those in strings count as well.
  if (static_cast<size_t>(std::ranges::count_if(body, OpensValue)) <= max) return false;
  size_t values = 0;
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    if (in_string && body[i] == '\\') {
      ++i;
    } else if (body[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && OpensValue(body[i])) {
      ++values;
    }
  }
  return values > max;
}

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

json::parser MakeParser() {
  json::parse_options options;
  options.max_depth = kDepthMax;
  return json::parser({}, options);
}

// Parsed JSON takes more room than its text: one block for most bodies.
Document::Document(size_t body_bytes) : arena_(std::max(kArenaMin, body_bytes * 2)) {}

Result<std::shared_ptr<Document>> Document::Parse(json::parser& parser, std::string_view body) {
  if (body.size() <= kKeptParserBytes) return ParseWith(parser, body);
  if (HasTooManyValues(body)) {
    return Fail(Code::kTooLarge, "the body has more than {} values", ValuesMax(body));
  }
  json::parser once = MakeParser();
  return ParseWith(once, body);
}

Result<std::shared_ptr<Document>> Document::ParseWith(json::parser& parser, std::string_view body) {
  auto document = std::make_shared<Document>(body.size());
  parser.reset(&document->arena_);
  boost::system::error_code error;
  const size_t parsed = parser.write(body.data(), body.size(), error);
  if (error) {
    parser.reset();
    return Fail(Code::kInvalidArgument, "the body is not valid JSON: {} at byte {}; nesting may be {} deep",
                error.message(), parsed, kDepthMax);
  }
  document->root_.emplace(parser.release());
  TOCSIN_TRY(CheckKeysAreUnique(body, *document->root_));
  if (!document->root_->is_object()) return Fail(Code::kInvalidArgument, "the body is not a JSON object");
  return document;
}

Status CheckKeysAreUnique(std::string_view body, const json::value& root) {
  // Counting is many times faster than comparing keys, and the parser has compared them already.
  if (PairsInText(body) == PairsIn(root)) return {};
  return std::unexpected(Finder(body).Find());
}

}  // namespace tocsin::http
