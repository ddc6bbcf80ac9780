// Result<T>: a value, or an Error with a code of the one table (base/errors.h), a message for people, and the name of
// the field at fault if there is one. Code that calls a library converts its exceptions and statuses to Errors.
//
// TOCSIN_CHECK is for bugs, never for input: an invariant of our own code. It stays on in release builds and aborts.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"

namespace tocsin {

struct Error {
  Code code = Code::kInternal;
  std::string message;
  std::string field;

  /// "context: message", for callers that know more about the operation.
  [[nodiscard]] Error Prefixed(std::string_view context) && {
    message = fmt::format("{}: {}", context, message);
    return std::move(*this);
  }
};

template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(std::expected<T, Error> other) : std::expected<T, Error>(std::move(other)) {}
};

using Status = Result<void>;

template <class... Args>
[[nodiscard]] std::unexpected<Error> Fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...), {}});
}

template <class... Args>
[[nodiscard]] std::unexpected<Error> FailField(Code code, std::string field, fmt::format_string<Args...> format,
                                               Args&&... args) {
  return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...), std::move(field)});
}

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "tocsin: invariant broken at %s:%d: %s\n", file, line, expression);
  std::abort();
}

}  // namespace tocsin

#define TOCSIN_CHECK(expression)                              \
  do {                                                        \
    if (!(expression)) [[unlikely]]                           \
      ::tocsin::CheckFailed(__FILE__, __LINE__, #expression); \
  } while (false)

/// Returns the error of `expression` from the calling function, if it has one.
#define TOCSIN_TRY(expression)                                                                              \
  do {                                                                                                      \
    if (auto tocsin_try = (expression); !tocsin_try) return std::unexpected(std::move(tocsin_try).error()); \
  } while (false)

/// Declares a variable with the value of `expression`, or returns its error from the calling function:
/// `TOCSIN_ASSIGN(const auto reply, client.Ask(command));`
#define TOCSIN_ASSIGN(declaration, expression) \
  TOCSIN_ASSIGN_AS(TOCSIN_NAME(tocsin_result, __LINE__), declaration, expression)
// NOLINTBEGIN(bugprone-macro-parentheses): two arguments are a name and a declaration
#define TOCSIN_ASSIGN_AS(result, declaration, expression)           \
  auto result = (expression);                                       \
  if (!(result)) return std::unexpected(std::move(result).error()); \
  declaration = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)
#define TOCSIN_NAME(prefix, line) TOCSIN_NAME_JOINED(prefix, line)
#define TOCSIN_NAME_JOINED(prefix, line) prefix##line
