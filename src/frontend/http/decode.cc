#include "frontend/http/decode.h"

#include "frontend/http/fields.h"
#include "frontend/http/unique_keys.h"

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

}  // namespace tocsin::http
