// JournalBacking: the embedded store, which only this node uses.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "server/backing.h"
#include "server/cluster_metrics.h"
#include "storage/journal/open.h"

namespace tocsin {

class JournalBacking final : public Backing {
 public:
  explicit JournalBacking(BackingParts parts);

  Status Open(const std::function<bool()>& go_on) override;
  Store& store(uint32_t shard) override { return node_->store(shard); }
  std::shared_ptr<Cluster> cluster() override { return cluster_; }
  std::string Describe() const override;
  void Start() override;
  void Leave(Task done) override { done(); }
  Status Close() override { return node_->Close(); }

 private:
  const BackingParts parts_;
  const std::shared_ptr<Cluster> cluster_;
  ClusterMetrics metrics_;
  std::unique_ptr<FileSystem> file_system_;
  std::unique_ptr<journal::NodeStore> node_;
};

}  // namespace tocsin
