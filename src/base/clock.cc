#include "base/clock.h"

#include <ctime>

namespace tocsin {
namespace {

int64_t ReadMs(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return int64_t{ts.tv_sec} * 1000 + ts.tv_nsec / 1'000'000;
}

}  // namespace

RealClock::RealClock()
    : utc_ms_floor_(ReadMs(CLOCK_REALTIME)), steady_offset_ms_(ReadMs(CLOCK_REALTIME) - ReadMs(CLOCK_BOOTTIME)) {}

Moment RealClock::Now() const {
  const int64_t wall_ms = ReadMs(CLOCK_REALTIME);
  int64_t utc_ms = utc_ms_floor_.load(std::memory_order_relaxed);
  while (utc_ms < wall_ms && !utc_ms_floor_.compare_exchange_weak(utc_ms, wall_ms, std::memory_order_relaxed)) {
  }
  // CLOCK_BOOTTIME counts the time that the machine was suspended; CLOCK_MONOTONIC does not.
  return {FromMs(std::max(utc_ms, wall_ms)),
          FromMs(ReadMs(CLOCK_BOOTTIME) + steady_offset_ms_.load(std::memory_order_relaxed))};
}

void RealClock::Restore(Moment last) {
  const int64_t wall_ms = ReadMs(CLOCK_REALTIME);
  // Time that passed while the server was down, as far as the wall clock can tell: none if it went back meanwhile, so
  // that what was relative fires late rather than early.
  const int64_t down_ms = std::max<int64_t>(0, wall_ms - ToMs(last.utc));
  utc_ms_floor_ = std::max(wall_ms, ToMs(last.utc));
  steady_offset_ms_ = ToMs(last.steady) + down_ms - ReadMs(CLOCK_BOOTTIME);
}

VirtualClock::VirtualClock(Time start) : wall_(start), now_{start, start} {}

Moment VirtualClock::Now() const {
  const std::scoped_lock lock(mutex_);
  return now_;
}

void VirtualClock::Restore(Moment last) {
  const std::scoped_lock lock(mutex_);
  const Millis down = std::max(Millis(0), wall_ - last.utc);
  now_.utc = std::max(wall_, last.utc);
  now_.steady = last.steady + down;
}

std::chrono::steady_clock::time_point VirtualClock::IoNow() const {
  if (!drive_io_) return std::chrono::steady_clock::now();
  return std::chrono::steady_clock::time_point(Now().steady.time_since_epoch());
}

void VirtualClock::Advance(Millis by) {
  const std::scoped_lock lock(mutex_);
  wall_ += by;
  now_.utc = std::max(now_.utc, wall_);
  now_.steady += by;
}

void VirtualClock::Step(Millis by) {
  const std::scoped_lock lock(mutex_);
  wall_ += by;
  now_.utc = std::max(now_.utc, wall_);
}

}  // namespace tocsin
