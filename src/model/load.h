// The future load: how many jobs are due in each of some steps of time. Values.
//
// A step is a number of whole minutes, counted from 1970 in UTC, so that a store can keep one count for each minute and
// any sum of them is exact.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"

namespace tocsin {

constexpr Millis kLoadMinute{60'000};
constexpr size_t kLoadStepsMax = 10'000;
/// The last moment that can be asked for: the year 9999 ends.
constexpr Time kLoadLast = FromMs(253'402'300'800'000);

/// From `from` on, `steps` steps of `step`. Both are whole minutes; To() is not after kLoadLast.
struct LoadSpan {
  Time from{};
  Millis step = kLoadMinute;
  size_t steps = 1;

  Time StartOf(size_t index) const { return from + step * static_cast<int64_t>(index); }
  Time To() const { return StartOf(steps); }
  /// What follows the first `taken` steps.
  LoadSpan After(size_t taken) const { return {StartOf(taken), step, steps - taken}; }
  /// The same time as one step.
  LoadSpan Whole() const { return {from, step * static_cast<int64_t>(steps), 1}; }
};

struct LoadCounts {
  uint64_t due = 0;            // jobs that are due already and wait; they are in no step
  std::vector<uint64_t> jobs;  // scheduled jobs that become due in each step
};

}  // namespace tocsin
