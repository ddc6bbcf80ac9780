#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tocsin {

void CheckFailed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "tocsin: invariant broken at %s:%d: %s\n", file, line, expression);
  std::abort();
}

}  // namespace tocsin
