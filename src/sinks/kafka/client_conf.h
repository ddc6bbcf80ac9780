// The configuration of librdkafka for a producer of this node.
#pragma once

#include <memory>

#include <librdkafka/rdkafka.h>

#include "base/result.h"
#include "base/time.h"
#include "sinks/kafka/options.h"

namespace tocsin::kafka {

struct ConfEnd {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, ConfEnd>;

/// Without the callbacks, but with the log.
Result<Conf> MakeConf(const Options& options, Millis timeout);

}  // namespace tocsin::kafka
