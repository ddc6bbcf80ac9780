// Gather: collects the answers of several slots to one call, in the order of the call, and answers when all have.
// Portion: the items of a call that go to one slot in one script.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "clients/redis/command.h"
#include "spi/store.h"

namespace tocsin::redis {

template <class T>
struct Gather {
  explicit Gather(size_t size, Done<std::vector<T>> the_done) : outcomes(size), done(std::move(the_done)) {}

  std::vector<T> outcomes;
  std::optional<Error> error;
  size_t left = 1;  // parts under way, and one for the caller until it has sent all
  Done<std::vector<T>> done;

  void Fail(Error failed) {
    if (!error) error = std::move(failed);
    Leave();
  }
  void Leave() {
    if (--left > 0) return;
    if (error) return done(std::unexpected(std::move(*error)));
    done(std::move(outcomes));
  }
};

/// For answers without a value.
inline std::shared_ptr<Gather<char>> Join(Done<void> done) {
  return std::make_shared<Gather<char>>(0, [done = std::move(done)](Result<std::vector<char>> all) mutable {
    if (!all) return done(std::unexpected(std::move(all).error()));
    done({});
  });
}

/// Makes `gather` wait for one more answer, of any type, to what this returns.
inline auto OneMore(const std::shared_ptr<Gather<char>>& gather) {
  ++gather->left;
  return [gather](auto answer) {
    if (!answer) return gather->Fail(std::move(answer).error());
    gather->Leave();
  };
}

/// Kept, with the arguments of each item, until all of it is answered: a script that has read enough answers only for
/// the first items, and one that found no room may find some later.
template <class Outcome, size_t N>
struct Portion {
  std::string topic;
  uint32_t slot = 0;
  Moment now;
  std::shared_ptr<Gather<Outcome>> gather;
  int asks = 0;              // requests for room so far
  std::vector<uint32_t> at;  // their places in the call
  std::vector<std::array<std::string, N>> items;

  /// An empty one of the same call and slot.
  std::shared_ptr<Portion> Like() const {
    auto like = std::make_shared<Portion>();
    like->topic = topic;
    like->slot = slot;
    like->now = now;
    like->gather = gather;
    like->asks = asks;
    return like;
  }
  void AddItems(Command& command) const {
    for (const auto& item : items) {
      for (const std::string& argument : item) command.Add(argument);
    }
  }
  void Take(Portion& from, size_t i) {
    at.push_back(from.at[i]);
    items.push_back(std::move(from.items[i]));
  }
  /// Cuts off the items that the script did not look at; null if it looked at all.
  std::shared_ptr<Portion> Rest(size_t looked) {
    if (looked >= at.size()) return nullptr;
    auto rest = Like();
    for (size_t i = looked; i < at.size(); ++i) rest->Take(*this, i);
    at.resize(looked);
    items.resize(looked);
    return rest;
  }
};

/// The places of a call's items by the slot that they belong to, in their order.
template <class Item, class SlotOf>
std::map<uint32_t, std::vector<uint32_t>> BySlot(std::span<const Item> items, SlotOf slot_of) {
  std::map<uint32_t, std::vector<uint32_t>> parts;
  for (size_t i = 0; i < items.size(); ++i) parts[slot_of(items[i])].push_back(static_cast<uint32_t>(i));
  return parts;
}

}  // namespace tocsin::redis
