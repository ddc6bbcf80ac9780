// What the server shows about itself: what was built, its limits, the process, and the disk. Everything is read when
// somebody asks, on the thread of the scrape.
#pragma once

#include "config/config.h"
#include "metrics/registry.h"

namespace tocsin {

/// Shows them in `metrics` until the registration ends. `connections_max`: how many the listeners take.
[[nodiscard]] metrics::Registry::Registration ShowNodeFigures(metrics::Registry& metrics, const Config& config,
                                                              size_t connections_max);

}  // namespace tocsin
