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
/// `unsent`: it never left, so no attempt is used up if the error is that of a broker that cannot be reached.
Delivered VerdictOf(rd_kafka_resp_err_t error, Millis timeout, std::string_view last_error, bool unsent = false);

/// Whether a broker reports this error for a whole batch: it takes all of its messages or none.
bool IsOfBatch(rd_kafka_resp_err_t error);
/// What is known of a message in such a batch.
struct InBatch {
  bool alone = false;           // it was the only one: it is at fault
  bool keyless = false;         // it has no key,
  bool others_keyless = false;  // and so have others
  bool other_likelier = false;  // another one is more likely to be at fault: it is the largest, or the first
  size_t place = 0;             // among those that the error is reported for
};
/// What such an error means for one message. Kafka took nothing of the batch. A compacted topic forbids records without
/// a key, so beside one of those a record with a key is not at fault. Of other errors the likeliest message is blamed.
/// Those that are not use up no attempt, and come again at different times: one at fault will be alone, and be known.
Delivered VerdictInBatch(rd_kafka_resp_err_t error, InBatch message);

/// Letters, digits, ".", "_" and "-"; 1 to 249 of them; not "." or "..". Otherwise what is wrong with the name.
Status CheckTopicName(std::string_view name, std::string_view shown);
inline Status CheckTopicName(std::string_view name) { return CheckTopicName(name, name); }

}  // namespace tocsin::kafka
