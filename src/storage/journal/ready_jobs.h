// ReadyJobs: the ready jobs of one topic in the order of their due times, over both timelines. Nearly all of them come
// in that order and go to the end of an intrusive list. One that comes back out of turn (its delivery was released, or
// its lease expired on a full disk) goes to a sorted tree instead: no insert searches a list. The shard's thread owns
// it.
//
// `items(index)` gives the job: a list item with due_ms, order(), timeline() and bucket. `order(index)` is its place in
// the order over both timelines. That order changes with the clock, so each timeline has a tree of its own, sorted by
// what never changes while the job is in it.
#pragma once

#include <map>
#include <utility>

#include "base/time.h"
#include "storage/journal/list.h"
#include "storage/journal/wheel.h"

namespace tocsin::journal {

class ReadyJobs {
 public:
  bool empty() const { return in_turn_.empty() && steady_.empty() && utc_.empty(); }

  /// The first of them; 0 if there is none.
  template <class Order>
  uint32_t First(const Order& order) const {
    uint32_t first = in_turn_.front();
    for (const Tree* tree : {&steady_, &utc_}) {
      if (tree->empty()) continue;
      const uint32_t other = tree->begin()->second;
      if (first == 0 || order(other) < order(first)) first = other;
    }
    return first;
  }

  /// True if the job went to a tree, which takes memory.
  template <class Items, class Order>
  bool Insert(Items&& items, const Order& order, uint32_t index) {
    const auto place = order(index);
    if (in_turn_.empty() || order(in_turn_.back()) <= place) {
      in_turn_.PushBack(items, index);
      return false;
    }
    if (place < order(in_turn_.front())) {
      in_turn_.PushAfter(items, 0, index);
      return false;
    }
    auto& item = items(index);
    item.bucket = kOutOfTurn;
    TreeOf(item).emplace(KeyOf(item), index);
    return true;
  }

  /// True if the job was in a tree.
  template <class Items>
  bool Remove(Items&& items, uint32_t index) {
    auto& item = items(index);
    if (item.bucket != kOutOfTurn) {
      in_turn_.Unlink(items, index);
      return false;
    }
    item.bucket = kNoBucket;
    TreeOf(item).erase(KeyOf(item));
    return true;
  }

  /// Calls visit(index) for each job, in order, until that returns false.
  template <class Items, class Order, class Visit>
  void ForEach(Items&& items, const Order& order, Visit&& visit) const {
    uint32_t listed = in_turn_.front();
    auto steady = steady_.begin();
    auto utc = utc_.begin();
    while (true) {
      uint32_t first = listed;
      const auto consider = [&](uint32_t index) {
        if (first == 0 || order(index) < order(first)) first = index;
      };
      if (steady != steady_.end()) consider(steady->second);
      if (utc != utc_.end()) consider(utc->second);
      if (first == 0) return;
      if (first == listed) {
        listed = items(first).next;
      } else {
        ++(steady != steady_.end() && steady->second == first ? steady : utc);
      }
      if (!visit(first)) return;
    }
  }

 private:
  static constexpr uint16_t kOutOfTurn = kNoBucket - 1;
  using Key = std::pair<int64_t, uint64_t>;
  using Tree = std::map<Key, uint32_t>;

  template <class Item>
  static Key KeyOf(const Item& item) {
    return {item.due_ms, item.order()};
  }
  template <class Item>
  Tree& TreeOf(const Item& item) {
    return item.timeline() == Timeline::kSteady ? steady_ : utc_;
  }

  List in_turn_;
  Tree steady_;
  Tree utc_;
};

}  // namespace tocsin::journal
