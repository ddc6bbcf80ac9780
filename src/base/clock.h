// The only source of time. RealClock is the server's; VirtualClock stands still until it is advanced (tests, and a node
// started with clock = "virtual"). Both are thread-safe.
//
// Invariants: neither timeline of Now() ever goes back, in one run or, through Restore, across restarts.
#pragma once

#include <atomic>
#include <mutex>

#include "base/time.h"

namespace tocsin {

using IoTime = std::chrono::steady_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Moment Now() const = 0;
  /// Monotonic time for socket deadlines and long polls; real even if Now() is virtual.
  virtual IoTime IoNow() const { return std::chrono::steady_clock::now(); }
  /// How much later than Now() the true time may be.
  virtual Millis Granularity() const { return Millis(0); }
  /// A delay that counts from Now() and is never too short: "in 5 ms" never means 4.2.
  Millis RoundUp(Millis delay) const { return delay > Millis(0) ? delay + Granularity() : delay; }
  /// Called once at start, before anything reads Now(), with the last moment that the store knows.
  virtual void Restore(Moment last) = 0;
};

class RealClock final : public Clock {
 public:
  RealClock();
  Moment Now() const override;
  Millis Granularity() const override { return Millis(1); }
  void Restore(Moment last) override;

 private:
  mutable std::atomic<int64_t> steady_ms_floor_ = 0;
  mutable std::atomic<int64_t> utc_ms_floor_;
  // Steady timeline = CLOCK_BOOTTIME + this. In ns, so that both timelines turn to the next ms together: otherwise a
  // due time that is shown as UTC would be a ms off every other time.
  std::atomic<int64_t> steady_offset_ns_;
};

class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(Time start = FromMs(1'800'000'000'000));
  Moment Now() const override;
  void Restore(Moment last) override;
  IoTime IoNow() const override;

  /// Sets the wall clock to utc. A new process calls it after Restore: its virtual clock has no other past.
  void CatchUp();
  /// Time passes: both timelines advance.
  void Advance(Millis by);
  /// The wall clock is set: only utc is affected, and it never goes back.
  void Step(Millis by);
  /// For simulations: socket deadlines and long polls follow this clock, too.
  void DriveIo(bool on) { drive_io_ = on; }

 private:
  mutable std::mutex mutex_;
  Time wall_;  // what the machine's clock would show
  Moment now_;
  std::atomic<bool> drive_io_ = false;
};

}  // namespace tocsin
