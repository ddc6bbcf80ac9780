// The limits of this machine, measured beside the servers: what its disk and its loopback can do, and a probe of a
// job's whole life with nothing but frames, an append with CRC and a group fdatasync.
#pragma once

#include "load/json.h"
#include "load/options.h"

namespace tocsin::bench {

Json MeasureLimits(const Options& options);

}  // namespace tocsin::bench
