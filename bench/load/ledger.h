// Ledger: the account of every job of a run. Jobs may come more than once, never early, and none may be missing.
#pragma once

#include <cstdint>
#include <vector>

#include "load/stamp.h"
#include "shared/times.h"

namespace tocsin::bench {

class Ledger {
 public:
  explicit Ledger(size_t jobs) : seen_(jobs) {}

  void Delivered(std::string_view payload, int64_t received_ns) {
    const Stamp stamp = ReadStamp(payload);
    if (stamp.number >= seen_.size()) Die("delivered: job {} of {}", stamp.number, seen_.size());
    const int64_t late_ns = received_ns - stamp.due_ms * 1'000'000;
    if (late_ns < 0) ++early;
    if (seen_[stamp.number]) {
      ++repeated;
      return;
    }
    seen_[stamp.number] = true;
    ++delivered;
    if (keeps_lateness) lateness.Add(Nanos(late_ns));
  }

  bool keeps_lateness = false;
  Times lateness;  // of first deliveries
  Times latency;   // of submits
  size_t sent = 0;
  size_t submitted = 0;  // answered as stored
  size_t delivered = 0;  // different jobs
  size_t repeated = 0;
  size_t early = 0;
  size_t acked = 0;
  size_t stale = 0;  // acknowledgements that came too late

 private:
  std::vector<bool> seen_;
};

}  // namespace tocsin::bench
