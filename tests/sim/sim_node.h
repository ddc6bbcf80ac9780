// SimNode: an embedded store for tests, of one shard, on a simulated disk and a virtual clock, with nothing running by
// itself: the test commits, maintains, cuts the power and opens again.
#pragma once

#include <memory>

#include "base/clock.h"
#include "sim/manual_loop.h"
#include "sim/sim_file.h"
#include "storage/journal/open.h"

namespace tocsin::journal {

class SimNode {
 public:
  explicit SimNode(Options options = SmallOptions(), std::unique_ptr<SimFileSystem> disk = nullptr)
      : options_(std::move(options)), disk_(disk ? std::move(disk) : std::make_unique<SimFileSystem>()) {}

  static Options SmallOptions() {
    Options options;
    options.folder = "data";
    options.segment_bytes = 64 << 10;
    return options;
  }

  Status Open() {
    auto node = NodeStore::Open(*disk_, options_, clock_);
    if (!node) return std::unexpected(std::move(node).error());
    node_ = std::move(*node);
    for (uint32_t shard = 0; shard < node_->shards(); ++shard) node_->Bind(shard, loop_);
    return {};
  }
  /// What the committer's threads do, until there is nothing left to do.
  void Pump() {
    if (!node_) return;
    do {
      while (node_->journal().Commit()) {
      }
      node_->journal().Maintain();
    } while (loop_.RunAll() > 0);
  }
  Status Close() {
    Pump();
    TOCSIN_TRY(node_->Close());
    node_.reset();
    return {};
  }
  Status CloseAndOpen() {
    TOCSIN_TRY(Close());
    return Open();
  }
  /// The disk becomes one of those that a power cut now, or when it was, could have left. The machine boots at once.
  void CutPower(Survive choice, uint64_t seed) {
    auto survivors = disk_->Survivors(choice, seed);
    node_.reset();
    loop_.Forget();
    disk_ = std::move(survivors);
    clock_.Reboot(Millis(0));
  }

  NodeStore& node() { return *node_; }
  bool open() const { return node_ != nullptr; }
  Store& store(uint32_t shard = 0) { return node_->store(shard); }
  SimFileSystem& disk() { return *disk_; }
  VirtualClock& clock() { return clock_; }
  ManualLoop& loop() { return loop_; }
  const Options& options() const { return options_; }

 private:
  Options options_;
  std::unique_ptr<SimFileSystem> disk_;
  VirtualClock clock_{FromMs(1'800'000'000'000), 1};
  ManualLoop loop_;
  std::unique_ptr<NodeStore> node_;
};

}  // namespace tocsin::journal
