#include "outbox/skew.h"

#include <utility>

namespace tocsin::outbox {

bool Skew::Take(const ClockSample& sample) {
  // Below 0: somebody has set the clock meanwhile.
  const bool sharp = sample.round_trip >= Millis(0) && sample.round_trip < kSkewMin;
  if (!sharp && any_) return false;
  any_ = true;
  const bool was_sharp = std::exchange(sharp_, sharp);
  measured_ = sample.ahead;
  if (!was_sharp || std::chrono::abs(measured_ - correction_) >= kSkewMin) correction_ = measured_;
  if (std::chrono::abs(correction_) < kSkewMin) correction_ = Millis(0);
  return sharp;
}

}  // namespace tocsin::outbox
