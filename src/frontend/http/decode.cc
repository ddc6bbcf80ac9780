#include "frontend/http/decode.h"

#include <cstring>

#include <boost/json/parse.hpp>

#include "base/text.h"
#include "frontend/http/step_parser.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;

constexpr size_t kArenaMin = 1024;
// A parser keeps its stack, which is many times the size of a body of small values: a connection keeps a small one
// only.
constexpr size_t kKeptParserBytes = 16 << 10;

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

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool EndsNumber(char c) { return c == ',' || c == ']' || c == '}' || IsBlank(c); }

/// Walks a body, which is valid JSON with unique keys, and finds the text of each payload. Takes about as long as
/// parsing it, so it runs only for bodies with a payload that is not a string.
class PayloadFinder {
 public:
  explicit PayloadFinder(std::string_view body) : at_(body.data()), end_(body.data() + body.size()) {}

  std::vector<std::string_view> Find() {
    std::vector<std::string_view> found(1);
    Members([&](std::string_view key) {
      if (key == "payload") {
        found[0] = Skip();
      } else if (key == "jobs" && Next() == '[') {
        found.clear();
        for (++at_; Next() != ']';) {
          found.emplace_back();
          Next() == '{' ? Members([&](std::string_view name) { OfJob(name, found.back()); }) : void(Skip());
          if (Next() == ',') ++at_;
        }
        ++at_;
      } else {
        Skip();
      }
    });
    return found;
  }

 private:
  void OfJob(std::string_view key, std::string_view& payload) {
    const std::string_view value = Skip();
    if (key == "payload") payload = value;
  }
  char Next() {
    while (at_ < end_ && IsBlank(*at_)) ++at_;
    return at_ < end_ ? *at_ : '\0';
  }
  /// Calls `take` with each key of the object that begins here; `take` moves past its value.
  template <class Take>
  void Members(Take take) {
    Next();
    for (++at_; Next() != '}';) {
      const char* const begin = at_;
      at_ = SkipString(at_ + 1, end_);
      std::string key(begin + 1, at_ - 1);
      if (key.contains('\\')) key = std::string(json::parse({begin, static_cast<size_t>(at_ - begin)}).as_string());
      Next();
      ++at_;  // the colon
      take(key);
      if (Next() == ',') ++at_;
    }
    ++at_;
  }
  /// Moves past a value and returns its text.
  std::string_view Skip() {
    Next();
    const char* const begin = at_;
    size_t depth = 0;
    do {
      const char c = *at_;
      if (c == '"') {
        at_ = SkipString(at_ + 1, end_);
      } else if (c == '{' || c == '[' || c == '}' || c == ']') {
        depth += c == '{' || c == '[' ? 1 : -1;
        ++at_;
      } else if (depth > 0) {
        ++at_;
      } else {
        while (at_ < end_ && !EndsNumber(*at_)) ++at_;
      }
    } while (depth > 0);
    return {begin, static_cast<size_t>(at_ - begin)};
  }

  const char* at_;
  const char* const end_;
};

}  // namespace

// Parsed JSON takes more room than its text: one block for most bodies.
Document::Document(std::string_view body, net::Budget* budget)
    : arena_(std::max(kArenaMin, body.size() * 2)), body_(body) {
  if (budget != nullptr) charge_.emplace(*budget, net::Charge::For::kRequest);
}

Result<std::shared_ptr<Document>> Document::Parse(const std::shared_ptr<BodyParser>& parser, std::string_view body,
                                                  const BodyLimits& limits) {
  StepParser stepwise(body.size() <= kKeptParserBytes ? parser : MakeParser(), body, limits);
  while (!stepwise.Step()) {
  }
  return stepwise.Take();
}

std::unexpected<Error> Document::NotJson(const boost::system::error_code& error, size_t at) {
  return Fail(Code::kInvalidArgument, "the body is not valid JSON: {} at byte {}; nesting may be {} deep",
              error.message(), at, kDepthMax);
}

std::string_view Document::PayloadSource(size_t job) {
  if (!payload_sources_) payload_sources_ = PayloadFinder(body_).Find();
  return job < payload_sources_->size() ? (*payload_sources_)[job] : std::string_view();
}

}  // namespace tocsin::http
