// FrameParser: takes commands out of the bytes of a connection: RESP arrays of bulk strings, or lines of text (inline
// commands). Copies nothing of an array: its arguments are views of the caller's bytes.
//
// Owned by a Session; no thread of its own. It goes on where it stopped: a command that arrives in many pieces is
// looked at once. Everything that a length announces is checked against the limits before anybody allocates for it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tocsin::resp {

constexpr size_t kInlineMax = 64 << 10;

struct FrameLimits {
  size_t bytes = 16 << 20;  // of one command with all its framing
  size_t arguments = 1024;  // with its name
};

class FrameParser {
 public:
  enum class Step : uint8_t {
    kMore,   // the command is not here as a whole
    kFrame,  // args() and size() tell of it
    kHttp,   // what is here is an HTTP request
    kBad,    // problem() says why; nothing behind it can be read
  };

  /// `bytes` begin with the first byte of a command, the same ones as in the call before where that asked for more.
  Step Parse(std::string_view bytes, const FrameLimits& limits);

  /// After kFrame, until the next call. Empty: an empty line or array, which is no command.
  std::span<const std::string_view> args() const { return args_; }
  /// What args() are views of where they are not views of the caller's bytes: an inline command. Null otherwise.
  std::shared_ptr<const std::string> text() const { return text_; }
  /// After kFrame: bytes that the command took.
  size_t size() const { return at_; }
  /// After kMore: bytes that it takes at least, as far as is known.
  size_t needed() const { return needed_; }
  const Error& problem() const { return problem_; }
  /// Gives back what a large command needed, once it is done with.
  void Trim();

 private:
  struct Place {
    uint32_t begin;
    uint32_t size;
  };

  void Restart();
  Step ParseArray(std::string_view bytes, const FrameLimits& limits);
  Step ParseHead(std::string_view bytes, const FrameLimits& limits);
  Step ParseBulk(std::string_view bytes, const FrameLimits& limits);
  Step ParseInline(std::string_view bytes, const FrameLimits& limits);
  /// The number behind the type byte at at_, and its line end.
  Step ParseLength(std::string_view bytes, std::string_view what, int64_t* length);
  bool SplitLine(std::string_view line);
  Step Bad(std::string problem, Code code = Code::kInvalidArgument);

  bool done_ = true;      // the next call begins a new command
  bool counted_ = false;  // the head of the array is read
  size_t at_ = 0;         // bytes looked at
  size_t left_ = 0;       // arguments to come
  size_t needed_ = 0;
  std::vector<Place> places_;
  std::vector<std::string_view> args_;
  std::shared_ptr<std::string> text_;  // of an inline command, unquoted
  Error problem_;
};

}  // namespace tocsin::resp
