#include "cli/resp_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tocsin::cli {
namespace {

using Kind = RespValue::Kind;

constexpr size_t kCompactBytes = size_t{1} << 16;

std::unexpected<Error> NotResp(std::string_view what) { return Fail(Code::kCorrupt, "not RESP: {}", what); }
std::unexpected<Error> TooLarge(std::string_view what) { return Fail(Code::kTooLarge, "the answer has {}", what); }

template <class Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// A value whose line is all of it.
Result<RespValue> ScalarOf(char type, std::string_view line) {
  switch (type) {
    case '+':
      return RespValue{.kind = Kind::kText, .text = std::string(line)};
    case '-':
      return RespValue{.kind = Kind::kError, .text = std::string(line)};
    case ':':
      if (const auto number = ParseNumber<int64_t>(line)) return RespValue{.kind = Kind::kInteger, .integer = *number};
      return NotResp("an integer that is none");
    case ',':
      if (const auto number = ParseNumber<double>(line)) return RespValue{.kind = Kind::kDouble, .number = *number};
      return NotResp("a double that is none");
    case '#':
      if (line == "t" || line == "f") return RespValue{.kind = Kind::kBool, .integer = line == "t" ? 1 : 0};
      return NotResp("a boolean that is none");
    case '_':
      if (line.empty()) return RespValue{};
      return NotResp("a null with a value");
    default:
      return NotResp("an unknown type");
  }
}

/// A value as it begins on the wire: an array or a map without its items.
struct Part {
  RespValue value;
  size_t items = 0;
  size_t bytes = 0;
};

/// A text, an array or a map, whose length `line` is; nothing where its bytes are not all there.
Result<std::optional<Part>> SizedPartOf(char type, std::string_view line, std::string_view rest, size_t bytes_max) {
  Part part{.value = {}, .items = 0, .bytes = line.size() + 3};
  if (line == "-1") return part;  // the null of RESP2, which the server may speak before HELLO
  const auto length = ParseNumber<size_t>(line);
  if (!length) return NotResp("a length that is none");
  if (type != '$') {
    if (*length > RespReader::kValuesMax) return TooLarge("too many values");
    part.value.kind = type == '*' ? Kind::kArray : Kind::kMap;
    part.items = type == '*' ? *length : *length * 2;
    return part;
  }
  if (*length > bytes_max) return TooLarge("too many bytes");
  rest.remove_prefix(part.bytes);
  if (rest.size() < *length + 2) return std::nullopt;
  if (rest.substr(*length, 2) != "\r\n") return NotResp("a text that does not end where it should");
  part.value = {.kind = Kind::kText, .text = std::string(rest.substr(0, *length))};
  part.bytes += *length + 2;
  return part;
}

/// What `rest` begins with; nothing where it is not all there.
Result<std::optional<Part>> PartOf(std::string_view rest, size_t bytes_max) {
  const size_t end = rest.substr(0, RespReader::kLineMax).find("\r\n");
  if (end == std::string_view::npos) {
    if (rest.size() < RespReader::kLineMax) return std::nullopt;
    return NotResp("a line without an end");
  }
  if (end == 0) return NotResp("an empty line");
  const char type = rest[0];
  const std::string_view line = rest.substr(1, end - 1);
  if (type == '$' || type == '*' || type == '%') return SizedPartOf(type, line, rest, bytes_max);
  auto value = ScalarOf(type, line);
  if (!value) return std::unexpected(std::move(value).error());
  return Part{.value = *std::move(value), .items = 0, .bytes = end + 2};
}

}  // namespace

void RespReader::Append(std::string_view bytes) {
  if (at_ >= kCompactBytes && at_ >= buffer_.size() / 2) buffer_.erase(0, std::exchange(at_, 0));
  buffer_ += bytes;
}

Result<std::optional<RespValue>> RespReader::Next() {
  std::optional<RespValue> whole;
  while (!whole) {
    const auto moved = Step(whole);
    if (!moved) return std::unexpected(moved.error());
    if (!*moved) return std::nullopt;
  }
  values_ = 0;
  bytes_ = 0;
  return whole;
}

/// Takes one value; false where it is not there yet. Sets `whole` where it completes the reply.
Result<bool> RespReader::Step(std::optional<RespValue>& whole) {
  auto part = PartOf(std::string_view(buffer_).substr(at_), kBytesMax - bytes_);
  if (!part) return std::unexpected(std::move(part).error());
  if (!*part) return false;
  at_ += (*part)->bytes;
  bytes_ = std::min(bytes_ + (*part)->bytes, kBytesMax);
  values_ += (*part)->items;
  if (values_ > kValuesMax) return TooLarge("too many values");
  if ((*part)->items == 0) {
    whole = Close(std::move((*part)->value));
    return true;
  }
  if (open_.size() == kDepthMax) return TooLarge("too many values within values");
  open_.push_back({std::move((*part)->value), (*part)->items});
  return true;
}

/// Puts a whole value where it belongs: the reply, where it is that or completes it.
std::optional<RespValue> RespReader::Close(RespValue value) {
  while (!open_.empty()) {
    Open& around = open_.back();
    around.value.items.push_back(std::move(value));
    if (--around.left > 0) return std::nullopt;
    value = std::move(around.value);
    open_.pop_back();
  }
  return value;
}

}  // namespace tocsin::cli
