#include "shared/times.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <sys/resource.h>

namespace tocsin::bench {

double Times::Ms(double part) {
  if (values_.empty()) return 0;
  if (!std::exchange(sorted_, true)) std::ranges::sort(values_);
  const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(values_.size())));
  return static_cast<double>(values_[std::max<size_t>(rank, 1) - 1]) / 1e6;
}

double Seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

int64_t WallNanos() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

double OwnCpuSeconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

}  // namespace tocsin::bench
