// Wheel: a hierarchical timing wheel of milliseconds, seconds, minutes, hours and days. No I/O and no clock: time is an
// argument. Insert and Remove are O(1), allocate nothing and search nothing. One shard thread owns it.
//
// `Items` gives `items(index)`: an object with the members of WheelItem. Index 0 is null. The caller owns the items,
// sets due_ms and what order() returns before Insert, and changes neither while the item is in the wheel.
//
// How it avoids stalls: each level covers the current and the next unit of the level above. So items that are due in
// the next second (minute, hour, day) can be moved down while the current one passes, a bounded number at a time.
//
// Invariants
//  1. Every item has due_ms >= cursor_; earlier items have expired.
//  2. An item is in the bucket of its due time at some level whose window holds it. Only an item more than 3700 days
//     ahead is in a nearer bucket, the farthest day; it is placed again when that day comes.
//  3. Among items with the same due time, those in finer levels came in before those in coarser ones, and a bucket
//     keeps the order in which its items came in. So a new item goes behind items that still wait to be moved down, and
//     items that come in with rising order() never need sorting. (Beyond 3700 days the mark of invariant 4 does this.)
//  4. A millisecond bucket not marked in unsorted_ is sorted by order().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "storage/journal/bit_set.h"
#include "storage/journal/list.h"

namespace tocsin::journal {

constexpr uint16_t kNoBucket = 0xFFFF;

struct WheelItem {
  uint32_t prev = 0;
  uint32_t next = 0;
  int64_t due_ms = 0;
  uint64_t seq = 0;
  uint16_t bucket = kNoBucket;  // kNoBucket: not in the wheel, and prev and next are free for other lists

  /// Breaks ties of due_ms; unique in a wheel.
  uint64_t order() const { return seq; }
};

template <class Items>
class Wheel {
 public:
  explicit Wheel(Items items, Time now = {}) : items_(std::move(items)) { Reset(now); }
  Wheel(const Wheel&) = delete;
  Wheel& operator=(const Wheel&) = delete;

  /// Sets the time of an empty wheel. For a backlog to expire in order, reset to before its oldest due time.
  void Reset(Time now) {
    TOCSIN_CHECK(size_ == 0 && now >= Time{});
    cursor_ = std::min(ToMs(now), kTimeMaxMs) + 1;
    FindUnits();
  }

  size_t size() const { return size_; }

  /// False, and nothing happens, when the wheel has passed due_ms already. The caller then makes the item ready itself;
  /// that keeps the order, because everything in the wheel is due later.
  [[nodiscard]] bool Insert(uint32_t index) {
    const auto& item = items_(index);
    TOCSIN_CHECK(index != 0 && item.bucket == kNoBucket);
    if (item.due_ms < cursor_) return false;
    Place(index, kLevels);
    ++size_;
    return true;
  }

  /// False when the item is not in the wheel.
  bool Remove(uint32_t index) {
    if (items_(index).bucket == kNoBucket) return false;
    Take(index);
    --size_;
    return true;
  }

  /// Takes items due at or before `now` out of the wheel and calls expired(index) for each, sorted by (due, order())
  /// over all calls; then moves items of the coming units down. Does at most `budget` units of work, an expiry or a
  /// move each. Only buckets filled out of order are sorted: those that the budget empties cost about as much again,
  /// and at most one larger one is sorted whole. True when there is more to do right now. `expired` may insert and
  /// remove items.
  template <class F>
  bool Advance(Time now, size_t budget, F&& expired) {
    const int64_t now_ms = std::min(ToMs(now), kTimeMaxMs);
    for (;;) {
      const Work work = NextBucket();
      if (work.start_ms > now_ms) break;
      if (budget == 0) return true;
      MoveTo(std::max(cursor_, work.start_ms));
      budget -= work.level == 0 ? Expire(work.bucket, budget, expired) : Cascade(work.level, work.bucket, budget);
    }
    MoveTo(std::max(cursor_, now_ms + 1));
    for (int level = 1; level < kLevels;) {
      const uint32_t bucket = PendingAt(level);
      if (bucket == kNoBucket) {
        ++level;
        continue;
      }
      if (budget == 0) return true;
      budget -= Cascade(level, bucket, budget);
      level = 1;  // the nearest second first: it may just have received something
    }
    return false;
  }

