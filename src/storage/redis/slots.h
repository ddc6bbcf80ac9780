// What one shard's Redis store keeps in memory: the settings and slots of each topic, when each group has work next,
// and who looks after it. Most of it is a copy of what Redis holds, as new as the last answer; losing it costs one
// scan.
//
// Owned by a RedisStore; used only on its thread.
#pragma once

#include <limits>
#include <map>
#include <set>

#include "model/placement.h"
#include "spi/store.h"
#include "storage/redis/channels.h"
#include "storage/redis/groups.h"
#include "storage/redis/record.h"
#include "storage/redis/scripts.h"
#include "storage/redis/wants.h"

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
  Slot(const GroupTags& tags, std::string_view the_topic, uint32_t the_number)
      : topic(the_topic),
        number(the_number),
        group(tags.GroupOf(topic, number)),
        name(fmt::format("{}/{}", topic, number)),
        keys(tags[group], name) {}

  const std::string topic;
  const uint32_t number;
  const uint32_t group;
  const std::string name;  // in the indexes of its group
  const SlotKeys keys;
  SlotFigures figures;
  bool seen = false;
  SlotFigures opened;                          // its figures when this store first saw it
  Time oldest_due = kNever;                    // of its ready jobs, if this node looks at its group
  std::optional<Wants::TimePoint> learned_at;  // when an answer to a call of this node last had them
  /// Its figures have been read.
  void See() {
    if (!std::exchange(seen, true)) opened = figures;
  }
  bool open = false;  // in this life of the topic, for sure

  // Of a group that is ours: the figures that others know, and the node that was last told of its jobs, if another one.
  std::array<uint64_t, SlotFigures::kNumbers> told{};
  int tell_again = 0;  // so many times, though they are the same
  std::optional<Wants::TimePoint> told_at;
  std::string offered;
  int64_t offered_ms = 0;  // when, on Redis' clock
  static constexpr int64_t kLookMs = 80;
  int64_t look_ms = kLookMs;                  // how much later the owner looks whether it was taken
  std::optional<Wants::TimePoint> shared_at;  // when others were last told that jobs are left
};

/// A topic, with those of its slots that belong to this shard.
struct TopicSlots {
  StoredTopic topic;
  std::map<uint32_t, std::unique_ptr<Slot>> by_number;
  std::set<uint32_t> ready;   // slots with jobs to claim, as far as known
  uint32_t turn = 0;          // the slot to claim from next
  size_t record_bytes = 512;  // of a job, about, as the last claim had them
  bool reported = false;      // Advance has reported it as ready, and no claim has found it empty since
  WorstJobs worst;            // of those that this node settled or rolled back
  uint64_t dropped = 0;       // lives up to this birth were dropped, as far as known

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

/// Another store that looks after groups.
struct Keeper {
  IoTime beat_at{};     // when it was last heard of
  std::string listens;  // as its last beat said
};
constexpr Millis kKeeperKept{60'000};  // after it was last heard of

/// What a store says of a group in its beat.
struct GroupWord {
  uint64_t epoch = 0;  // 0: it does not look after it
  size_t slots = 0;    // with scheduled jobs
  int64_t next_ms = -1;
  friend bool operator==(const GroupWord&, const GroupWord&) = default;
};

struct Group {
  Group(std::string_view prefix, const GroupTags& tags, uint32_t the_number, bool sharded)
      : number(the_number),
        keys(tags[the_number], ""),
        channel(OwnerChannel(prefix, the_number, sharded ? keys.tag() : "")) {}

  /// Whether this node looks after it.
  bool Mine() const { return mine && epoch != 0; }
  /// Whether another node does. If nobody does, every node scans it.
  bool Watched(IoTime now) const { return !Mine() && keeper && now < WatchedUntil(); }
  /// The owner's next beat comes before this, unless the owner is dead or stands still. A node whose consumers wait for
  /// its jobs looks for itself as soon as one beat is late. Others leave an owner that is only slow more time.
  IoTime WatchedUntil() const { return keeper->beat_at + (wanted.empty() ? kBeatLost : kBeatLate); }

  /// Whether its server may not answer soon: nobody waits for it then.
  bool Slow(IoTime now) const { return trouble || (scans > 0 && now - waits_since >= kSlowAfter); }

  /// If its server does not answer this node, others look after it too.
  GroupWord Says(IoTime now) const {
    return Mine() && !Slow(now) ? GroupWord{epoch, busy_slots, next_ms} : GroupWord{};
  }

  /// A job in it is due at `ms`, on Redis' clock; -1: none is.
  void Due(int64_t ms) {
    if (ms >= 0 && (next_ms < 0 || ms < next_ms)) next_ms = ms;
  }

  void Chore(int64_t ms) {
    if (ms >= 0 && (chore_ms < 0 || ms < chore_ms)) chore_ms = ms;
  }
  /// A node was told of jobs and may be dead: scan then.
  void Look(int64_t ms) {
    if (look_ms < 0 || ms < look_ms) look_ms = ms;
  }
  /// Its server or its owner is another one: what it keeps of topics may be what nobody knows.
  void CompareSoon() {
    compared.reset();
    compare_at = Time::min();
  }
  /// Whether a scan should find something, at this time of Redis' clock.
  bool Expects(int64_t ms) const {
    const auto comes = [ms](int64_t at) { return at >= 0 && at <= ms; };
    return stale || comes(next_ms) || (Mine() && (comes(chore_ms) || comes(look_ms)));
  }

  static constexpr Millis kBeatLate{1'300};  // an owner beats every second
  static constexpr Millis kBeatLost{2'500};

  const uint32_t number;
  const SlotKeys keys;
  const std::string channel;                        // to its owner
  std::map<std::string, Slot*, std::less<>> slots;  // that are known here, by name
  std::set<Slot*> due;                              // those of them with an oldest_due
  bool stale = true;                                // scan it with the next round in any case
  bool turn = false;                                // the same
  bool figures_turn = false;                        // read figures with the next round
  Time figures_at = Time::min();                    // not before this, on the steady timeline
  std::string figures_from;                         // the last slot whose figures were read
  int64_t next_ms = -1;                             // the first job that comes due
  uint64_t messages = 0;                            // about that
  int64_t chore_ms = -1;                            // the first lease that ends, or retained job that is forgotten
  int64_t look_ms = -1;                             // when to see whether nodes took what they were told of
  size_t busy_slots = 0;                            // with scheduled jobs
  bool mine = false;                                // this node is its owner
  bool taking = false;
  uint64_t epoch = 0;       // ours, when mine; 0 until it is taken
  uint64_t seen_epoch = 0;  // Redis'
  std::string owner;        // as Redis has it

  // While it is ours.
  bool listens = false;  // to its channel
  Wants wants;
  GroupWord told;  // by our last beat
  // While it is another node's.
  std::shared_ptr<Keeper> keeper;             // null: nobody is known to look after it
  std::set<std::string, std::less<>> wanted;  // topics that it was told of: consumers wait for them here
  size_t topics = 0;                          // that are known here and have a slot in it
  // How many Redis kept for it, and `topics`, when they were last compared.
  std::optional<std::pair<size_t, size_t>> compared;
  Time compare_at = Time::min();  // not before this, on the steady timeline
  Time differs_at = kNever;       // since when the two differ

  ClockGap clock;                // of its server
  size_t scans = 0;              // under way
  IoTime asked_at{};             // when the last one was sent
  IoTime waits_since{};          // for an answer to one of them
  std::optional<Error> trouble;  // of the last one, if it failed
};

}  // namespace tocsin::redis
