// From the configuration to the options of the sinks of Kafka and RabbitMQ; reads the password files.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "sinks/kafka/options.h"
#include "sinks/rabbitmq/options.h"

namespace tocsin {

/// kafka.brokers is set. An error names the option whose file is at fault.
Result<kafka::Options> KafkaOptionsOf(const Config& config);
/// rabbitmq.url is set.
Result<rabbitmq::Options> RabbitmqOptionsOf(const Config& config);

}  // namespace tocsin