  /// The earliest time at which Advance has something to do: `now` if it has already, kNever if the wheel is empty.
  /// Exact while the earliest item is at the millisecond level; otherwise the start of the unit before its own, which
  /// is when moving it down begins. Never later than the earliest due time.
  Time NextWork(Time now) const {
    if (size_ == 0) return kNever;
    for (int level = 1; level < kLevels; ++level) {
      if (PendingAt(level) != kNoBucket) return now;
    }
    int64_t next_ms = FindFirst(0, cursor_).unit;
    // Moving down begins with a unit, so never within the current second.
    for (int level = 1; level < kLevels && next_ms >= units_[1].next_start_ms; ++level) {
      const Found found = FindFirst(level, units_[level].current);
      if (found.unit != kNoUnit) next_ms = std::min(next_ms, (found.unit - 1) * kUnitMs[level]);
    }
    return std::max(now, FromMs(next_ms));
  }

 private:
  static constexpr int kLevels = 5;
  static constexpr std::array<int64_t, kLevels> kUnitMs = {1, 1'000, 60'000, 3'600'000, 86'400'000};
  static constexpr std::array<int64_t, kLevels> kRing = {2000, 120, 120, 48, 3700};
  // The first bucket of each level: multiples of 64, so that a level has bitmap words of its own.
  static constexpr std::array<uint32_t, kLevels + 1> kFirst = {0, 2048, 2176, 2304, 2368, 6080};
  static constexpr int64_t kNoUnit = std::numeric_limits<int64_t>::max();
  // Time stops here, so that no sum of a time and a unit can overflow. Later items are never due.
  static constexpr int64_t kTimeMaxMs = std::numeric_limits<int64_t>::max() / 2;

  struct Found {
    int64_t unit = kNoUnit;
    uint32_t bucket = kNoBucket;
  };
  struct Work {
    int64_t start_ms;
    int level;
    uint32_t bucket;
  };
  // Where the cursor stands at one level.
  struct Units {
    int64_t current = 0;
    int64_t next_start_ms = 0;
    uint32_t current_bucket = 0;
    uint32_t next_bucket = 0;
  };

  // Divisors must be constants for the compiler: a division by a variable would be the most expensive step of an
  // insert.
  static int64_t UnitAt(int level, int64_t ms) {
    switch (level) {
      case 0:
        return ms;
      case 1:
        return ms / kUnitMs[1];
      case 2:
        return ms / kUnitMs[2];
      case 3:
        return ms / kUnitMs[3];
      default:
        return ms / kUnitMs[4];
    }
  }

  static uint32_t RingAt(int level, int64_t unit) {
    switch (level) {
      case 0:
        return static_cast<uint32_t>(unit % kRing[0]);
      case 1:
      case 2:
        return static_cast<uint32_t>(unit % kRing[1]);
      case 3:
        return static_cast<uint32_t>(unit % kRing[3]);
      default:
        return static_cast<uint32_t>(unit % kRing[4]);
    }
  }

  void MoveTo(int64_t ms) {
    cursor_ = ms;
    if (ms >= units_[1].next_start_ms) FindUnits();
  }

  void FindUnits() {
    for (int level = 1; level < kLevels; ++level) {
      const int64_t unit = UnitAt(level, cursor_);
      units_[level] = {unit, (unit + 1) * kUnitMs[level], kFirst[level] + RingAt(level, unit),
                       kFirst[level] + RingAt(level, unit + 1)};
    }
  }

  // The finest level whose window holds `due_ms`.
  int LevelFor(int64_t due_ms) const {
    int level = 0;
    while (level < kLevels - 1 && due_ms >= units_[level + 1].next_start_ms + kUnitMs[level + 1]) ++level;
    return level;
  }

  // Puts an item into a level below `below`, behind everything with its due time that is there.
  void Place(uint32_t index, int below) {
    const int64_t due_ms = items_(index).due_ms;
    const int level = LevelFor(due_ms);
    for (int waiting = below - 1; waiting > level; --waiting) {
      const Units& units = units_[waiting];
      const uint32_t bucket = due_ms < units.next_start_ms ? units.current_bucket : units.next_bucket;
      if (occupied_.Test(bucket)) return Append(bucket, index);
    }
    int64_t unit = UnitAt(level, due_ms);
    if (level == kLevels - 1) unit = std::min(unit, units_[level].current + kRing[level] - 1);
    Append(kFirst[level] + RingAt(level, unit), index);
  }

