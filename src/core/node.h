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
#include "core/events.h"
#include "core/figures.h"
#include "core/requests.h"
#include "metrics/registry.h"
#include "model/placement.h"
#include "spi/push_memory.h"
#include "spi/sink.h"

namespace tocsin {

class Shard;

struct Node {
  Node(size_t shard_count, Clock& the_clock, metrics::Registry& the_metrics, Limits the_limits, SinkFactory* the_sinks,
       PushMemory* the_push_memory);
  ~Node();

  /// A store has failed for good. The first failure is reported to the server.
  void NoteFailure(const Error& error);
  /// Why a shard's store cannot look for due jobs at the moment; nothing if it can.
  void SetOutage(size_t shard, std::optional<Error> why);
  /// Of any shard.
  std::optional<Error> Outage() const;

  /// Ok if calls are taken.
  Status TakesCalls() const;
  /// Ok if callers should be sent here: calls are taken, and not every shard has an outage. One broken server behind
  /// the store has the same effect on every node. If nodes were unready because of it, load balancers would remove all
  /// of them, and the jobs on the other servers would stop too.
  Status Ready() const;

  Clock& clock;
  metrics::Registry& metrics;
  const Limits limits;
  SinkFactory* const sinks;       // null: none
  PushMemory* const push_memory;  // null: no bound
  const Placement placement;
  FiguresBoard board;
  EventHub events;
  metrics::Histogram lateness;  // of all topics together
  std::vector<std::unique_ptr<Shard>> shards;
  std::move_only_function<void(const Error&)> on_failed;
  /// On shard 0's thread, whenever its store has advanced: other nodes may have changed topics.
  std::move_only_function<void()> on_advanced;
  /// On shard 0's thread, whenever it has scanned its topics: at least once a second or so.
  std::move_only_function<void()> on_scanned;
  std::atomic<bool> stopping = false;

 private:
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  std::vector<std::optional<Error>> outages_;  // by shard
};

}  // namespace tocsin
