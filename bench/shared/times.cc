#include "shared/times.h"

#include <algorithm>
#include <cmath>
#include <ctime>

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
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace tocsin::bench
