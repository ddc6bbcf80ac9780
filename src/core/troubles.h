// Troubles: why shards' stores can do nothing at this moment, so that the node can say that it is not ready. Such
// trouble passes by itself; calls are taken all the while.
//
// Threads: all of it is thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tocsin {

class Troubles {
 public:
  explicit Troubles(size_t shards) : by_shard_(shards) {}

  void Set(size_t shard, std::optional<Error> trouble) {
    const std::lock_guard lock(mutex_);
    by_shard_[shard].swap(trouble);
  }

  /// Ok unless all shards have one. What one of several servers does to a part of the jobs it does on every node: nodes
  /// that were not ready for it would be taken out of service all at once, and with them the rest of the jobs.
  Status OfAll() const {
    const std::lock_guard lock(mutex_);
    for (const auto& trouble : by_shard_) {
      if (!trouble) return {};
    }
    return std::unexpected(*by_shard_.front());
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::optional<Error>> by_shard_;
};

}  // namespace tocsin
