#include "base/clock.h"

#include <charconv>
#include <ctime>
#include <fstream>

#include "base/log.h"

namespace tocsin {
namespace {

constexpr int64_t kUsPerMs = 1000;
// If the two timelines turn to the next ms within this time of each other, they are shown to turn together.
constexpr int64_t kTogetherUs = 100;
constexpr Millis kPlausibleDowntime = std::chrono::days(1);

int64_t ReadUs(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return int64_t{ts.tv_sec} * 1'000'000 + ts.tv_nsec / 1000;
}

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

}  // namespace

RealClock::RealClock() : boot_(ReadBoot()), at_boot_us_(ReadUs(CLOCK_REALTIME) - ReadUs(CLOCK_BOOTTIME)) {}

Moment RealClock::Now() const {
  // CLOCK_BOOTTIME counts the time that the machine was suspended; CLOCK_MONOTONIC does not. Read it first: if the
  // thread is delayed between the two readings, steady is behind, never ahead.
  const int64_t steady_us = ReadUs(CLOCK_BOOTTIME) + at_boot_us_.load(std::memory_order_relaxed);
  const int64_t wall_us = ReadUs(CLOCK_REALTIME);
  const int64_t wall_ms = wall_us / kUsPerMs;
  // Until somebody steps the clock by a fraction of a ms the timelines are whole milliseconds apart, whatever passes
  // between the two readings. Count from the wall clock's milliseconds: otherwise a due time that is shown as UTC would
  // be a ms off every other time.
  const int64_t apart_us = steady_us - wall_us;
  const int64_t apart_ms = (apart_us + (apart_us < 0 ? -kUsPerMs / 2 : kUsPerMs / 2)) / kUsPerMs;
  const bool together = std::abs(apart_us - apart_ms * kUsPerMs) <= kTogetherUs;
  const int64_t steady_ms = together ? wall_ms + apart_ms : steady_us / kUsPerMs;
  return {FromMs(wall_ms), FromMs(RaiseTo(steady_ms_floor_, steady_ms))};
}

void RealClock::Restore(const ClockPast& past) {
  const int64_t since_boot_us = ReadUs(CLOCK_BOOTTIME);
  const int64_t wall_us = ReadUs(CLOCK_REALTIME);
  steady_ms_floor_ = ToMs(past.last.steady);
  if (SameBoot(past, boot_, FromMs((past.mark.at_boot.count() + since_boot_us) / kUsPerMs))) {
    at_boot_us_ = past.mark.at_boot.count();
    return;
  }
  const Millis down = FromMs(wall_us / kUsPerMs) - past.last.utc;
  if (down < Millis(0)) {
    LogWarn("the wall clock is {} s before the last record of the journal: delays go on as if no time had passed",
            -down.count() / 1000);
  } else if (down > kPlausibleDowntime) {
    LogWarn("by the wall clock the server was down for {} s: delays go on as if that were so", down.count() / 1000);
  }
  steady_ms_floor_ = ToMs(past.last.steady + std::max(Millis(0), down));
  at_boot_us_ = steady_ms_floor_ * kUsPerMs + wall_us % kUsPerMs - since_boot_us;
}

BootMark RealClock::Mark() const { return {boot_, std::chrono::microseconds(at_boot_us_.load())}; }

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
