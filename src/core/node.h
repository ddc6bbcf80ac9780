// Node: this server as its shards see it: the shards, what they share, and whether calls are taken.
//
// Owned by the Service. Threads: the plain members are fixed before the loops run; the methods are thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/figures.h"
#include "core/requests.h"
#include "metrics/registry.h"
#include "model/placement.h"
#include "spi/sink.h"

namespace tocsin {

class Shard;

struct Node {
  Node(size_t shard_count, Clock& the_clock, metrics::Registry& the_metrics, Limits the_limits, SinkFactory* the_sinks);
  ~Node();

  /// A store has failed for good. The first failure is reported to the server.
  void NoteFailure(const Error& error);
  /// Why a shard's store cannot look for due jobs at the moment; nothing if it can.
  void SetOutage(size_t shard, std::optional<Error> why);

  /// Ok if calls are taken.
  Status TakesCalls() const;
  /// Ok if callers should be sent here: calls are taken, and not every shard has an outage. One broken server behind
  /// the store has the same effect on every node. If nodes were unready because of it, load balancers would remove all
  /// of them, and the jobs on the other servers would stop too.
  Status Ready() const;

  Clock& clock;
  metrics::Registry& metrics;
  const Limits limits;
  SinkFactory* const sinks;  // null: none
  const Placement placement;
  FiguresBoard board;
  std::vector<std::unique_ptr<Shard>> shards;
  std::move_only_function<void(const Error&)> on_failed;
  /// On shard 0's thread, whenever its store has advanced: other nodes may have changed topics.
  std::move_only_function<void()> on_advanced;
  std::atomic<bool> stopping = false;

 private:
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  std::vector<std::optional<Error>> outages_;  // by shard
};

}  // namespace tocsin
