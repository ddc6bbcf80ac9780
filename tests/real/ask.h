// Ask: one command to a Redis on loopback, and its answer, over a connection of its own that blocks. For tests that
// look at a server or set it up from outside, without the client that they test.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace tocsin::real {

struct Answer {
  enum class Kind : uint8_t { kNil, kInteger, kText, kError, kArray };
  Kind kind = Kind::kNil;
  int64_t integer = 0;
  std::string text;  // of a text or an error
  std::vector<Answer> elements;

  bool error() const { return kind == Kind::kError; }
  /// "OK", "(nil)", "3", "ERR no such key", "[a, b]": for messages and comparisons.
  std::string Text() const;
};

struct Login {
  std::string username;  // empty: AUTH with only the password
  std::string password;  // empty: no AUTH
  Millis timeout{5'000};
};

/// An Error if the server cannot be reached or does not answer in time. What Redis refuses is an Answer of kError.
Result<Answer> Ask(uint16_t port, const std::vector<std::string>& command, const Login& login = {});

/// As Ask, but a refusal of Redis is an Error too.
Result<Answer> MustAsk(uint16_t port, const std::vector<std::string>& command, const Login& login = {});

/// What a server that speaks plain text sends until it closes: ZooKeeper's four letter words.
Result<std::string> AskText(uint16_t port, std::string_view text, Millis timeout);

/// The value of `name:value` in an answer of INFO; empty if there is none.
std::string InfoField(std::string_view info, std::string_view name);

}  // namespace tocsin::real
