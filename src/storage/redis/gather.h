// Gather: the answers of several slots to one call, put together in the order of the call. It answers when all have.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "spi/store.h"

namespace tocsin::redis {

template <class T>
struct Gather {
  explicit Gather(size_t size, Done<std::vector<T>> the_done) : outcomes(size), done(std::move(the_done)) {}

  std::vector<T> outcomes;
  std::optional<Error> error;
  size_t left = 1;  // parts under way, and one for the asking itself
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

/// For answers that bring nothing but their success.
inline std::shared_ptr<Gather<char>> Join(Done<void> done) {
  return std::make_shared<Gather<char>>(0, [done = std::move(done)](Result<std::vector<char>> all) mutable {
    if (!all) return done(std::unexpected(std::move(all).error()));
    done({});
  });
}

/// The places of a call's items by the slot that they belong to, in their order.
template <class Item, class SlotOf>
std::map<uint32_t, std::vector<uint32_t>> BySlot(std::span<const Item> items, SlotOf slot_of) {
  std::map<uint32_t, std::vector<uint32_t>> parts;
  for (size_t i = 0; i < items.size(); ++i) parts[slot_of(items[i])].push_back(static_cast<uint32_t>(i));
  return parts;
}

}  // namespace tocsin::redis
