// TopicTable: one shard's copy of the known topics, so that routing a call takes no lock. Only that shard's thread
// touches it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "core/ranked_names.h"
#include "metrics/registry.h"
#include "model/placement.h"
#include "model/topic.h"

namespace tocsin {

struct TopicEntry {
  Topic topic;
  uint32_t home = 0;
  uint32_t next_slot = 0;  // where the next batch without keys and ids goes
  std::shared_ptr<metrics::Histogram> lateness;
};

/// The slot for a batch without keys and ids. The whole batch goes to one slot, on the caller's own shard if that
/// serves the topic, and the next batch to the next such slot.
inline uint32_t NextBatchSlot(Placement placement, TopicEntry& entry, uint32_t caller) {
  const uint32_t slots = entry.topic.slots;
  const uint32_t offset = placement.OffsetOf(entry.home, caller);
  if (offset >= slots) return entry.next_slot++ % slots;
  const uint32_t own = (slots - offset - 1) / placement.shards + 1;  // slots offset, offset + shards, ...
  return offset + entry.next_slot++ % own * placement.shards;
}

class TopicTable {
 public:
  /// Has room for so many topics from the start: to grow later would hold up the shard.
  TopicTable(Placement placement, metrics::Registry& metrics, size_t topics)
      : placement_(placement), metrics_(metrics) {
    entries_.reserve(topics);
  }

  /// Null if the topic is unknown. Valid until the next Put or Erase.
  TopicEntry* Find(std::string_view topic) {
    const auto at = entries_.find(topic);
    return at == entries_.end() ? nullptr : &at->second;
  }
  void Put(const Topic& topic) {
    auto [at, fresh] = entries_.try_emplace(topic.name);
    at->second.topic = topic;
    if (!fresh) return;
    names_.insert(at->first);
    at->second.home = placement_.HomeOf(topic.name);
    at->second.lateness = metrics_.GetHistogram("tocsin_lateness_seconds", "From a job's due time to its delivery.",
                                                {{"topic", topic.name}});
  }
  void Erase(std::string_view topic) {
    const auto at = entries_.find(topic);
    if (at == entries_.end()) return;
    names_.erase(at->first);
    entries_.erase(at);
  }

  /// Up to `max` names that begin with `prefix` and come after `after`, in their order.
  std::vector<std::string> NamesAfter(std::string_view prefix, std::string_view after, size_t max) const {
    std::vector<std::string> names;
    auto at = after.empty() ? names_.lower_bound(prefix) : names_.upper_bound(after);
    for (; at != names_.end() && at->starts_with(prefix) && names.size() < max; ++at) names.emplace_back(*at);
    return names;
  }
  /// Up to `max` names that begin with `prefix`, in their order, without the first `offset`. Finding the first is fast.
  std::vector<std::string> NamesAt(std::string_view prefix, size_t offset, size_t max) const {
    std::vector<std::string> names;
    auto at = names_.find_by_order(names_.order_of_key(prefix) + offset);
    for (; at != names_.end() && at->starts_with(prefix) && names.size() < max; ++at) names.emplace_back(*at);
    return names;
  }
  /// How many names begin with `prefix`. Its cost hardly depends on how many there are.
  size_t CountOf(std::string_view prefix) const { return names_.CountOf(prefix); }

 private:
  const Placement placement_;
  metrics::Registry& metrics_;
  TextMap<TopicEntry> entries_;
  RankedNames<std::string_view> names_;  // the keys of entries_
};

}  // namespace tocsin
