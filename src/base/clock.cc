#include "base/clock.h"

#include <charconv>
#include <ctime>
#include <fstream>

#include "base/log.h"

namespace tocsin {
namespace {

constexpr int64_t kUsPerMs = 1000;
// If steady turns to the next ms up to this time before the wall clock does, it is shown to turn with it.
constexpr int64_t kTogetherUs = 100;
// Readings are whole microseconds: smaller differences between two of them are no step of the clock.
constexpr int64_t kNoiseUs = 2;
constexpr Millis kPlausibleDowntime = std::chrono::days(1);

int64_t RaiseTo(std::atomic<int64_t>& floor, int64_t value) {
  int64_t seen = floor.load(std::memory_order_relaxed);
  while (seen < value && !floor.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
  return std::max(seen, value);
}

/// The first digits of the kernel's boot id; 0 if it cannot be read.
uint64_t ReadBoot() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, text);
  std::erase(text, '-');
  uint64_t boot = 0;
  std::from_chars(text.data(), text.data() + std::min<size_t>(text.size(), 16), boot, 16);
  return boot;
}

/// Whether the machine has not been booted since. A steady time before the last one is another machine's, or comes from
/// a snapshot of this one.
bool SameBoot(const ClockPast& past, uint64_t boot, Time steady) {
  return boot != 0 && past.mark.boot == boot && steady >= past.last.steady;
}

int64_t RoundToMs(int64_t us) { return (us + (us < 0 ? -kUsPerMs / 2 : kUsPerMs / 2)) / kUsPerMs; }

}  // namespace

int64_t ReadSystemClock(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return int64_t{ts.tv_sec} * 1'000'000 + ts.tv_nsec / 1000;
}

RealClock::RealClock(ReadClock read) : read_(read), boot_(ReadBoot()) {
  Begin(read_(CLOCK_REALTIME) - read_(CLOCK_BOOTTIME));
  if (apart_us_ != 0) Begin(at_boot_us_ - apart_us_);  // the thread was delayed
}

void RealClock::Begin(int64_t at_boot_us) {
  at_boot_us_ = at_boot_us;
  shift_us_ = 0;
  apart_us_ = INT64_MAX / 2;  // not known
  LookAgain();
}

Moment RealClock::Now() const {
  // CLOCK_BOOTTIME counts the time that the machine was suspended; CLOCK_MONOTONIC does not. Read it first: if the
  // thread is delayed between the two readings, steady is behind, never ahead.
  const int64_t steady_us = SteadyUs();
  const int64_t wall_us = read_(CLOCK_REALTIME);
  const int64_t wall_ms = wall_us / kUsPerMs;
  int64_t apart_us = apart_us_.load(std::memory_order_relaxed);
  int64_t latest_us = INT64_MAX;
  if (std::abs(steady_us - wall_us - apart_us) > kNoiseUs) {
    apart_us = LookAgain();
    latest_us = SteadyUs();
  }
  // Until somebody steps the clock by a fraction of a ms the timelines are whole milliseconds apart, whatever passes
  // between the two readings. Count from the wall clock's milliseconds: otherwise a due time that is shown as UTC would
  // be a ms off every other time.
  const int64_t shift_us = shift_us_.load(std::memory_order_relaxed);
  const int64_t apart_ms = RoundToMs(apart_us);
  const bool together = apart_us + shift_us == apart_ms * kUsPerMs;
  int64_t steady_ms = together ? wall_ms + apart_ms : (steady_us + shift_us) / kUsPerMs;
  // The wall clock may have been read before the step that LookAgain has seen.
  if (latest_us != INT64_MAX) steady_ms = std::min(steady_ms, (latest_us + shift_us + kNoiseUs) / kUsPerMs);
  return {FromMs(wall_ms), FromMs(RaiseTo(steady_ms_floor_, steady_ms))};
}

