// What the load generators measure with: the clocks, times of single events, their own CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/net.h"

namespace tocsin::bench {

/// Times of single events. Percentiles are of all of them, not of a histogram's cells.
class Times {
 public:
  void Add(Nanos time) {
    values_.push_back(time.count());
    sorted_ = false;
  }
  void Append(const Times& more) {
    values_.insert(values_.end(), more.values_.begin(), more.values_.end());
    sorted_ = false;
  }
  void Reserve(size_t count) { values_.reserve(count); }
  size_t size() const { return values_.size(); }
  /// `part`: 0.99 for p99, 1 for the largest. 0 if there are none.
  double Ms(double part);

 private:
  std::vector<int64_t> values_;
  bool sorted_ = true;
};

double Seconds(Nanos time);

/// Of the wall clock, since 1970: due times are on it.
int64_t WallNanos();

/// User and system time of the calling thread: a load generator has one.
double OwnCpuSeconds();

}  // namespace tocsin::bench
