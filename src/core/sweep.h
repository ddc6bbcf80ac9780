// A sweep over all jobs of a topic on one shard, in batches, between which other work gets its turn.
#pragma once

#include <string>

#include "core/shard.h"

namespace tocsin {

/// How many jobs it changed. On the shard's thread.
void SweepAll(Shard& shard, const std::string& topic, SweepKind kind, Done<size_t> done);

}  // namespace tocsin
