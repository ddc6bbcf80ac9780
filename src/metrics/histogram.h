// Histogram: durations in fixed log-linear buckets: every power of two of microseconds is divided into eight equal
// steps, so a quantile is off by at most an eighth. From 1 us to 72 minutes; longer durations count as 72 minutes.
//
// Threads: any thread may call Record, which is lock-free; it touches only the thread's own cell (metrics/cells.h),
// which is allocated when the thread first records. Read may run at any time and sees every Record that happened before
// it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "metrics/cells.h"

namespace tocsin::metrics {

class Histogram {
 public:
  static constexpr unsigned kStepBits = 3;
  static constexpr unsigned kOctaves = 33;
  static constexpr size_t kBuckets = (kOctaves - kStepBits) << kStepBits;

  /// The bucket that holds `us`, and the largest value that a bucket holds.
  static size_t BucketOf(uint64_t us);
  static uint64_t BoundOf(size_t bucket);

  struct Snapshot {
    std::array<uint64_t, kBuckets> buckets{};
    uint64_t count = 0;
    double sum_seconds = 0;

    void Add(const Snapshot& other);
    /// What was recorded since an earlier snapshot of the same histogram.
    Snapshot Since(const Snapshot& earlier) const;
    /// In seconds; 0 if nothing was recorded. `q` from 0 to 1.
    double Quantile(double q) const;
  };

  Histogram() = default;
  ~Histogram();
  Histogram(const Histogram&) = delete;
  Histogram& operator=(const Histogram&) = delete;

  /// Less than zero counts as zero; fractions of a microsecond are rounded up.
  void Record(std::chrono::nanoseconds took, uint64_t times = 1);
  Snapshot Read() const;

 private:
  struct alignas(64) Cell {
    std::array<std::atomic<uint64_t>, kBuckets> buckets{};
    std::atomic<double> sum_seconds{0};  // an integer of ns would overflow when a year's backlog is caught up
  };
  Cell& OwnCell();

  std::array<std::atomic<Cell*>, kCells> cells_{};
};

}  // namespace tocsin::metrics
