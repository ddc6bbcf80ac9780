// The types of time. Points and spans in milliseconds are std::chrono types. Only values on a wire or on disk are raw
// integers, and their names end in _ms.
//
// There are two timelines, both counted in ms since 1970 and equal until somebody steps the machine's clock:
//   utc     the machine's wall clock as it is: it goes back if somebody sets it back. Jobs with an absolute due time
//           use it.
//   steady  follows elapsed time only; setting the wall clock does not affect it. Delays, leases, retry delays and ids
//           use it.
#pragma once

#include <chrono>
#include <cstdint>

namespace tocsin {

using Millis = std::chrono::milliseconds;
using Time = std::chrono::sys_time<Millis>;

enum class Timeline : uint8_t { kUtc = 0, kSteady = 1 };

/// One reading of the clock, on both timelines.
struct Moment {
  Time utc{};
  Time steady{};

  Time On(Timeline timeline) const { return timeline == Timeline::kUtc ? utc : steady; }
  friend bool operator==(const Moment&, const Moment&) = default;
};

constexpr int64_t ToMs(Time time) { return time.time_since_epoch().count(); }
constexpr Time FromMs(int64_t ms) { return Time(Millis(ms)); }

/// Never reached: the due time of a job that waits only for a count.
constexpr Time kNever = Time(Millis::max());

/// Shows a time of `timeline` to users as UTC.
inline Time ShowAsUtc(Time time, Timeline timeline, Moment now) {
  if (time == kNever || timeline == Timeline::kUtc) return time;
  return time + (now.utc - now.steady);
}

}  // namespace tocsin
