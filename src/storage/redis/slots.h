// What one shard's Redis store keeps in memory: the settings and slots of each topic, and when each group has work
// next. All of it is a copy of what Redis holds, as new as the last answer; losing it costs one scan.
//
// Owned by a RedisStore; used only on its thread.
#pragma once

#include <limits>
#include <map>
#include <set>

#include "model/placement.h"
#include "spi/store.h"
#include "storage/redis/record.h"
#include "storage/redis/scripts.h"

namespace tocsin::redis {

/// As `figures` of common.lua gives them: jobs held, leased, dead, retained, ready, bytes, and the counts of
/// TopicFigures.
struct SlotFigures {
  static constexpr size_t kNumbers = 15;
  std::array<uint64_t, kNumbers> numbers{};

  uint64_t bytes() const { return numbers[5]; }
  /// Acked, cancelled and purged.
  uint64_t ended() const { return numbers[8] + numbers[13] + numbers[14]; }
  /// Scheduled, leased and dead.
  uint64_t live() const { return numbers[0] - numbers[3]; }
};

struct Slot {
  Slot(std::string_view prefix, std::string_view topic, uint32_t the_number)
      : number(the_number),
        group(GroupOf(topic, the_number)),
        name(fmt::format("{}/{}", topic, the_number)),
        keys(prefix, group, name) {}

  const uint32_t number;
  const uint32_t group;
  const std::string name;  // in the indexes of its group
  const SlotKeys keys;
  SlotFigures figures;
  bool seen = false;
  SlotFigures opened;     // its figures when this store first saw it
  bool checking = false;  // CheckLife is under way
};

/// A topic, with those of its slots that belong to this shard.
struct TopicSlots {
  StoredTopic topic;
  std::map<uint32_t, std::unique_ptr<Slot>> by_number;
  std::set<uint32_t> ready;   // slots with jobs to claim, as far as known
  uint32_t turn = 0;          // the slot to claim from next
  size_t record_bytes = 512;  // of a job, about, as the last claim had them
  bool reported = false;      // Advance has reported it as ready, and no claim has found it empty since

  Slot* Find(uint32_t slot) {
    const auto found = by_number.find(slot);
    return found == by_number.end() ? nullptr : found->second.get();
  }
  TopicFigures Figures() const;
};

/// How far Redis' clock is ahead of this node's (below 0: behind), learned from its answers. An answer takes a while to
/// arrive and so shows too small a gap: the largest of the last seconds counts. Older ones are forgotten, because
/// clocks drift and may be set. If an answer shows a far smaller gap, all older ones are forgotten at once: after a
/// failover it is another server's clock, and a node that believed it to be ahead would keep asking for jobs that are
/// not due yet.
class ClockGap {
 public:
  void Add(int64_t ahead_ms, Time steady) {
    if (ahead_ms + kFarLess < std::max(latest_, before_)) latest_ = before_ = kNone;
    if (steady - began_ >= kKept) {
      before_ = latest_;
      latest_ = kNone;
      began_ = steady;
    }
    latest_ = std::max(latest_, ahead_ms);
  }
  /// 0 before the first answer.
  int64_t ahead_ms() const {
    const int64_t known = std::max(latest_, before_);
    return known == kNone ? 0 : known;
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  static constexpr Millis kKept{5'000};
  static constexpr int64_t kFarLess = 1'000;

  Time began_{};
  int64_t latest_ = kNone;
  int64_t before_ = kNone;  // in the period before began_
};

using IoTime = std::chrono::steady_clock::time_point;
constexpr Millis kSlowAfter{400};

struct Group {
  Group(std::string_view prefix, uint32_t the_number) : number(the_number), keys(prefix, the_number, "") {}

  /// Whether its server may not answer soon: nobody waits for it then.
  bool Slow(IoTime now) const { return trouble || (scans > 0 && now - waits_since >= kSlowAfter); }

  /// A job in it is due at `ms`, on Redis' clock; -1: none is.
  void Due(int64_t ms) {
    if (ms >= 0 && (next_ms < 0 || ms < next_ms)) next_ms = ms;
  }

  void Chore(int64_t ms) {
    if (ms >= 0 && (chore_ms < 0 || ms < chore_ms)) chore_ms = ms;
  }
  /// Whether a scan should find something, at this time of Redis' clock.
  bool Expects(int64_t ms) const {
    const auto comes = [ms](int64_t at) { return at >= 0 && at <= ms; };
    return stale || comes(next_ms) || (mine && epoch != 0 && comes(chore_ms));
  }

  const uint32_t number;
  const SlotKeys keys;
  bool stale = true;      // scan it with the next round in any case
  int64_t next_ms = -1;   // the first job that comes due
  uint64_t messages = 0;  // about that
  int64_t chore_ms = -1;  // the first lease that ends, or retained job that is forgotten
  size_t busy_slots = 0;  // with scheduled jobs
  bool mine = false;      // this node is its owner
  bool taking = false;
  uint64_t epoch = 0;       // ours, when mine; 0 until it is taken
  uint64_t seen_epoch = 0;  // Redis'
  std::string owner;        // as Redis has it

  ClockGap clock;                // of its server
  size_t scans = 0;              // under way
  IoTime waits_since{};          // for an answer to one of them
  std::optional<Error> trouble;  // of the last one, if it failed
};

}  // namespace tocsin::redis
