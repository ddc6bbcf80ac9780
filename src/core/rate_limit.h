// RateLimit: a token bucket that fills at a steady rate and holds a tenth of a second's worth, at least one. A value;
// time is an argument.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tocsin {

class RateLimit {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// 0: no limit.
  explicit RateLimit(uint64_t per_second = 0, TimePoint now = {})
      : per_second_(static_cast<double>(per_second)),
        burst_(std::max(1.0, per_second_ / 10)),
        held_(burst_),
        at_(now) {}

  /// How many may go now.
  size_t Room(TimePoint now) {
    if (per_second_ == 0) return SIZE_MAX;
    held_ = std::min(burst_, held_ + std::chrono::duration<double>(now - at_).count() * per_second_);
    at_ = now;
    return static_cast<size_t>(held_ + kRounding);
  }
  /// Takes `count`, at most what Room has returned.
  void Take(size_t count) { held_ -= static_cast<double>(count); }

  /// When to ask again after Room returned 0: when there is a hundredth of a second's worth, so that a high rate is not
  /// used up one by one.
  TimePoint NextAt() const {
    const double wanted = std::max(1.0, per_second_ / 100);
    const std::chrono::duration<double> wait((wanted - held_) / per_second_);
    return at_ + std::chrono::ceil<std::chrono::milliseconds>(wait);
  }

 private:
  static constexpr double kRounding = 1e-6;  // 10 x 0.1 is 1

  double per_second_;
  double burst_;
  double held_;
  TimePoint at_;
};

}  // namespace tocsin
