// List: an intrusive doubly linked list over 32-bit indices, 0 being null: 8 bytes a list, 8 bytes an item, no
// allocation. `items(index)` gives the item, anything with members `uint32_t prev` and `uint32_t next`. An item is in
// one list at a time, and the list does not know its own length. One shard thread owns it.
#pragma once

#include <cstdint>

namespace tocsin::journal {

class List {
 public:
  bool empty() const { return head_ == 0; }
  uint32_t front() const { return head_; }
  uint32_t back() const { return tail_; }

  template <class Items>
  void PushBack(Items&& items, uint32_t index) {
    auto& item = items(index);
    item.prev = tail_;
    item.next = 0;
    (tail_ == 0 ? head_ : items(tail_).next) = index;
    tail_ = index;
  }

  /// Behind `place`, or in front of all if that is 0.
  template <class Items>
  void PushAfter(Items&& items, uint32_t place, uint32_t index) {
    auto& item = items(index);
    item.prev = place;
    item.next = place == 0 ? head_ : items(place).next;
    (place == 0 ? head_ : items(place).next) = index;
    (item.next == 0 ? tail_ : items(item.next).prev) = index;
  }

  template <class Items>
  void PushBefore(Items&& items, uint32_t place, uint32_t index) {
    PushAfter(items, items(place).prev, index);
  }

  template <class Items>
  void Unlink(Items&& items, uint32_t index) {
    auto& item = items(index);
    (item.prev == 0 ? head_ : items(item.prev).next) = item.next;
    (item.next == 0 ? tail_ : items(item.next).prev) = item.prev;
    item.prev = item.next = 0;
  }

 private:
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
};

}  // namespace tocsin::journal
