// ChunkedDecoder: takes a chunked body (RFC 9112, 7.1) apart as its bytes arrive. One for each message; owned by the
// session that reads a request, or by the reader of a webhook's answer.
//
// Beast's parsers read headers only. They put no bound on a trailer: one throws if a field is over 64 KiB, the other
// waits for the end however long it is, and asserts if a body without data comes in small pieces.
//
// Invariants: the decoder holds no bytes. Data goes to the caller's body; sizes become a number; extensions and the
// trailer are checked, counted and dropped. Each of these is bounded, and CR comes only before LF: two servers in a row
// must not disagree about where a message ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::net {

class ChunkedDecoder {
 public:
  static constexpr size_t kSizeDigitsMax = 16;
  static constexpr size_t kExtensionBytesMax = 256;     // for each chunk
  static constexpr size_t kTrailerBytesMax = 16 << 10;  // in all

  enum class Step {
    kMore,          // all bytes are used, and the body is not complete
    kDone,          // the body and its trailer are complete
    kBodyTooLarge,  // the next chunk would make the body larger than `body_bytes_max`
    kBad,           // see problem()
  };

  /// Appends the data in `bytes` to `body` and removes what it used from the front of `bytes`.
  Step Decode(std::string_view& bytes, std::string& body, size_t body_bytes_max);
  const Error& problem() const { return problem_; }

 private:
  enum class State : uint8_t {
    kFirstDigit,
    kDigits,
    kBlank,  // between the size and the ';' of an extension
    kExtension,
    kSizeEnd,  // LF
    kData,
    kDataCr,
    kDataLf,
    kLine,  // of the trailer: its first byte
    kName,
    kValue,
    kLineEnd,  // LF
    kLast,     // LF of the empty line
    kDone,
  };

  Step Take(char c, size_t room);
  Step TakeSize(char c);
  Step EndSize(char c, size_t room);
  Step TakeTrailer(char c);
  Step Expect(char c, char expected, State next);
  Step Bad(std::string_view message);
  Step TooLarge(std::string_view what, size_t bytes_max);

  State state_ = State::kFirstDigit;
  uint64_t chunk_ = 0;          // bytes of data that are still to come
  size_t digits_ = 0;           // of the size
  size_t extension_bytes_ = 0;  // of this chunk
  size_t trailer_bytes_ = 0;
  Error problem_{Code::kInvalidArgument, {}, {}};
};

}  // namespace tocsin::net
