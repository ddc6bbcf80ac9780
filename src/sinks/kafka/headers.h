// The headers of a message: the job's own, then those of the delivery. Ours come last, because readers take the last of
// several headers with the same name.
#pragma once

#include <string_view>

#include <librdkafka/rdkafka.h>

#include "model/job.h"

namespace tocsin::kafka {

/// The caller destroys them, unless a message takes them.
rd_kafka_headers_t* MakeHeaders(std::string_view topic, const JobView& job);

}  // namespace tocsin::kafka
