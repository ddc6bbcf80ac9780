// The headers of a message: the job's own, then what Tocsin says of the delivery. Ours come last, since readers take
// the last of several headers of one name.
#pragma once

#include <string_view>

#include <librdkafka/rdkafka.h>

#include "model/job.h"

namespace tocsin::kafka {

/// The caller's to destroy, unless a message takes them.
rd_kafka_headers_t* MakeHeaders(std::string_view topic, const JobView& job);

}  // namespace tocsin::kafka
