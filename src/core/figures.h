// Figures: what the shards' stores say about their topics, summed. Each shard publishes its own after every scan, in
// parts of a few hundred topics, so that no turn of the shard makes or frees many. A scrape reads what was published
// last, so that it neither waits for a shard nor touches a store from another thread.
//
// Threads: FiguresBoard is thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "metrics/registry.h"
#include "spi/store.h"

namespace tocsin {

/// A figure: its name on every wire, and its metric.
struct FigureColumn {
  std::string_view name;
  uint64_t TopicFigures::* value;
  metrics::Kind kind;
  std::string_view metric;
  std::string_view help;
};
constexpr FigureColumn kFigureColumns[] = {
    {"scheduled", &TopicFigures::scheduled, metrics::Kind::kGauge, "tocsin_jobs_scheduled",
     "Jobs that are scheduled, including those that are ready."},
    {"ready", &TopicFigures::ready, metrics::Kind::kGauge, "tocsin_jobs_ready",
     "Jobs that are due and wait for a consumer."},
    {"leased", &TopicFigures::leased, metrics::Kind::kGauge, "tocsin_jobs_leased", "Jobs that consumers hold."},
    {"dead", &TopicFigures::dead, metrics::Kind::kGauge, "tocsin_jobs_dead", "Dead letters."},
    {"bytes", &TopicFigures::bytes, metrics::Kind::kGauge, "tocsin_jobs_bytes",
     "Bytes of ids, keys, headers and payloads of the jobs that are stored."},
    {"recovered", &TopicFigures::recovered, metrics::Kind::kCounter, "tocsin_jobs_recovered_total",
     "Jobs that were stored already at the start."},
    {"accepted", &TopicFigures::accepted, metrics::Kind::kCounter, "tocsin_jobs_accepted_total",
     "Jobs accepted since the start."},
    {"delivered", &TopicFigures::delivered, metrics::Kind::kCounter, "tocsin_jobs_delivered_total",
     "Deliveries since the start."},
    {"acked", &TopicFigures::acked, metrics::Kind::kCounter, "tocsin_jobs_acked_total",
     "Deliveries that were acknowledged."},
    {"nacked", &TopicFigures::nacked, metrics::Kind::kCounter, "tocsin_jobs_nacked_total",
     "Deliveries that were refused."},
    {"expired", &TopicFigures::expired, metrics::Kind::kCounter, "tocsin_jobs_expired_total",
     "Deliveries whose lease ran out."},
    {"died", &TopicFigures::died, metrics::Kind::kCounter, "tocsin_jobs_dead_total",
     "Jobs that used up their attempts, or were refused for good."},
    {"redriven", &TopicFigures::redriven, metrics::Kind::kCounter, "tocsin_jobs_redriven_total",
     "Dead letters that were scheduled again."},
    {"cancelled", &TopicFigures::cancelled, metrics::Kind::kCounter, "tocsin_jobs_cancelled_total",
     "Jobs that were cancelled or replaced."},
    {"purged", &TopicFigures::purged, metrics::Kind::kCounter, "tocsin_jobs_purged_total",
     "Jobs that a purge removed."},
};

inline void Add(TopicFigures& sum, const TopicFigures& part) {
  for (const FigureColumn& column : kFigureColumns) sum.*column.value += part.*column.value;
}

/// Of one topic on several shards; the settings are those of the highest version.
inline void AddPart(TopicFigures& sum, const TopicFigures& part) {
  if (sum.topic.name.empty() || part.topic.version > sum.topic.version) sum.topic = part.topic;
  sum.oldest_due = std::min(sum.oldest_due, part.oldest_due);
  Add(sum, part);
}

using FigureValues = std::array<uint64_t, std::size(kFigureColumns)>;
/// Where a column is in FigureValues.
constexpr size_t ColumnOf(std::string_view name) {
  size_t at = 0;
  while (kFigureColumns[at].name != name) ++at;
  return at;
}

/// How badly the pushes of a topic go. Times are on the steady timeline.
struct PushTrouble {
  uint64_t failures = 0;    // in a row
  Time failed_at{};         // the last of them
  Time broken_at = kNever;  // since then the sink cannot be opened
};

/// A topic's name and its figures, in the order of kFigureColumns: TopicFigures without most settings, of which there
/// may be a hundred thousand.
struct FiguresRow {
  std::string topic;
  FigureValues values{};
  uint64_t capacity_jobs = 0;
  uint64_t capacity_bytes = 0;
  std::shared_ptr<const AlertLimits> alerts;  // null: the topic has none of its own
  WorstJobs worst;
  PushTrouble push;       // only on the topic's home shard
  Millis oldest_age{-1};  // of the ready jobs; below 0: there is none, or the store does not know
  bool paused = false;
};
FiguresRow RowOf(const TopicFigures& figures, Time now);

/// One scan of a shard's store.
using FiguresParts = std::vector<std::shared_ptr<const std::vector<FiguresRow>>>;

struct FiguresSnapshot;

/// recovered + accepted - scheduled - leased - dead - acked - cancelled - purged: 0, or a job was lost or invented.
int64_t ConservationDifference(const TopicFigures& figures);

class FiguresBoard {
 public:
  FiguresBoard(size_t shards, metrics::Registry& metrics);

  /// Returns what was published before, for the caller to free bit by bit.
  [[nodiscard]] FiguresParts Publish(size_t shard, FiguresParts scan);
  /// The rows of every shard's last scan, by topic, without those of dropped topics. As long as it lives, they do.
  class Rows {
   public:
    const std::vector<const FiguresRow*>& rows() const { return rows_; }

   private:
    friend class FiguresBoard;
    std::vector<FiguresParts> scans_;
    std::vector<const FiguresRow*> rows_;
  };
  /// Takes as long as a scrape: not on a shard's thread if there are many topics.
  Rows Latest() const;
  /// Whether every shard has published a scan.
  bool complete() const;

  /// The shard has dropped the topic. The last scan, and one that is under way, may have met it before.
  void Forget(size_t shard, std::string_view topic);
  /// The same, summed by topic.
  FiguresSnapshot Snapshot() const;

 private:
  struct Published {
    FiguresParts scan;
    uint64_t scans = 0;
    std::map<std::string, uint64_t, std::less<>> forgotten;  // with the last scan that may have met it
  };

  void Collect(metrics::Samples& samples);

  mutable std::mutex mutex_;
  std::vector<Published> shards_;
  metrics::Registry::Registration registration_;  // last: ends before what it reads
};

/// The last scans of all shards, summed by topic: about 200 bytes for each. It keeps no scan, which takes more.
struct FiguresSnapshot {
  struct Row {
    std::string_view topic;
    FigureValues values{};
    Millis oldest_age{-1};
    bool paused = false;
  };
  std::shared_ptr<const std::string> names;  // that the rows refer to
  std::vector<Row> rows;                     // by topic
};

}  // namespace tocsin
