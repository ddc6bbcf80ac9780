// NodeAlerts: watches a node about once a second and posts its alerts. Each round reads what the node knows of the
// others, looks at the figures on a worker, tells the book, and has the poster post. In between it asks the shards for
// the minutes to come of topics that may have too full ones, one topic after the other, if it is the node that posts
// that. If a look takes long because there are many topics, the next one waits longer: looking takes a fiftieth of a
// core at most. So do searches of a Redis, which has to count: it is searched for a twentieth of the time at most.
//
// Made by the main thread; everything else is on the main loop, except the look.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/worker.h"
#include "config/config.h"
#include "core/alert_watch.h"
#include "core/alerts.h"
#include "core/cluster.h"
#include "core/service.h"
#include "metrics/registry.h"
#include "net/asio_loop.h"
#include "outbox/outbox.h"
#include "server/alert_poster.h"
#include "server/backing.h"

namespace tocsin {

AlertSettings AlertSettingsOf(const Config& config);
AlertOrigin AlertOriginOf(const Config& config);

/// Nodes that vanished, and are not back: no member of their name is at their address, or has joined since they were
/// last heard of.
std::vector<NodeReading::Vanished> VanishedOf(const ClusterReport& report);
/// Whether this node posts a condition. Of what all nodes see, one does: the owner of the topic's first group; of what
/// is no topic's, the member that joined first: a node knows only of those that vanished while it was there.
bool PostsHere(const ClusterReport& report, const AlertCondition& condition);

class NodeAlerts {
 public:
  struct Parts {
    const Config& config;
    const Clock& clock;
    metrics::Registry& metrics;
    net::AsioLoop& main_loop;
    net::AsioLoop& shard_loop;  // of shard 0
    Service& service;
    Backing& backing;
    Worker& worker;
    const outbox::Outbox* outbox;  // null: there is none
    std::shared_ptr<AlertBook> book;
    std::unique_ptr<AlertPoster> poster;  // null: alerts are not posted
  };
  explicit NodeAlerts(Parts parts);

  /// Begins the rounds.
  void Start() { Round(); }
  /// `done` runs when nothing of this runs any more.
  void Stop(Task done);

 private:
  using Found = std::pair<std::string, FutureFinding>;
  struct Searching;

  void Round();
  void Look(ClusterReport report);
  void Looked(std::vector<AlertCondition> conditions, Moment now, Millis took);
  void LookAtFuture();
  void SearchNext(const std::shared_ptr<Searching>& searching);
  void Searched(Searching& searching, IoTime::duration took);
  void CheckStopped();

  Parts parts_;
  const AlertSettings settings_;
  AlertWatch watch_;  // the worker's while a look is under way
  ClusterReport report_;
  boost::asio::steady_timer timer_;
  bool looking_ = false;
  bool searching_ = false;
  IoTime next_pass_{};                  // when minutes to come are searched again, from the first topic on
  IoTime next_search_{};                // when some more are
  std::vector<FutureCandidate> queue_;  // to be searched then
  std::vector<Found> found_;            // for the next look
  Task stopped_;
  bool stopping_ = false;
  metrics::Registry::Registration shown_;
};

}  // namespace tocsin
