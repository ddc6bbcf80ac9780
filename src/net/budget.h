// Budget: the memory that requests and answers take while they are under way, on all connections of the node together.
// Owned by the composition root; outlives the servers.
//
// Threads: Budget is for all shards; a Charge belongs to one connection, and so to one thread.
//
// Invariants: what is charged is at most `bytes_max`, kSmallBytes for each connection's request and answer, and one
// answer that is over `bytes_max` by itself: it could never be sent otherwise. What is small is never refused, so that
// acks, cancels and health checks go on while the rest has to wait. Requests leave a quarter to the answers: refusing
// those is worse, because the work is done by then.
#pragma once

#include <atomic>
#include <cstddef>

#include "metrics/registry.h"

namespace tocsin::net {

class Budget {
 public:
  static constexpr size_t kSmallBytes = 64 << 10;

  Budget(size_t bytes_max, metrics::Registry& metrics);

  size_t bytes_max() const { return bytes_max_; }
  size_t requests_bytes_max() const { return bytes_max_ / 4 * 3; }
  size_t bytes() const {
    return bytes_.load(std::memory_order_relaxed) + oversized_bytes_.load(std::memory_order_relaxed);
  }

 private:
  friend class Charge;

  const size_t bytes_max_;
  std::atomic<size_t> bytes_ = 0;
  std::atomic<size_t> oversized_bytes_ = 0;       // of the one answer that is over bytes_max; 0: there is none
  metrics::Registry::Registration registration_;  // last: ends before what it reads
};

/// What one request or one answer takes out of the budget, until it is cleared or destroyed.
class Charge {
 public:
  enum class For { kRequest, kAnswer };
  Charge(Budget& budget, For what)
      : budget_(budget),
        bytes_max_(what == For::kRequest ? budget.requests_bytes_max() : budget.bytes_max()),
        may_be_oversized_(what == For::kAnswer) {}
  ~Charge() { Clear(); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  /// Makes it `bytes` in all, where that is more than before. False, and nothing happens, where there is no room.
  [[nodiscard]] bool Reach(size_t bytes);
  /// Makes it `bytes` in all, where that is less than before.
  void Lower(size_t bytes);
  void Clear() { Lower(0); }

 private:
  bool ReachOversized(size_t bytes);

  Budget& budget_;
  const size_t bytes_max_;  // of all charges together
  const bool may_be_oversized_;
  bool oversized_ = false;
  size_t bytes_ = 0;
};

}  // namespace tocsin::net