  void Append(uint32_t bucket, uint32_t index) {
    List& list = buckets_[bucket];
    auto& item = items_(index);
    if (list.empty()) {
      occupied_.Set(bucket);
      if (bucket < kFirst[1]) unsorted_.Clear(bucket);
    } else if (bucket < kFirst[1] && item.order() < items_(list.back()).order()) {
      unsorted_.Set(bucket);
    }
    item.bucket = static_cast<uint16_t>(bucket);
    list.PushBack(items_, index);
  }

  void Take(uint32_t index) {
    auto& item = items_(index);
    List& list = buckets_[item.bucket];
    list.Unlink(items_, index);
    if (list.empty()) occupied_.Clear(item.bucket);
    item.bucket = kNoBucket;
  }

  // The first occupied bucket of a level, in the order of time.
  Found FindFirst(int level, int64_t from_unit) const {
    const uint32_t begin = kFirst[level];
    const uint32_t at = begin + RingAt(level, from_unit);
    size_t bucket = occupied_.FindIn(at, kFirst[level + 1]);
    if (bucket != occupied_.kNone)
      return {from_unit + static_cast<int64_t>(bucket - at), static_cast<uint32_t>(bucket)};
    bucket = occupied_.FindIn(begin, at);
    if (bucket == occupied_.kNone) return {};
    return {from_unit + kRing[level] + static_cast<int64_t>(bucket) - at, static_cast<uint32_t>(bucket)};
  }

  // The first bucket in time. At the same time a coarser level goes first: it may hold items due in that very
  // millisecond.
  Work NextBucket() const {
    const Found first = FindFirst(0, cursor_);
    Work work{first.unit, 0, first.bucket};
    if (first.unit < units_[1].next_start_ms && !CurrentWaits()) return work;
    for (int level = 1; level < kLevels; ++level) {
      const Found found = FindFirst(level, units_[level].current);
      if (found.unit == kNoUnit) continue;
      const int64_t start_ms = std::max(cursor_, found.unit * kUnitMs[level]);
      if (start_ms <= work.start_ms) work = {start_ms, level, found.bucket};
    }
    return work;
  }

  // Whether the current unit of any level still waits to be moved down. If not, this second is all at the finest level.
  bool CurrentWaits() const {
    for (int level = 1; level < kLevels; ++level) {
      if (occupied_.Test(units_[level].current_bucket)) return true;
    }
    return false;
  }

  // The bucket of the current or the next unit, if it still waits to be moved down.
  uint32_t PendingAt(int level) const {
    const Units& units = units_[level];
    if (occupied_.Test(units.current_bucket)) return units.current_bucket;
    return occupied_.Test(units.next_bucket) ? units.next_bucket : kNoBucket;
  }

  // Both return the work done, from 1 to `budget`.
  size_t Cascade(int level, uint32_t bucket, size_t budget) {
    const List& list = buckets_[bucket];
    size_t moved = 0;
    for (; moved < budget && !list.empty(); ++moved) {
      const uint32_t index = list.front();
      Take(index);
      Place(index, level);
    }
    return moved;
  }

  template <class F>
  size_t Expire(uint32_t bucket, size_t budget, F& expired) {
    const List& list = buckets_[bucket];
    size_t done = 0;
    while (done < budget && !list.empty()) {
      if (unsorted_.Test(bucket)) Sort(bucket);
      const uint32_t index = list.front();
      Take(index);
      --size_;
      ++done;
      expired(index);
    }
    return done;
  }

  // Sorts copies of the keys: following the links of a large bucket once costs far less than merging lists.
  void Sort(uint32_t bucket) {
    std::vector<std::pair<uint64_t, uint32_t>> order;
    for (uint32_t index = buckets_[bucket].front(); index != 0; index = items_(index).next) {
      order.emplace_back(items_(index).order(), index);
    }
    std::ranges::sort(order);
    List list;
    for (const auto& [key, index] : order) list.PushBack(items_, index);
    buckets_[bucket] = list;
    unsorted_.Clear(bucket);
  }

  Items items_;
  size_t size_ = 0;
  int64_t cursor_ = 0;                // the first millisecond not yet passed
  std::array<Units, kLevels> units_;  // [0] is unused: at the millisecond level, cursor_ is the unit
  BitSet<kFirst[kLevels]> occupied_;
  BitSet<kFirst[1]> unsorted_;
  std::array<List, kFirst[kLevels]> buckets_;
};

}  // namespace tocsin::journal
