// From the configuration to what the sinks of Kafka and RabbitMQ take; reads the files of passwords.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "sinks/kafka/options.h"
#include "sinks/rabbitmq/options.h"

namespace tocsin {

/// Without brokers where none are configured. An error names the option whose file is at fault.
Result<KafkaOptions> KafkaOptionsOf(const Config& config);
/// Where rabbitmq.url is set.
Result<rabbitmq::Options> RabbitmqOptionsOf(const Config& config);

}  // namespace tocsin
