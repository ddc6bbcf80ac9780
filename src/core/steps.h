// How large batches are split: a shard works on a batch in steps, one in each turn of its loop, so that due jobs and
// other callers do not wait for all of it. A small batch is one step, and costs nothing more. Pure functions.
#pragma once

#include <span>
#include <string_view>

#include "model/job.h"

namespace tocsin {

constexpr size_t kStepBytes = 1 << 20;  // about a millisecond
constexpr size_t kItemBytes = 256;      // an item takes as long as so many bytes of text do
constexpr size_t kHeaderBytes = 64;     // the same for a header

// Bytes of text that an item makes the store copy and write.
inline size_t TextBytes(const NewJob& job) {
  size_t bytes = job.payload.size() + (job.restored ? job.restored->reason.size() : 0);
  for (const HeaderView& header : job.headers) bytes += kHeaderBytes + header.name.size() + header.value.size();
  return bytes;
}
inline size_t TextBytes(const Settlement& settlement) { return settlement.reason.size(); }
inline size_t TextBytes(const Amendment& amendment) { return amendment.payload.value_or(std::string_view()).size(); }
inline size_t TextBytes(const CountEvent& /*event*/) { return 0; }

/// How many of the items are the first step: one at least, if there are any.
template <class Item>
size_t FirstStep(std::span<const Item> items) {
  if constexpr (requires(const Item& item) { TextBytes(item); }) {
    size_t bytes = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      bytes += kItemBytes + TextBytes(items[i]);
      if (bytes > kStepBytes && i > 0) return i;
    }
  }
  return items.size();
}

template <class Item>
bool TakesSteps(std::span<const Item> items) {
  return FirstStep(items) < items.size();
}

}  // namespace tocsin
