// What the workloads share: batches numbered in their order, the checks at the end, the generator's own CPU.
#pragma once

#include <random>

#include "load/engine.h"
#include "load/workloads.h"

namespace tocsin::bench {

constexpr int64_t kHourMs = 3'600'000;

/// Jobs 0 .. total - 1 in batches, each batch with a delay drawn from a range.
class Batches {
 public:
  Batches(size_t total, size_t batch, int64_t least_ms, int64_t most_ms)
      : total_(total), batch_(batch), delay_(least_ms, most_ms) {}

  bool empty() const { return next_ == total_; }
  size_t next() const { return next_; }
  /// Due its delay from `wall_ns`. Stays the front until Pop.
  Jobs Front(int64_t wall_ns) {
    if (delay_ms_ < 0) delay_ms_ = delay_(random_);
    return {.first = static_cast<uint32_t>(next_),
            .count = static_cast<uint32_t>(std::min(batch_, total_ - next_)),
            .due_ms = wall_ns / 1'000'000 + delay_ms_};
  }
  void Pop() {
    next_ += std::min(batch_, total_ - next_);
    delay_ms_ = -1;
  }

 private:
  const size_t total_;
  const size_t batch_;
  size_t next_ = 0;
  int64_t delay_ms_ = -1;
  std::mt19937_64 random_{1};
  std::uniform_int_distribution<int64_t> delay_;
};

/// Cores that the generator used while it ran.
class CpuMeter {
 public:
  void Start() {
    began_ = SteadyClock::now();
    used_ = OwnCpuSeconds();
  }
  void Stop() {
    seconds_ += Seconds(SteadyClock::now() - began_);
    cpu_ += OwnCpuSeconds() - used_;
  }
  double cores() const { return cpu_ / seconds_; }
  double seconds() const { return seconds_; }

 private:
  Instant began_;
  double used_ = 0;
  double seconds_ = 0;
  double cpu_ = 0;
};

/// Dies unless every job was delivered, and none early.
void CheckAll(const Ledger& ledger, size_t jobs);
void CheckNoneEarly(const Ledger& ledger);
Json Milliseconds(Times& times, const Ledger& ledger);
Json Microseconds(Times& times);
void AddEnd(Json& out, const CpuMeter& meter, const Ledger& ledger);

}  // namespace tocsin::bench
