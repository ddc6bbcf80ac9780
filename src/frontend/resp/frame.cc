#include "frontend/resp/frame.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace tocsin::resp {
namespace {

constexpr size_t kDigitsMax = 20;      // of a length
constexpr char kTlsHandshake = 22;     // the first byte of what a TLS client sends
constexpr size_t kArgumentsKept = 32;  // room that is kept between commands

constexpr std::array<std::string_view, 10> kHttpMethods{"GET",     "POST",  "PUT",     "DELETE", "HEAD",
                                                        "OPTIONS", "PATCH", "CONNECT", "TRACE",  "PRI"};

bool IsHttp(std::string_view line) {
  const std::string_view word = line.substr(0, line.find(' '));
  if (word == "Host:" || word == "host:") return true;
  const size_t last = line.rfind(' ');
  return last != std::string_view::npos && line.substr(last + 1).starts_with("HTTP/") &&
         std::ranges::find(kHttpMethods, word) != kHttpMethods.end();
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string Printed(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > ' ' && byte < 0x7f ? fmt::format("'{}'", c) : fmt::format("byte {}", byte);
}

}  // namespace

void FrameParser::Restart() {
  done_ = false;
  counted_ = false;
  at_ = 0;
  needed_ = 0;
  places_.clear();
  args_.clear();
  text_.reset();
}

void FrameParser::Trim() {
  if (!done_) return;
  text_.reset();
  args_.clear();
  if (places_.capacity() <= kArgumentsKept) return;
  places_ = std::vector<Place>();  // {} would keep the memory
  args_ = std::vector<std::string_view>();
}

FrameParser::Step FrameParser::Bad(std::string problem, Code code) {
  problem_ = {code, "protocol: " + std::move(problem), {}};
  return Step::kBad;
}

FrameParser::Step FrameParser::Parse(std::string_view bytes, const FrameLimits& limits) {
  if (done_) Restart();
  if (bytes.empty()) return Step::kMore;
  const Step step = bytes.front() == '*' ? ParseArray(bytes, limits) : ParseInline(bytes, limits);
  if (step != Step::kMore) {
    done_ = true;
    return step;
  }
  needed_ = std::max(needed_, bytes.size() + 1);
  return step;
}

FrameParser::Step FrameParser::ParseLength(std::string_view bytes, std::string_view what, int64_t* length) {
  size_t i = at_ + 1;
  const bool negative = i < bytes.size() && bytes[i] == '-';
  if (negative) ++i;
  const size_t first = i;
  uint64_t value = 0;
  while (i < bytes.size() && bytes[i] >= '0' && bytes[i] <= '9') {
    if (i - first >= kDigitsMax - 2) return Bad(fmt::format("the {} has too many digits", what));
    value = value * 10 + static_cast<uint64_t>(bytes[i++] - '0');
  }
  if (i == bytes.size() || (i + 1 == bytes.size() && bytes[i] == '\r')) return Step::kMore;
  if (i == first || bytes[i] != '\r' || bytes[i + 1] != '\n') {
    return Bad(fmt::format("the {} is not a number with a line end behind it", what));
  }
  *length = negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
  at_ = i + 2;
  return Step::kFrame;
}

FrameParser::Step FrameParser::ParseHead(std::string_view bytes, const FrameLimits& limits) {
  int64_t count = 0;
  if (const Step step = ParseLength(bytes, "number of arguments", &count); step != Step::kFrame) return step;
  counted_ = true;
  left_ = static_cast<size_t>(std::max<int64_t>(count, 0));
  if (left_ > limits.arguments) {
    return Bad(fmt::format("a command of {} arguments: the most is {}", left_, limits.arguments), Code::kTooLarge);
  }
  return Step::kFrame;
}

FrameParser::Step FrameParser::ParseBulk(std::string_view bytes, const FrameLimits& limits) {
  if (at_ == bytes.size()) return Step::kMore;
  if (bytes[at_] != '$') return Bad(fmt::format("expected '$' before an argument, got {}", Printed(bytes[at_])));
  const size_t head = at_;
  int64_t length = 0;
  if (const Step step = ParseLength(bytes, "length of an argument", &length); step != Step::kFrame) return step;
  if (length < 0) return Bad("the length of an argument is negative");
  const size_t size = static_cast<size_t>(length);
  if (size > limits.bytes || at_ + size + 2 > limits.bytes) {
    return Bad(fmt::format("a command of more than {} bytes", limits.bytes), Code::kTooLarge);
  }
  if (bytes.size() < at_ + size + 2) {
    needed_ = at_ + size + 2;
    at_ = head;
    return Step::kMore;
  }
  if (bytes[at_ + size] != '\r' || bytes[at_ + size + 1] != '\n')
    return Bad("an argument is longer than its length says");
  places_.push_back({static_cast<uint32_t>(at_), static_cast<uint32_t>(size)});
  at_ += size + 2;
  --left_;
  return Step::kFrame;
}

FrameParser::Step FrameParser::ParseArray(std::string_view bytes, const FrameLimits& limits) {
  if (!counted_) {
    if (const Step step = ParseHead(bytes, limits); step != Step::kFrame) return step;
  }
  while (left_ > 0) {
    if (const Step step = ParseBulk(bytes, limits); step != Step::kFrame) return step;
  }
  args_.reserve(places_.size());
  for (const Place place : places_) args_.push_back(bytes.substr(place.begin, place.size));
  return Step::kFrame;
}

FrameParser::Step FrameParser::ParseInline(std::string_view bytes, const FrameLimits& limits) {
  const size_t most = std::min(kInlineMax, limits.bytes);
  if (bytes.front() == kTlsHandshake) return Step::kTls;
  if (const char first = bytes.front(); static_cast<unsigned char>(first) < ' ' && first != '\n' && !IsSpace(first)) {
    return Bad(fmt::format("a command begins with '*' or with a letter, got {}", Printed(first)));
  }
  const size_t end = bytes.find('\n', at_);
  if (std::min(end, bytes.size()) > most)
    return Bad(fmt::format("a line of more than {} bytes", most), Code::kTooLarge);
  if (end == std::string_view::npos) {
    at_ = bytes.size();
    return Step::kMore;
  }
  at_ = end + 1;
  std::string_view line = bytes.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (IsHttp(line)) return Step::kHttp;
  if (!SplitLine(line)) return Bad("a quote is not closed");
  if (places_.size() > limits.arguments) {
    return Bad(fmt::format("a command of {} arguments: the most is {}", places_.size(), limits.arguments),
               Code::kTooLarge);
  }
  for (const Place place : places_) args_.push_back(std::string_view(*text_).substr(place.begin, place.size));
  return Step::kFrame;
}

bool FrameParser::SplitLine(std::string_view line) {
  text_ = std::make_shared<std::string>();
  size_t i = 0;
  while (true) {
    while (i < line.size() && IsSpace(line[i])) ++i;
    if (i == line.size()) return true;
    const size_t begin = text_->size();
    const char quote = line[i] == '"' || line[i] == '\'' ? line[i++] : '\0';
    while (i < line.size() && (quote != '\0' ? line[i] != quote : !IsSpace(line[i]))) {
      if (quote == '"' && line[i] == '\\' && i + 1 < line.size()) ++i;
      *text_ += line[i++];
    }
    if (quote != '\0' && i++ == line.size()) return false;
    places_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(text_->size() - begin)});
  }
}

}  // namespace tocsin::resp