int64_t RealClock::LookAgain() const {
  constexpr int kTries = 10;
  const int64_t known = apart_us_.load(std::memory_order_relaxed);
  int64_t apart_us = known;
  int64_t error_us = INT64_MAX;
  for (int i = 0; i < kTries && error_us > kNoiseUs; ++i) {
    // The thread may be delayed between any two readings.
    const int64_t before = SteadyUs();
    const int64_t wall = read_(CLOCK_REALTIME);
    const int64_t after = SteadyUs();
    if (before - wall <= known + kNoiseUs && after - wall >= known - kNoiseUs) return known;
    if (after - before >= error_us) continue;
    error_us = after - before;
    apart_us = (before + after) / 2 - wall;
  }
  const int64_t ahead_us = apart_us - RoundToMs(apart_us) * kUsPerMs;
  if (std::abs(ahead_us) <= error_us / 2 + kNoiseUs) {
    apart_us -= ahead_us;  // no more than the measurement is off
  } else if (ahead_us > 0 && ahead_us <= kTogetherUs) {
    int64_t lowest = shift_us_.load(std::memory_order_relaxed);
    while (-ahead_us < lowest && !shift_us_.compare_exchange_weak(lowest, -ahead_us, std::memory_order_relaxed)) {
    }
  }
  apart_us_ = apart_us;
  return apart_us;
}

void RealClock::Restore(const ClockPast& past) {
  const int64_t since_boot_us = read_(CLOCK_BOOTTIME);
  const int64_t wall_us = read_(CLOCK_REALTIME);
  steady_ms_floor_ = ToMs(past.last.steady);
  if (SameBoot(past, boot_, FromMs((past.mark.at_boot.count() + since_boot_us) / kUsPerMs))) {
    return Begin(past.mark.at_boot.count());
  }
  const Millis down = FromMs(wall_us / kUsPerMs) - past.last.utc;
  if (down < Millis(0)) {
    LogWarn("the wall clock is {} s before the last record of the journal: delays go on as if no time had passed",
            -down.count() / 1000);
  } else if (down > kPlausibleDowntime) {
    LogWarn("by the wall clock the server was down for {} s: delays go on as if that were so", down.count() / 1000);
  }
  steady_ms_floor_ = ToMs(past.last.steady + std::max(Millis(0), down));
  Begin(steady_ms_floor_ * kUsPerMs + wall_us % kUsPerMs - since_boot_us);
}

BootMark RealClock::Mark() const { return {boot_, std::chrono::microseconds(at_boot_us_.load() + shift_us_.load())}; }

VirtualClock::VirtualClock(Time start, uint64_t boot) : wall_(start), boot_(boot), at_boot_(start) {}

Moment VirtualClock::Now() const {
  const std::scoped_lock lock(mutex_);
  return {wall_, at_boot_ + since_boot_};
}

void VirtualClock::Restore(const ClockPast& past) {
  const std::scoped_lock lock(mutex_);
  const auto at_boot = Time(std::chrono::duration_cast<Millis>(past.mark.at_boot));
  if (SameBoot(past, boot_, at_boot + since_boot_)) {
    at_boot_ = at_boot;
    return;
  }
  at_boot_ = past.last.steady + std::max(Millis(0), wall_ - past.last.utc) - since_boot_;
  if (boot_ == 0) wall_ = std::max(wall_, past.last.utc);
}

BootMark VirtualClock::Mark() const {
  const std::scoped_lock lock(mutex_);
  return {boot_, at_boot_.time_since_epoch()};
}

std::chrono::steady_clock::time_point VirtualClock::IoNow() const {
  if (!drive_io_) return std::chrono::steady_clock::now();
  return std::chrono::steady_clock::time_point(Now().steady.time_since_epoch());
}

void VirtualClock::Advance(Millis by) {
  const std::scoped_lock lock(mutex_);
  wall_ += by;
  since_boot_ += by;
}

void VirtualClock::Step(Millis by) {
  const std::scoped_lock lock(mutex_);
  wall_ += by;
}

void VirtualClock::Reboot(Millis off) {
  const std::scoped_lock lock(mutex_);
  wall_ += off;
  at_boot_ = at_boot_ + since_boot_ + off;
  since_boot_ = Millis(0);
  ++boot_;
}

}  // namespace tocsin
