// FrameParser: takes commands out of the bytes of a connection: RESP arrays of bulk strings, or lines of text (inline
// commands). Copies nothing of an array: its arguments are views of the caller's bytes.
//
// Owned by a Session. It continues where it stopped: it looks at each byte of a command once, however many pieces it
// arrives in. It checks every announced length against the limits before anything is allocated for it.
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
  size_t bytes = 16 << 20;  // of one command with its framing
  size_t arguments = 1024;  // with its name
};

class FrameParser {
 public:
  enum class Step : uint8_t {
    kMore,   // the command is incomplete
    kFrame,  // see args() and size()
    kHttp,   // the bytes are an HTTP request
    kTls,    // they are a TLS handshake
    kBad,    // see problem(); nothing after it can be read
  };

  /// `bytes` begin with the first byte of a command. After kMore, they begin with the bytes of the last call.
  Step Parse(std::string_view bytes, const FrameLimits& limits);

  /// After kFrame, until the next call. Empty for an empty line or array, which is no command.
  std::span<const std::string_view> args() const { return args_; }
  /// For an inline command, the text that args() are views of; null if they are views of the caller's bytes.
  std::shared_ptr<const std::string> text() const { return text_; }
  /// After kFrame: the bytes of the command.
  size_t size() const { return at_; }
  /// After kMore: the bytes that the command has at least.
  size_t needed() const { return needed_; }
  const Error& problem() const { return problem_; }
  /// Frees memory that the last command needed.
  void Trim();
  /// Bytes that it keeps, without the text of an inline command.
  size_t memory() const { return places_.capacity() * sizeof(Place) + args_.capacity() * sizeof(std::string_view); }

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
  /// Reads the number after the type byte at at_, and the end of its line.
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
