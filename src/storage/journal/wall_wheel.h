// WallWheel: a wheel whose time is the machine's wall clock, which somebody may set back. The wheel itself cannot go
// back unless it is empty. What is due between the clock and the place that the wheel has reached is held in an ordered
// set instead, until the clock gets there. One shard thread owns it.
//
// Invariant: everything in held_ is due before everything in the wheel.
#pragma once

#include <set>
#include <tuple>

#include "storage/journal/wheel.h"

namespace tocsin::journal {

template <class Items>
class WallWheel {
 public:
  explicit WallWheel(Items items) : items_(items), wheel_(items) {}

  /// Sets the time of an empty wheel.
  void Reset(Time now) {
    TOCSIN_CHECK(held_.empty());
    wheel_.Reset(now);
    now_ = now;
  }
  /// What the clock shows, before Insert and Advance are called.
  void SetNow(Time now) { now_ = now; }

  size_t size() const { return wheel_.size() + held_.size(); }
  size_t held_bytes() const { return held_.size() * (sizeof(Held) + 4 * sizeof(void*)); }

  /// False, and nothing happens, if the item was due when the clock was last looked at.
  [[nodiscard]] bool Insert(uint32_t index) {
    if (wheel_.Insert(index)) return true;
    auto& item = items_(index);
    if (FromMs(item.due_ms) <= now_) return false;
    if (size() == 0) {
      wheel_.Reset(now_);  // an empty wheel can go back
      return wheel_.Insert(index);
    }
    held_.insert(HeldAt(index));
    item.bucket = kHeldBucket;
    return true;
  }

  /// False when the item is not in the wheel.
  bool Remove(uint32_t index) {
    if (items_(index).bucket != kHeldBucket) return wheel_.Remove(index);
    held_.erase(HeldAt(index));
    items_(index).bucket = kNoBucket;
    return true;
  }

  /// As Wheel::Advance.
  template <class F>
  bool Advance(Time until, size_t budget, F&& expired) {
    for (; !held_.empty() && FromMs(std::get<0>(*held_.begin())) <= until; --budget) {
      if (budget == 0) return true;
      const uint32_t index = std::get<2>(*held_.begin());
      Remove(index);
      expired(index);
    }
    return wheel_.Advance(until, budget, expired);
  }

  /// As Wheel::NextWork.
  Time NextWork(Time now) const {
    const Time next = wheel_.NextWork(now);
    return held_.empty() ? next : std::min(next, std::max(now, FromMs(std::get<0>(*held_.begin()))));
  }

 private:
  using Held = std::tuple<int64_t, uint64_t, uint32_t>;  // due_ms, order() and index
  static constexpr uint16_t kHeldBucket = kNoBucket - 1;

  Held HeldAt(uint32_t index) const { return {items_(index).due_ms, items_(index).order(), index}; }

  Items items_;
  Wheel<Items> wheel_;
  std::set<Held> held_;
  Time now_{};
};

}  // namespace tocsin::journal
