#include "base/clock.h"

#include <ctime>

namespace tocsin {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

int64_t ReadNs(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

int64_t RaiseTo(std::atomic<int64_t>& floor, int64_t value) {
  int64_t seen = floor.load(std::memory_order_relaxed);
  while (seen < value && !floor.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
  return std::max(seen, value);
}

}  // namespace

RealClock::RealClock() {
  const int64_t wall_ns = ReadNs(CLOCK_REALTIME);
  utc_ms_floor_ = steady_ms_floor_ = wall_ns / kNsPerMs;
  steady_offset_ns_ = wall_ns - ReadNs(CLOCK_BOOTTIME);
}

Moment RealClock::Now() const {
  // CLOCK_BOOTTIME counts the time that the machine was suspended; CLOCK_MONOTONIC does not. Read it first: if the
  // thread is delayed between the two readings, steady is behind, never ahead.
  const int64_t steady_ns = ReadNs(CLOCK_BOOTTIME) + steady_offset_ns_.load(std::memory_order_relaxed);
  const int64_t wall_ns = ReadNs(CLOCK_REALTIME);
  // The steady timeline is counted from the wall clock's milliseconds, so that both turn over at the same instant:
  // until somebody steps the clock they are equal, whatever passes between the two readings.
  const int64_t wall_ms = wall_ns / kNsPerMs;
  const int64_t apart_ns = steady_ns - wall_ns;
  const int64_t apart_ms = (apart_ns + (apart_ns < 0 ? -kNsPerMs / 2 : kNsPerMs / 2)) / kNsPerMs;
  return {FromMs(RaiseTo(utc_ms_floor_, wall_ms)), FromMs(RaiseTo(steady_ms_floor_, wall_ms + apart_ms))};
}

void RealClock::Restore(Moment last) {
  const int64_t wall_ns = ReadNs(CLOCK_REALTIME);
  const int64_t wall_ms = wall_ns / kNsPerMs;
  // Time that passed while the server was down, as far as the wall clock can tell. If the wall clock went back, we take
  // none, so that delays end late rather than early.
  const int64_t down_ms = std::max<int64_t>(0, wall_ms - ToMs(last.utc));
  utc_ms_floor_ = std::max(wall_ms, ToMs(last.utc));
  steady_ms_floor_ = ToMs(last.steady) + down_ms;
  steady_offset_ns_ = steady_ms_floor_ * kNsPerMs + wall_ns % kNsPerMs - ReadNs(CLOCK_BOOTTIME);
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

void VirtualClock::CatchUp() {
  const std::scoped_lock lock(mutex_);
  wall_ = now_.utc;
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
