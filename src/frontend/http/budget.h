// Budget: the memory that requests and answers take while they are under way, on all connections of the node together.
// Owned by the composition root; outlives the servers.
//
// Threads: Budget is for all shards; a Charge belongs to one connection, and so to one thread.
//
// Invariants: what is charged is at most `bytes_max` and kSmallBytes for each connection's request and answer. What is
// small is never refused, so that acks, cancels and health checks go on while the rest has to wait. Requests leave a
// quarter to the answers: refusing those is worse, because the work is done by then.
#pragma once

#include <atomic>
#include <cstddef>

#include "metrics/registry.h"

namespace tocsin::http {

class Budget {
 public:
  static constexpr size_t kSmallBytes = 64 << 10;

  Budget(size_t bytes_max, metrics::Registry& metrics);

  size_t bytes_max() const { return bytes_max_; }
  size_t requests_bytes_max() const { return bytes_max_ / 4 * 3; }
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  friend class Charge;

  const size_t bytes_max_;
  std::atomic<size_t> bytes_ = 0;
  metrics::Registry::Registration registration_;  // last: ends before what it reads
};

/// What one request or one answer takes out of the budget, until it is cleared or destroyed.
class Charge {
 public:
  enum class For { kRequest, kAnswer };
  Charge(Budget& budget, For what)
      : budget_(budget), bytes_max_(what == For::kRequest ? budget.requests_bytes_max() : budget.bytes_max()) {}
  ~Charge() { Clear(); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  /// Makes it `bytes` in all, where that is more than before. False, and nothing happens, where there is no room.
  [[nodiscard]] bool Reach(size_t bytes);
  void Clear();

 private:
  Budget& budget_;
  const size_t bytes_max_;  // of all charges together
  size_t bytes_ = 0;
};

}  // namespace tocsin::http
