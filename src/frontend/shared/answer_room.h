// AnswerRoom: the room in the budget for an answer that shows jobs. It is taken before they are copied, and before they
// are claimed, so that none is claimed and then given back for lack of memory. It covers the copy that the store makes,
// also while that is on its way between shards, and the answer that is made of it.
//
// Owned by the callback that answers, and by a reserve. Used by one thread at a time: the store's during its call, then
// the connection's, which takes over the charge.
#pragma once

#include <utility>

#include "net/budget.h"
#include "spi/store.h"

namespace tocsin::shared {

class AnswerRoom final : public JobRoom {
 public:
  AnswerRoom(net::Budget& budget, net::Account account)
      : charge_(budget, net::Charge::For::kAnswer), account_(std::move(account)) {}

  bool Reach(size_t jobs, size_t bytes) override {
    const size_t needed = BytesOf(jobs, bytes);
    // The budget never refuses so little, and the connection charges it: many calls take nothing here.
    if (needed <= net::Budget::kHeldBytes || needed <= charge_.bytes()) return true;
    // A step ahead, because jobs come one by one.
    return charge_.Reach(needed + net::Budget::kSmallBytes, account_) || charge_.Reach(needed, account_);
  }
  void Lower(size_t jobs, size_t bytes) override { charge_.Lower(jobs == 0 ? 0 : BytesOf(jobs, bytes)); }

  net::Charge& charge() { return charge_; }

 private:
  /// The copy, and the answer. JSON takes up to a third more for payloads, but by then the copy is about to go.
  static size_t BytesOf(size_t jobs, size_t bytes) {
    constexpr size_t kJobBytes = 512;  // without its texts
    return jobs * kJobBytes + 2 * bytes;
  }

  net::Charge charge_;
  const net::Account account_;
};

}  // namespace tocsin::shared
