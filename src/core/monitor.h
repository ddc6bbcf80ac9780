// Monitor: looks at the figures that the shards have published, as often as somebody needs it: every kStep for the
// history, and every second while somebody listens to figures. Tells those who listen (events.h), keeps the history of
// the last hour, and sorts topics by their figures. Shards do nothing for it: the work is done on a worker's thread.
//
// The history has kPoints points of the node and of kTopicsMax topics, those that somebody asked for and the busiest:
// 2.5 MB at most. It begins with the server and is not stored. While a virtual clock stands it does not grow. The
// figures before, which the next are compared with, take about 200 bytes for each topic; while somebody listens, there
// are three such snapshots at a time.
//
// Owned by the service. Threads: Tick and the end of its work run on shard 0's thread, and look_ on the worker's; the
// others are thread-safe.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/worker.h"
#include "core/node.h"
#include "core/requests.h"
#include "metrics/histogram.h"

namespace tocsin {

class Monitor {
 public:
  static constexpr Millis kStep{10'000};
  static constexpr size_t kPoints = 360;
  static constexpr size_t kTopicsMax = 64;

  Monitor(Node& node, Worker& worker) : node_(node), worker_(worker) {}

  /// The shards have new figures.
  void Tick();

  HistoryReport OfNode() const;
  /// Keeps the topic's history from now on, if it was not kept before.
  HistoryReport OfTopic(const std::string& topic, std::shared_ptr<metrics::Histogram> lateness);

  struct Ranked {
    size_t total = 0;
    std::vector<std::string> names;
  };
  /// By figures that are about a second old. `done` runs on `loop`.
  void Rank(Loop& loop, TopicsPageRequest request, Done<Ranked> done);
  static Ranked RankNow(const FiguresBoard& board, const TopicsPageRequest& request);

 private:
  struct Baseline {
    IoTime at{};
    Time utc{};
    FiguresSnapshot figures;
    metrics::Histogram::Snapshot lateness;
  };
  using BaselinePtr = std::shared_ptr<const Baseline>;
  struct Track {
    std::shared_ptr<metrics::Histogram> histogram;
    metrics::Histogram::Snapshot before;  // of it, at the last point
    IoTime wanted_at{};                   // when it was last asked for, or among the busiest
    std::deque<HistoryPoint> points;
  };
  struct Look {
    EventHub::Wanted wanted;
    bool step = false;
    std::vector<std::string> busiest = {};  // of a step
  };

  // On the worker's thread.
  void Run(Look& look);
  void Tell(const Look& look, const Baseline& before, const Baseline& now);
  void TellOfTopics(const EventHub::Wanted& wanted, double seconds, const Baseline& before, const Baseline& now);
  void Keep(Look& look, const Baseline& before, const Baseline& now);

  /// mutex_ is held. Makes room for it, if its topic deserves that.
  void Add(const std::string& topic, std::shared_ptr<metrics::Histogram> histogram, IoTime now, bool asked);

  Node& node_;
  Worker& worker_;

  // Shard 0's thread.
  bool looking_ = false;
  IoTime next_step_ = IoTime::min();

  // The worker's thread.
  BaselinePtr told_;  // when an event was told; null while nobody listens
  BaselinePtr kept_;  // when a point was kept

  mutable std::mutex mutex_;  // guards the rest
  std::deque<HistoryPoint> points_;
  std::map<std::string, Track> tracks_;
};

}  // namespace tocsin
