// Delays that count from now.
#pragma once

#include "base/clock.h"

namespace tocsin {

/// A delay counts from a moment that lies up to a tick of the clock before now: one more tick, and it is never too
/// short.
inline Millis RoundUp(Millis delay, const Clock& clock) {
  return delay > Millis(0) ? delay + clock.Granularity() : delay;
}

}  // namespace tocsin
