// TOCSIN_CHECK: an invariant of our own code. It stays on in release builds and aborts: for bugs, never for input.
#pragma once

namespace tocsin {
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);
}  // namespace tocsin

#define TOCSIN_CHECK(expression)                              \
  do {                                                        \
    if (!(expression)) [[unlikely]]                           \
      ::tocsin::CheckFailed(__FILE__, __LINE__, #expression); \
  } while (false)
