// Budget: limits the memory of requests and answers that are under way, over all connections of the node.
// Owned by the composition root; outlives the servers.
//
// Threads: all shards share the Budget; one thread at a time uses a Charge, mostly its connection's.
//
// Invariants: the charges are at most `bytes_max` in all, plus small ones, plus one answer that could hardly be sent
// otherwise: it is larger than `bytes_max`, or than half of it and cannot be had in parts (ReachWhole). Small charges
// are never refused: acks, cancels and health checks go on while others wait. What the server works on is small up to
// kSmallBytes, unless all charges together are more than five quarters of `bytes_max`. What waits for a client, such as
// an unfinished request or an answer that is not read, is small only up to kHeldBytes: thousands of clients may let the
// server wait. Requests leave a quarter of the budget to answers: refusing an answer is worse, because its work is
// done.
//
// Shares: a request has a quarter of the budget and an answer an eighth. A larger one passes only while the others take
// up no more than half. Every caller has an account: that of its access token, or else of its address. Together they
// use the budget up to three quarters. Beyond that, a charge passes only if its account has no more than it leaves to
// others, so some room is always left for the next one. While others take up more than a quarter, a large transfer has
// to be faster (Connection::TransferIsLate).
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "base/hash.h"
#include "base/result.h"
#include "metrics/registry.h"

namespace tocsin::net {

/// What the charges of one access token or client address are, without those that are small. Null: has no share.
using Account = std::shared_ptr<std::atomic<size_t>>;

class Budget {
 public:
  static constexpr size_t kSmallBytes = 64 << 10;
  static constexpr size_t kHeldBytes = 4 << 10;

  Budget(size_t bytes_max, metrics::Registry& metrics);

  size_t bytes_max() const { return bytes_max_; }
  size_t requests_bytes_max() const { return bytes_max_ / 4 * 3; }
  size_t bytes() const {
    return bytes_.load(std::memory_order_relaxed) + oversized_bytes_.load(std::memory_order_relaxed);
  }
  /// Whether others than a charge of `own` bytes take up more than a quarter.
  bool IsTight(size_t own) const { return bytes() > bytes_max_ / 4 + own; }
  /// Whether a request of so many bytes more would find no room.
  bool IsFull(size_t more) const { return bytes() + more > requests_bytes_max(); }
  /// The error for a request or an answer that finds no room.
  Error NoRoom() const;
  /// The account of callers without an access token: the same for all connections of a client.
  Account AccountOf(std::string_view client);
  /// How many clients it keeps accounts of.
  size_t clients() const {
    const std::lock_guard lock(mutex_);
    return accounts_.size();
  }

 private:
  friend class Charge;

  const size_t bytes_max_;
  std::atomic<size_t> bytes_ = 0;
  std::atomic<size_t> oversized_bytes_ = 0;  // of the one answer that counts beside bytes_; 0 if there is none
  mutable std::mutex mutex_;
  TextMap<std::weak_ptr<std::atomic<size_t>>> accounts_;  // of clients; some are gone
  size_t accounts_max_ = 0;                               // those that are gone are removed when there are more
  metrics::Registry::Registration registration_;          // last: ends before what it reads
};

/// The share of one request or answer, until it is cleared or destroyed.
class Charge {
 public:
  enum class For { kRequest, kAnswer };
  Charge(Budget& budget, For what)
      : budget_(budget),
        bytes_max_(what == For::kRequest ? budget.requests_bytes_max() : budget.bytes_max()),
        share_(budget.bytes_max() / (what == For::kRequest ? 4 : 8)),
        may_be_oversized_(what == For::kAnswer) {}
  ~Charge() { Clear(); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  /// Raises it to `bytes`, if that is more than before. False, without effect, if there is no room. `account`: the
  /// caller's; one that was charged before stays until the charge is cleared.
  [[nodiscard]] bool Reach(size_t bytes, const Account& account = nullptr) {
    return Reach(bytes, account, Budget::kSmallBytes);
  }
  /// The same for an answer that its caller cannot ask for in parts. One that takes more than half of the budget counts
  /// beside it, if that has no room; only one such answer does at a time.
  [[nodiscard]] bool ReachWhole(size_t bytes, const Account& account = nullptr) {
    return Reach(bytes, account) || (bytes > budget_.bytes_max_ / 2 && ReachOversized(bytes));
  }
  /// The same for what waits for the client from now on.
  [[nodiscard]] bool Hold(size_t bytes, const Account& account = nullptr) {
    return Reach(bytes, account, Budget::kHeldBytes);
  }
  /// Raises it to `bytes`, if that is more than before, whether there is room or not: for what cannot be refused any
  /// more. Larger than what was reached before by little.
  void Force(size_t bytes);
  /// Takes over what another charge has reached.
  void Absorb(Charge& other);
  /// Lowers it to `bytes`, if that is less than before.
  void Lower(size_t bytes);
  void Clear() { Lower(0); }
  size_t bytes() const { return bytes_; }

 private:
  bool Reach(size_t bytes, const Account& account, size_t small);
  bool Fits(size_t bytes, size_t others, const Account& account) const;
  bool ReachOversized(size_t bytes);

  Budget& budget_;
  const size_t bytes_max_;  // of all charges together
  const size_t share_;
  const bool may_be_oversized_;
  bool oversized_ = false;
  size_t bytes_ = 0;
  size_t granted_ = 0;  // of them, bytes for which there was room; the others are small
  Account account_;
  size_t billed_ = 0;  // to the account
};

/// Empties it and frees its memory: if an empty string is assigned or moved to it, it keeps that.
inline void Free(std::string& text) { std::string().swap(text); }

}  // namespace tocsin::net
