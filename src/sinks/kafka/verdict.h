// The outcome of a job for which librdkafka or a broker reported an error, and which names a topic of Kafka may have.
// Pure.
#pragma once

#include <string_view>

#include <librdkafka/rdkafka.h>

#include "base/result.h"
#include "base/time.h"
#include "spi/sink.h"

namespace tocsin::kafka {

/// Of a report, or of a message that librdkafka did not take. `last_error`: the client's last error; may be empty.
Delivered VerdictOf(rd_kafka_resp_err_t error, Millis timeout, std::string_view last_error);

/// Whether a broker reports this error for a whole batch: it takes all of its messages or none.
bool IsOfBatch(rd_kafka_resp_err_t error);
/// What such an error means for one message: only one that was alone in its batch is known to be at fault.
Delivered VerdictInBatch(rd_kafka_resp_err_t error, bool alone);

/// Letters, digits, ".", "_" and "-"; 1 to 249 of them; not "." or "..". Otherwise what is wrong with the name.
Status CheckTopicName(std::string_view name, std::string_view shown);
inline Status CheckTopicName(std::string_view name) { return CheckTopicName(name, name); }

}  // namespace tocsin::kafka
