// List: an intrusive doubly linked list over 32-bit indices, 0 being null: 8 bytes a list, 8 bytes a node, no
// allocation. `nodes(index)` gives the node, anything with members `uint32_t prev` and `uint32_t next`. A node is in
// one list at a time, and the list does not know its own length. One shard thread owns it.
#pragma once

#include <cstdint>

namespace tocsin::journal {

class List {
 public:
  bool empty() const { return head_ == 0; }
  uint32_t front() const { return head_; }
  uint32_t back() const { return tail_; }

  template <class Nodes>
  void PushBack(Nodes&& nodes, uint32_t index) {
    auto& node = nodes(index);
    node.prev = tail_;
    node.next = 0;
    (tail_ == 0 ? head_ : nodes(tail_).next) = index;
    tail_ = index;
  }

  /// Behind `place`, or in front of all where that is 0.
  template <class Nodes>
  void PushAfter(Nodes&& nodes, uint32_t place, uint32_t index) {
    auto& node = nodes(index);
    node.prev = place;
    node.next = place == 0 ? head_ : nodes(place).next;
    (place == 0 ? head_ : nodes(place).next) = index;
    (node.next == 0 ? tail_ : nodes(node.next).prev) = index;
  }

  template <class Nodes>
  void PushBefore(Nodes&& nodes, uint32_t place, uint32_t index) {
    PushAfter(nodes, nodes(place).prev, index);
  }

  template <class Nodes>
  void Unlink(Nodes&& nodes, uint32_t index) {
    auto& node = nodes(index);
    (node.prev == 0 ? head_ : nodes(node.prev).next) = node.next;
    (node.next == 0 ? tail_ : nodes(node.next).prev) = node.prev;
    node.prev = node.next = 0;
  }

  /// 0 when empty.
  template <class Nodes>
  uint32_t PopFront(Nodes&& nodes) {
    const uint32_t index = head_;
    if (index != 0) Unlink(nodes, index);
    return index;
  }

 private:
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
};

}  // namespace tocsin::journal
