// Backoff: the pause before the next try, doubled after each failure and shortened by up to half at random, so that
// many who failed together do not try again at the same moment. One thread.
#pragma once

#include <algorithm>
#include <random>

#include "base/time.h"

namespace tocsin {

class Backoff {
 public:
  Backoff(Millis min, Millis max) : min_(min), max_(max) {}

  Millis Next() {
    pause_ = std::clamp(pause_ * 2, min_, max_);
    return Millis(std::uniform_int_distribution<int64_t>(pause_.count() / 2, pause_.count())(random_));
  }
  void Reset() { pause_ = Millis(0); }
  /// Whether the last try was a success.
  bool fresh() const { return pause_ == Millis(0); }

 private:
  Millis min_;
  Millis max_;
  Millis pause_{0};
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace tocsin
