// Work on all the shards of a node, and on one of them from another.
#pragma once

#include <functional>
#include <utility>

#include "core/shard.h"

namespace tocsin {

/// Runs `work` on the shard: at once where that is the thread we are on.
template <class Work>
void RunOn(Shard& here, Shard& there, Work work) {
  if (&here == &there) return work();
  there.Send(std::move(work));
}

/// Runs `work` on every shard, then `all` on `origin`, with the first error if there is one. On the thread of `origin`.
void OnEvery(Node& node, Shard& origin, const std::function<void(Shard&, Done<void>)>& work, Done<void> all);

}  // namespace tocsin
