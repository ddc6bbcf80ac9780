#include "net/budget.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/episode.h"

namespace tocsin::net {

Budget::Budget(size_t bytes_max, metrics::Registry& metrics)
    : bytes_max_(bytes_max), registration_(metrics.AddCollector([this](metrics::Samples& samples) {
        samples.Add(metrics::Kind::kGauge, "tocsin_transfer_memory_bytes",
                    "Bytes of large requests that are not answered yet, and of answers that are not sent yet.", {},
                    static_cast<double>(bytes()));
      })) {}

Error Budget::NoRoom() const {
  NoteOverload("requests and answers under way take all the memory that they may take");
  return {Code::kOverloaded,
          fmt::format("the requests and answers under way take up the {} bytes that they may take together; try again",
                      bytes_max_),
          {}};
}

Account Budget::AccountOf(std::string_view client) {
  const std::lock_guard lock(mutex_);
  if (accounts_.size() > accounts_max_) {
    std::erase_if(accounts_, [](const auto& each) { return each.second.expired(); });
    accounts_max_ = 2 * accounts_.size() + 16;
  }
  auto& kept = accounts_.try_emplace(std::string(client)).first->second;
  Account account = kept.lock();
  if (!account) kept = account = std::make_shared<std::atomic<size_t>>(0);
  return account;
}

bool Charge::Reach(size_t bytes, const Account& account, size_t small) {
  const bool is_small = bytes <= small;
  if (bytes <= (is_small ? bytes_ : granted_)) return true;
  if (oversized_ || (bytes > budget_.bytes_max_ && may_be_oversized_)) return ReachOversized(bytes);
  const size_t more = bytes - std::min(bytes, bytes_);
  const size_t before = budget_.bytes_.fetch_add(more, std::memory_order_relaxed);
  const bool too_many = bytes > Budget::kHeldBytes && before + more > budget_.bytes_max_ / 4 * 5;
  if (!is_small || too_many) {
    const Account& payer = account_ ? account_ : account;
    if (!Fits(bytes, before - bytes_, payer)) {
      budget_.bytes_.fetch_sub(more, std::memory_order_relaxed);
      return false;
    }
    granted_ = bytes;
    if (payer) payer->fetch_add(bytes - billed_, std::memory_order_relaxed);
    if (payer) billed_ = bytes;
    if (!account_) account_ = account;
  }
  bytes_ += more;
  return true;
}

bool Charge::Fits(size_t bytes, size_t others, const Account& account) const {
  const size_t all = others + bytes;
  if (all > bytes_max_ || (bytes > share_ && others > budget_.bytes_max_ / 2)) return false;
  if (!account || all <= bytes_max_ / 4 * 3) return true;
  return account->load(std::memory_order_relaxed) - billed_ + bytes <= bytes_max_ - all;
}

bool Charge::ReachOversized(size_t bytes) {
  if (!oversized_) {
    size_t none = 0;
    if (!budget_.oversized_bytes_.compare_exchange_strong(none, bytes, std::memory_order_relaxed)) return false;
    Clear();
    oversized_ = true;
  }
  budget_.oversized_bytes_.store(bytes, std::memory_order_relaxed);
  bytes_ = granted_ = bytes;
  return true;
}

void Charge::Force(size_t bytes) {
  if (bytes <= bytes_) return;
  if (oversized_) {
    budget_.oversized_bytes_.store(bytes, std::memory_order_relaxed);
  } else {
    budget_.bytes_.fetch_add(bytes - bytes_, std::memory_order_relaxed);
  }
  if (granted_ > 0) granted_ = bytes;
  bytes_ = bytes;
}

void Charge::Absorb(Charge& other) {
  if (other.billed_ > 0) {
    if (!account_) account_ = other.account_;
    if (account_ != other.account_) {
      other.account_->fetch_sub(other.billed_, std::memory_order_relaxed);
      account_->fetch_add(other.billed_, std::memory_order_relaxed);
    }
    billed_ += std::exchange(other.billed_, 0);
  }
  const size_t bytes = bytes_ + other.bytes_;
  if (oversized_ || other.oversized_) {  // only one of them is
    budget_.bytes_.fetch_sub(oversized_ ? other.bytes_ : bytes_, std::memory_order_relaxed);
    budget_.oversized_bytes_.store(bytes, std::memory_order_relaxed);
    oversized_ = true;
  }
  bytes_ = bytes;
  granted_ += std::exchange(other.granted_, 0);
  other.bytes_ = 0;
  other.oversized_ = false;
  other.account_.reset();
}

void Charge::Lower(size_t bytes) {
  if (bytes >= bytes_) return;
  if (billed_ > bytes) {
    account_->fetch_sub(billed_ - bytes, std::memory_order_relaxed);
    billed_ = bytes;
  }
  if (billed_ == 0) account_.reset();
  if (oversized_ && bytes > bytes_max_) {
    budget_.oversized_bytes_.store(bytes, std::memory_order_relaxed);
  } else if (oversized_) {
    // The rest counts like any other charge from here on, even if the sum is over the limit for a while.
    oversized_ = false;
    budget_.bytes_.fetch_add(bytes, std::memory_order_relaxed);
    budget_.oversized_bytes_.store(0, std::memory_order_relaxed);
  } else {
    budget_.bytes_.fetch_sub(bytes_ - bytes, std::memory_order_relaxed);
  }
  bytes_ = bytes;
  granted_ = std::min(granted_, bytes);
}

}  // namespace tocsin::net
