// Backing: a store for each shard, and what the stores need. There is one class for each kind of store; only this
// folder names them.
//
// Made, opened, closed and destroyed by the main thread. While the loops run, Leave is called on the main loop, and the
// stores belong to their shards.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "base/result.h"
#include "config/config.h"
#include "core/alert_watch.h"
#include "core/cluster.h"
#include "metrics/registry.h"
#include "net/asio_loop.h"
#include "spi/coordinator.h"
#include "spi/push_memory.h"
#include "spi/shared_store.h"
#include "spi/store.h"

namespace tocsin {

/// Parts of the server; they outlive the backing.
struct BackingParts {
  const Config& config;
  Clock& clock;
  VirtualClock* virtual_clock;  // null with the real clock
  metrics::Registry& metrics;
  net::AsioLoop& main_loop;
  std::vector<net::AsioLoop*> loops;  // of the shards
  Member self;
  PushMemory& push_memory;
};

class Backing {
 public:
  virtual ~Backing() = default;

  /// Knows all that is stored when it returns. The loops do not run yet. `go_on` is asked several times a second while
  /// this waits for a server; if it says no, the answer is kShuttingDown.
  virtual Status Open(const std::function<bool()>& go_on) = 0;
  virtual Store& store(uint32_t shard) = 0;
  /// Null for a store of this node alone.
  virtual SharedStore* shared_store(uint32_t /*shard*/) { return nullptr; }
  virtual std::shared_ptr<Cluster> cluster() = 0;
  /// The store's use of memory and disk, as far as it is this node's own. Thread-safe.
  virtual NodeReading Read() { return {}; }
  /// A line for the start-up message.
  virtual std::string Describe() const = 0;
  /// How many jobs Open found. Nothing if other nodes use the store too.
  virtual std::optional<uint64_t> jobs_recovered() const { return std::nullopt; }

  /// The loops are about to run.
  virtual void Start() = 0;
  /// The server begins to stop: other nodes take over the groups of this one. `done` runs on the main loop, soon in any
  /// case.
  virtual void Leave(Task done) = 0;
  /// The loops have stopped. What was accepted is stored when it returns.
  virtual Status Close() = 0;
};

/// The embedded store, which only this node uses.
std::unique_ptr<Backing> MakeJournalBacking(BackingParts parts);
/// Stores on a Redis that many nodes share. Each shard has its own client on its own loop, and so has the
/// coordinator on the main loop.
std::unique_ptr<Backing> MakeRedisBacking(BackingParts parts);

inline std::unique_ptr<Backing> MakeBacking(BackingParts parts) {
  return (parts.config.store == StoreKind::kRedis ? MakeRedisBacking : MakeJournalBacking)(std::move(parts));
}

}  // namespace tocsin
