// NodeStore: the embedded store of a node: the journal of one data folder and a ShardStore for each shard.
#pragma once

#include "metrics/registry.h"
#include "storage/journal/scan.h"
#include "storage/journal/shard_store.h"

namespace tocsin::journal {

struct Options {
  std::string folder;
  uint32_t shards = 1;
  Durability durability = Durability::kFsync;
  Millis sync_interval{50};           // of Durability::kInterval
  uint64_t segment_bytes = 64 << 20;  // of a new folder; an existing one keeps its own
  uint64_t memory_limit_bytes = 0;    // 0: none
  PushMemory* push_memory = nullptr;  // counts against memory_limit_bytes too; outlives the store
  size_t topics = 0;                  // the tables have room for so many from the start
  bool prewrite = true;               // segments; otherwise they are sparse, which is enough for tests
  Millis slow_sync{500};              // a sync that takes longer is logged; 0: none is
  bool begin_anew = false;            // also in a folder that held a journal whose segments are all gone
};

class NodeStore {
 public:
  /// Locks the folder, recovers its jobs, restores `clock` to the last moment that the journal knows, and begins a new
  /// generation. Refuses a folder that is in use, damaged, of an unknown format, or has lost all its segments.
  static Result<std::unique_ptr<NodeStore>> Open(FileSystem& fs, const Options& options, Clock& clock);

  Store& store(uint32_t shard) { return *shards_[shard]; }
  uint32_t shards() const { return static_cast<uint32_t>(shards_.size()); }
  Journal& journal() { return *journal_; }

  /// The answers of the shard's store run on `loop`. Before Start.
  void Bind(uint32_t shard, Loop& loop) { shards_[shard]->Bind(loop); }
  /// Adds the journal's figures to `metrics`, which outlives this. Before Start.
  void Observe(metrics::Registry& metrics);
  /// Starts the committer. Tests that drive the journal by hand do not.
  void Start() {
    use_.chunks.Serve();
    journal_->StartThreads();
  }
  /// Makes everything durable. Called when no loop calls the stores any more. Runs the answers that still wait.
  Status Close();

  /// What recovery found, for the log and the start-up message.
  const Scanned& scanned() const { return scanned_; }
  uint64_t jobs_recovered() const { return jobs_recovered_; }
  /// What memory_limit is compared with.
  uint64_t memory_bytes() const { return use_.memory_bytes; }
  /// Of topics, that it keeps.
  size_t names() const { return use_.topics(); }

 private:
  explicit NodeStore(const Options& options) : use_(options.memory_limit_bytes, options.topics, options.push_memory) {
    if (options.push_memory != nullptr) options.push_memory->CountJobs(use_.memory_bytes);
  }

  std::unique_ptr<FolderLock> lock_;
  NodeUse use_;
  Scanned scanned_;
  uint64_t jobs_recovered_ = 0;
  std::vector<std::unique_ptr<ShardStore>> shards_;
  std::unique_ptr<Journal> journal_;  // destroyed before the shards: its committer wakes their lanes
  metrics::Registry::Registration shown_;
};

}  // namespace tocsin::journal
