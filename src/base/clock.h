// The only source of time. RealClock is the server's; VirtualClock stands still until it is advanced (tests, and a node
// started with clock = "virtual"). Both are thread-safe.
//
// Invariants: the steady timeline never goes back, in one run or, through Restore, across restarts. Within one boot of
// the machine it is exact: no step of the wall clock and no time that the server is down changes what it shows.
#pragma once

#include <atomic>
#include <ctime>
#include <mutex>

#include "base/time.h"

namespace tocsin {

using IoTime = std::chrono::steady_clock::time_point;

/// Where the steady timeline lies in one boot of the machine: steady = at_boot + CLOCK_BOOTTIME, from 1970.
struct BootMark {
  uint64_t boot = 0;  // of the kernel's boot id; 0: not known
  std::chrono::microseconds at_boot{0};
};

/// What a store has kept of the time before this start.
struct ClockPast {
  Moment last;  // the moment of its latest record
  BootMark mark;
};

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
  /// Called once at start, before anything reads Now(). In the same boot the steady timeline goes on exactly. After a
  /// reboot only the wall clock tells how long it took; if it went back, no time has passed, so that delays end late.
  virtual void Restore(const ClockPast& past) = 0;
  /// It stays the same until the process ends, except for fractions of a millisecond.
  virtual BootMark Mark() const = 0;
};

/// Reads a clock of the machine, in microseconds.
using ReadClock = int64_t (*)(clockid_t id);
int64_t ReadSystemClock(clockid_t id);

class RealClock final : public Clock {
 public:
  explicit RealClock(ReadClock read = ReadSystemClock);
  Moment Now() const override;
  Millis Granularity() const override { return Millis(1); }
  /// Logs a downtime that is hard to believe.
  void Restore(const ClockPast& past) override;
  BootMark Mark() const override;

 private:
  int64_t SteadyUs() const { return read_(CLOCK_BOOTTIME) + at_boot_us_.load(std::memory_order_relaxed); }
  /// Begins the steady timeline at `at_boot_us`.
  void Begin(int64_t at_boot_us);
  /// Measures apart_us_ closely, unless the clocks are as far apart as before.
  int64_t LookAgain() const;

  const ReadClock read_;
  const uint64_t boot_;
  mutable std::atomic<int64_t> steady_ms_floor_ = 0;
  std::atomic<int64_t> at_boot_us_ = 0;
  // Steady - wall. It changes only when somebody steps the clock.
  mutable std::atomic<int64_t> apart_us_ = 0;
  // Added to steady, so that both timelines turn to the next ms together if they nearly do. It only falls: otherwise
  // steady would gain, and a delay would be too short.
  mutable std::atomic<int64_t> shift_us_ = 0;
};

class VirtualClock final : public Clock {
 public:
  /// With a `boot` it stands for the clocks of a machine that outlives the server. Without one it has no other past
  /// than the store's: Restore takes the wall clock from there too.
  explicit VirtualClock(Time start = FromMs(1'800'000'000'000), uint64_t boot = 0);
  Moment Now() const override;
  void Restore(const ClockPast& past) override;
  BootMark Mark() const override;
  IoTime IoNow() const override;

  /// Time passes: both timelines advance.
  void Advance(Millis by);
  /// The wall clock is set: only utc is affected.
  void Step(Millis by);
  /// The machine is off for this long, and boots.
  void Reboot(Millis off);
  /// For simulations: socket deadlines and long polls follow this clock, too.
  void DriveIo(bool on) { drive_io_ = on; }

 private:
  mutable std::mutex mutex_;
  Time wall_;
  uint64_t boot_;
  Time at_boot_;  // the steady time when the machine booted
  Millis since_boot_{0};
  std::atomic<bool> drive_io_ = false;
};

}  // namespace tocsin
