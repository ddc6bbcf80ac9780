// ClockGap: how far Redis' clock is ahead of this node's (or behind: less than 0), learned from its answers. Each
// answer was on its way for a while, so it shows less than there is: the largest of the last seconds counts. Forgotten
// after some seconds, because clocks drift and may be set; at once where an answer shows far less: after a failover it
// is another server's clock, and a node that took it to be ahead would look again and again for what is not due yet.
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
  int64_t before_ = kNone;  // of the time before began_
};

}  // namespace tocsin::redis
