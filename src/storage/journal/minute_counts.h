// MinuteCounts: how many jobs are due in each minute. 64 minutes, a window, share an entry of a hash table: a bit for
// each minute that has jobs, and the counts of those minutes. So a job that comes or goes costs two or three cache
// lines, a dense window about five bytes for each minute, and a lone minute no more than the entry. One shard thread
// owns it.
//
// Invariants: an entry has jobs, or is free. Its counts are those of its minutes in order; if it has one minute only,
// `sum` is the count and there are no others. An entry is found from its place of choice on, without a free one
// between. The choice depends on a random key of the process: clients choose due times, and must not be able to choose
// minutes that collide.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace tocsin::journal {

class MinuteCounts {
 public:
  void Add(uint32_t minute) {
    if ((used_ + 1) * 4 > entries_.size() * 3) Resize(std::max<size_t>(entries_.size() * 2, kEntriesMin));
    Entry& entry = entries_[PlaceOf(WindowOf(minute))];
    if (entry.sum == 0) {
      entry.window = WindowOf(minute);
      ++used_;
    }
    ++entry.sum;
    const uint64_t bit = BitOf(minute);
    if ((entry.minutes & bit) == 0) return AddMinute(entry, bit);
    if (entry.counts) ++entry.counts[IndexOf(entry, bit)];
  }

  /// The minute has jobs.
  void Remove(uint32_t minute) {
    const size_t place = PlaceOf(WindowOf(minute));
    Entry& entry = entries_[place];
    if (--entry.sum == 0) return Free(place);
    const uint64_t bit = BitOf(minute);
    if (entry.counts && --entry.counts[IndexOf(entry, bit)] == 0) RemoveMinute(entry, bit);
  }

  /// Jobs due in minutes from `from` to before `to`.
  uint64_t CountIn(uint32_t from, uint32_t to) const {
    if (from >= to || used_ == 0) return 0;
    const uint32_t first = WindowOf(from);
    const uint32_t last = WindowOf(to - 1);
    uint64_t jobs = 0;
    const auto add = [&](const Entry& entry) {
      if (entry.sum == 0 || entry.window < first || entry.window > last) return;
      uint64_t wanted = ~uint64_t{0};
      if (entry.window == first) wanted &= ~uint64_t{0} << from % kWindow;
      if (entry.window == last) wanted &= ~uint64_t{0} >> (kWindow - 1 - (to - 1) % kWindow);
      jobs += CountOf(entry, wanted);
    };
    if (last - first >= entries_.size()) {  // it is shorter to look at all
      std::ranges::for_each(entries_, add);
      return jobs;
    }
    for (uint32_t window = first; window <= last; ++window) add(entries_[PlaceOf(window)]);
    return jobs;
  }
  /// How many entries CountIn looks at.
  size_t LooksFor(uint32_t minutes) const { return std::min<size_t>(minutes / kWindow + 1, entries_.size()); }

  /// In addition to the object itself.
  size_t held_bytes() const { return held_bytes_; }

 private:
  static constexpr uint32_t kWindow = 64;
  static constexpr size_t kEntriesMin = 4;

  struct Entry {
    uint32_t window = 0;
    uint32_t sum = 0;  // 0: free
    uint64_t minutes = 0;
    std::unique_ptr<uint32_t[]> counts;
  };

  static uint32_t WindowOf(uint32_t minute) { return minute / kWindow; }
  static uint64_t BitOf(uint32_t minute) { return uint64_t{1} << minute % kWindow; }
  static size_t IndexOf(const Entry& entry, uint64_t bit) {
    return static_cast<size_t>(std::popcount(entry.minutes & (bit - 1)));
  }
  /// How many counts there is room for, if there are so many.
  static size_t RoomFor(size_t minutes) { return minutes <= 1 ? 0 : std::max<size_t>(std::bit_ceil(minutes), 4); }

  static uint64_t CountOf(const Entry& entry, uint64_t wanted) {
    if ((entry.minutes & ~wanted) == 0) return entry.sum;
    if (!entry.counts) return 0;  // its one minute is not wanted
    uint64_t jobs = 0;
    for (uint64_t left = entry.minutes & wanted; left != 0; left &= left - 1) {
      jobs += entry.counts[IndexOf(entry, left & -left)];
    }
    return jobs;
  }

  /// Of the window's entry, or of a free one if it has none.
  size_t PlaceOf(uint32_t window) const {
    const size_t mask = entries_.size() - 1;
    size_t place = ChoiceOf(window);
    while (entries_[place].sum != 0 && entries_[place].window != window) place = (place + 1) & mask;
    return place;
  }
  size_t ChoiceOf(uint32_t window) const {
    static const uint64_t key = TableHash("minutes");
    return Mix64(window, key) & (entries_.size() - 1);
  }

  /// The entry's sum counts the job already.
  void AddMinute(Entry& entry, uint64_t bit) {
    const auto had = static_cast<size_t>(std::popcount(entry.minutes));
    const size_t place = IndexOf(entry, bit);
    if (had == 1) {  // its count was the sum
      SetRoom(entry, 0, 2);
      entry.counts[0] = entry.sum - 1;
    } else if (had > 1) {
      SetRoom(entry, had, had + 1);
    }
    entry.minutes |= bit;
    if (had == 0) return;
    std::copy_backward(&entry.counts[place], &entry.counts[had], &entry.counts[had + 1]);
    entry.counts[place] = 1;
  }

  void RemoveMinute(Entry& entry, uint64_t bit) {
    const auto had = static_cast<size_t>(std::popcount(entry.minutes));
    const size_t place = IndexOf(entry, bit);
    std::copy(&entry.counts[place + 1], &entry.counts[had], &entry.counts[place]);
    entry.minutes &= ~bit;
    SetRoom(entry, had, had - 1);
  }

  void SetRoom(Entry& entry, size_t had, size_t has) {
    const size_t before = RoomFor(had);
    const size_t after = RoomFor(has);
    if (before == after) return;
    auto counts = after == 0 ? nullptr : std::make_unique_for_overwrite<uint32_t[]>(after);
    if (before != 0 && after != 0) std::copy_n(entry.counts.get(), std::min(had, has), counts.get());
    entry.counts = std::move(counts);
    held_bytes_ += (after - before) * sizeof(uint32_t);
  }

  void Free(size_t place) {
    entries_[place] = Entry{};  // it had one minute, and so no counts
    --used_;
    // Those behind move up, unless that would take them before their place of choice.
    const size_t mask = entries_.size() - 1;
    for (size_t next = (place + 1) & mask; entries_[next].sum != 0; next = (next + 1) & mask) {
      const size_t choice = ChoiceOf(entries_[next].window);
      if (((next - choice) & mask) < ((next - place) & mask)) continue;
      entries_[place] = std::exchange(entries_[next], Entry{});
      place = next;
    }
    if (entries_.size() > kEntriesMin && used_ * 8 < entries_.size()) Resize(entries_.size() / 2);
  }

  void Resize(size_t size) {
    std::vector<Entry> old(size);
    old.swap(entries_);
    held_bytes_ += (size - old.size()) * sizeof(Entry);
    for (Entry& entry : old) {
      if (entry.sum != 0) entries_[PlaceOf(entry.window)] = std::move(entry);
    }
  }

  std::vector<Entry> entries_;  // a power of two of them
  size_t used_ = 0;
  size_t held_bytes_ = 0;
};

}  // namespace tocsin::journal
