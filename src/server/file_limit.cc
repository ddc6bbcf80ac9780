#include "server/file_limit.h"

#include <algorithm>

#include <sys/resource.h>

#include "base/log.h"

namespace tocsin {
namespace {

constexpr size_t kReserve = 64;  // for the journal, the listener, the loops

}  // namespace

size_t FitConnections(size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const size_t fit = std::max<size_t>(1, limit.rlim_cur > kReserve ? limit.rlim_cur - kReserve : 1);
  if (fit >= wanted) return wanted;
  LogWarn("limits.connections is {}, but the system allows {} open files: accepting {} connections", wanted,
          limit.rlim_cur, fit);
  return fit;
}

}  // namespace tocsin
