// The metrics of a node among others; every kind of backing fills it in. The figures are thread-safe.
#pragma once

#include <memory>

#include "metrics/registry.h"

namespace tocsin {

struct ClusterMetrics {
  explicit ClusterMetrics(metrics::Registry& registry)
      : members(registry.GetGauge("tocsin_cluster_members",
                                  "Nodes that share the store, as this one knows. 0: it is not registered itself.")),
        owned_groups(registry.GetGauge("tocsin_owned_groups", "Groups of slots that this node looks after.")),
        takeovers(registry.GetCounter("tocsin_takeovers_total", "Groups that this node began to look after.")) {}

  const std::shared_ptr<metrics::Gauge> members;
  const std::shared_ptr<metrics::Gauge> owned_groups;
  const std::shared_ptr<metrics::Counter> takeovers;
};

}  // namespace tocsin
