// ClockGap: how far Redis' clock is ahead of this node's (below 0: behind), learned from its answers. An answer takes a
// while to arrive and so shows too small a gap: the largest of the last seconds counts. Older ones are forgotten,
// because clocks drift and may be set. If an answer shows a far smaller gap, all older ones are forgotten at once:
// after a failover it is another server's clock, and a node that believed it to be ahead would keep asking for jobs
// that are not due yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/time.h"

namespace tocsin::redis {

class ClockGap {
 public:
  void Add(int64_t ahead_ms, Time steady) {
    if (ahead_ms + kFarLess < std::max(latest_, before_)) latest_ = before_ = kNone;
    if (steady - began_ >= kKept) {
      before_ = latest_;
      latest_ = kNone;
      began_ = steady;
    }
    latest_ = std::max(latest_, ahead_ms);
  }
  /// 0 before the first answer.
  int64_t ahead_ms() const {
    const int64_t known = std::max(latest_, before_);
    return known == kNone ? 0 : known;
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  static constexpr Millis kKept{5'000};
  static constexpr int64_t kFarLess = 1'000;

  Time began_{};
  int64_t latest_ = kNone;
  int64_t before_ = kNone;  // in the period before began_
};

}  // namespace tocsin::redis
