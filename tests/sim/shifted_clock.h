// ShiftedClock: lets tests on real sockets reach deadlines without waiting. Used on one thread.
#pragma once

#include <chrono>

#include "base/clock.h"

namespace tocsin {

/// Real time plus what the test added.
class ShiftedClock final : public Clock {
 public:
  Moment Now() const override { return real_.Now(); }
  std::chrono::steady_clock::time_point IoNow() const override { return real_.IoNow() + shift_; }
  void Restore(const ClockPast& past) override { real_.Restore(past); }
  BootMark Mark() const override { return real_.Mark(); }
  void Pass(Millis by) { shift_ += by; }

 private:
  RealClock real_;
  Millis shift_{0};
};

}  // namespace tocsin
