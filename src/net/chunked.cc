#include "net/chunked.h"

#include <algorithm>

#include <fmt/format.h>

namespace tocsin::net {
namespace {

/// The value of a hexadecimal digit; -1 if it is none.
int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

/// What may stand in an extension or in a field's value.
bool IsText(char c) { return IsBlank(c) || (static_cast<unsigned char>(c) > ' ' && c != 0x7f); }

/// What a field's name consists of (RFC 9110, 5.6.2).
bool IsOfName(char c) {
  const bool alphanumeric = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  return alphanumeric || std::string_view("!#$%&'*+-.^_`|~").contains(c);
}

}  // namespace

ChunkedDecoder::Step ChunkedDecoder::Decode(std::string_view& bytes, std::string& body, size_t body_bytes_max) {
  while (state_ != State::kDone) {
    if (bytes.empty()) return Step::kMore;
    if (state_ == State::kData) {
      const size_t count = std::min<uint64_t>(chunk_, bytes.size());
      body.append(bytes.substr(0, count));
      bytes.remove_prefix(count);
      chunk_ -= count;
      if (chunk_ == 0) state_ = State::kDataCr;
      continue;
    }
    const char c = bytes.front();
    bytes.remove_prefix(1);
    const Step step = Take(c, body_bytes_max - std::min(body.size(), body_bytes_max));
    if (step != Step::kMore) return step;
  }
  return Step::kDone;
}

ChunkedDecoder::Step ChunkedDecoder::Take(char c, size_t room) {
  switch (state_) {
    case State::kSizeEnd:
      return EndSize(c, room);
    case State::kDataCr:
      return Expect(c, '\r', State::kDataLf);
    case State::kDataLf:
      return Expect(c, '\n', State::kFirstDigit);
    case State::kLine:
    case State::kName:
    case State::kValue:
    case State::kLineEnd:
    case State::kLast:
      return TakeTrailer(c);
    default:
      return TakeSize(c);
  }
}

ChunkedDecoder::Step ChunkedDecoder::TakeSize(char c) {
  if (state_ == State::kFirstDigit) {
    chunk_ = digits_ = extension_bytes_ = 0;
    state_ = State::kDigits;
  }
  if (const int digit = DigitOf(c); state_ == State::kDigits && digit >= 0) {
    if (++digits_ > kSizeDigitsMax) return Bad("the size of a chunk has too many digits");
    chunk_ = chunk_ * 16 + static_cast<uint64_t>(digit);
    return Step::kMore;
  }
  if (digits_ == 0) return Bad("a chunk does not begin with its size in hexadecimal digits");
  if (c == '\r' && state_ != State::kBlank) {
    state_ = State::kSizeEnd;
    return Step::kMore;
  }
  if (++extension_bytes_ > kExtensionBytesMax) return TooLarge("the extension of a chunk", kExtensionBytesMax);
  if (state_ != State::kExtension) {
    if (c != ';' && !IsBlank(c)) return Bad("the size of a chunk is not a hexadecimal number");
    state_ = c == ';' ? State::kExtension : State::kBlank;
  }
  return IsText(c) ? Step::kMore : Bad("the extension of a chunk has a control character");
}

ChunkedDecoder::Step ChunkedDecoder::EndSize(char c, size_t room) {
  if (chunk_ > room) return Step::kBodyTooLarge;
  return Expect(c, '\n', chunk_ > 0 ? State::kData : State::kLine);
}

ChunkedDecoder::Step ChunkedDecoder::TakeTrailer(char c) {
  if (++trailer_bytes_ > kTrailerBytesMax) return TooLarge("the trailer", kTrailerBytesMax);
  if (state_ == State::kLast) return Expect(c, '\n', State::kDone);
  if (state_ == State::kLineEnd) return Expect(c, '\n', State::kLine);
  if (state_ == State::kLine && c == '\r') {
    state_ = State::kLast;
  } else if (state_ == State::kName && c == ':') {
    state_ = State::kValue;
  } else if (state_ == State::kValue && c == '\r') {
    state_ = State::kLineEnd;
  } else if (state_ == State::kValue) {
    if (!IsText(c)) return Bad("the trailer has a control character");
  } else if (IsOfName(c)) {
    state_ = State::kName;
  } else {
    return Bad("a line of the trailer is not \"name: value\"");
  }
  return Step::kMore;
}

ChunkedDecoder::Step ChunkedDecoder::Expect(char c, char expected, State next) {
  if (c != expected) return Bad("a line of the chunked body does not end in CR LF, or a chunk is not of its size");
  state_ = next;
  return Step::kMore;
}

ChunkedDecoder::Step ChunkedDecoder::Bad(std::string_view message) {
  problem_.message = message;
  return Step::kBad;
}

ChunkedDecoder::Step ChunkedDecoder::TooLarge(std::string_view what, size_t bytes_max) {
  problem_ = {Code::kTooLarge, fmt::format("{} is over {} bytes", what, bytes_max), {}};
  return Step::kBad;
}

}  // namespace tocsin::net
