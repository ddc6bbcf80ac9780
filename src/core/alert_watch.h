// AlertWatch: looks at the figures of all topics and of the node, and says which conditions of alert_rules.h are true.
// It keeps what figures do not tell: how many jobs a topic has drained in a minute, since when nobody takes any, and
// what was found out about minutes to come (future_minutes.h).
//
// Pure: figures, readings and moments are arguments. One thread at a time. With 100,000 topics a look takes some ten
// milliseconds, so it runs on a worker, not on a shard. A topic that has drained nothing and has no due jobs costs no
// memory here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "core/alerts.h"
#include "core/figures.h"

namespace tocsin {

/// The node's thresholds; 0: never.
struct AlertSettings {
  AlertLimits topics;  // of topics that have none of their own
  Millis hold{0};
  Millis node_silent{0};
  uint32_t nearly_full_percent = 0;
};

AlertThresholds ThresholdsOf(const AlertSettings& settings);

/// What a node knows of itself and of the others. Sizes of 0 are not known.
struct NodeReading {
  struct Vanished {
    std::string id;
    Time heard{};  // UTC
  };
  uint64_t disk_size = 0;
  uint64_t disk_free = 0;
  bool disk_full = false;  // the store accepts no jobs
  uint64_t memory_limit = 0;
  uint64_t memory_used = 0;
  std::string outage;              // why the store cannot be asked; empty: it can
  std::string outbox_outage;       // why the outbox cannot be read; empty: it can, or there is none
  std::vector<Vanished> vanished;  // nodes that are gone and have not said goodbye
};

/// A minute that holds more jobs than it should.
struct FutureMinute {
  Time minute{};
  uint64_t jobs = 0;
};

/// An hour that was searched, and has no minute with too many jobs.
struct ClearHour {
  uint64_t jobs = 0;     // that it held
  uint64_t fullest = 0;  // the most in one of its minutes
  Time searched{};       // UTC

  /// Whether it still has none, as long as jobs only came, if it holds so many now.
  bool StillClear(uint64_t jobs_now, uint64_t limit, Time now) const {
    return jobs_now >= jobs && fullest + (jobs_now - jobs) <= limit && now >= searched && now - searched < kKept;
  }
  static constexpr Millis kKept = std::chrono::minutes(10);  // jobs may also be moved within it
};
/// By their beginnings. Only hours with more jobs than the limit are searched, so there are few.
using ClearHours = std::map<Time, ClearHour>;

/// A topic of which a minute to come may hold more than `limit` jobs.
struct FutureCandidate {
  std::string topic;
  uint64_t limit = 0;
  ClearHours clear = {};  // as the last search left them
};

/// What a search has found.
struct FutureFinding {
  std::optional<FutureMinute> full;  // the first, if there is one
  ClearHours clear;
};

class AlertWatch {
 public:
  /// A topic has drained in so many minutes before its record means something.
  static constexpr uint32_t kDrainMinutesMin = 3;
  static constexpr Millis kFutureLength = std::chrono::hours(24);
  /// A node that vanished longer ago is nobody's concern any more.
  static constexpr Millis kVanishedKept = std::chrono::hours(24);
  /// A topic without due jobs, and without one that waits for its next attempt, had its last push so long ago, or for
  /// alerts.hold if that is longer: nobody knows whether the receiver still fails.
  static constexpr Millis kPushQuiet = std::chrono::minutes(1);

  explicit AlertWatch(const AlertSettings& settings) : settings_(settings) {}

  /// `rows` are those of all shards, in any order.
  std::vector<AlertCondition> Look(std::vector<const FiguresRow*> rows, const NodeReading& node, Moment now);

  /// Up to `max` topics whose minutes to come are worth a search, by name, after the one that was answered last; the
  /// first again at the end. Of the last Look, and only those that are this node's to search; of others it forgets what
  /// it knew.
  std::vector<FutureCandidate> Candidates(size_t max, const std::function<bool(const std::string& topic)>& mine);
  /// Whether the last of them was answered, or there is none.
  bool pass_over() const { return answered_.empty(); }
  void SetFuture(const std::string& topic, FutureFinding found);

 private:
  struct Topic;
  /// What is kept of a topic.
  struct Record {
    int64_t minute = 0;  // in which `acked_before` was read, since 1970
    uint64_t acked_before = 0;
    uint64_t best = 0;       // the most that was acked in a minute
    uint32_t minutes = 0;    // in which some were
    uint64_t delivered = 0;  // at the last look
    Time waiting_since{};    // steady: due jobs wait, and none was delivered; Time{}: none wait
    uint64_t look = 0;       // the last that has met it
  };

  void LookAt(const Topic& topic, Moment now, std::vector<AlertCondition>& found);
  /// Null if nothing has to be kept of it.
  Record* RecordOf(const Topic& topic, Moment now);
  static void CountDrain(Record& record, uint64_t acked, Time utc);
  void LookAtPushes(const Topic& topic, Moment now, std::vector<AlertCondition>& found) const;
  void LookAtFuture(const Topic& topic, const Record* record, Moment now, std::vector<AlertCondition>& found);
  void LookAtNode(const NodeReading& node, Moment now, std::vector<AlertCondition>& found) const;
  void ForgetGone();

  AlertSettings settings_;
  TextMap<Record> records_;
  std::vector<FutureCandidate> candidates_;  // by name
  std::string answered_;                     // the last that Candidates has answered
  std::map<std::string, FutureFinding, std::less<>> future_;
  uint64_t look_ = 0;
};

}  // namespace tocsin
