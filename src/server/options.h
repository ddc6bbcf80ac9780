// From the configuration to the options of the clients of Redis, ZooKeeper, Kafka, RabbitMQ and MySQL; reads the
// password files. An error names the option that is at fault.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "clients/mysql/options.h"
#include "clients/redis/client.h"
#include "config/config.h"
#include "coordination/zookeeper/coordinator.h"
#include "sinks/kafka/factory.h"
#include "sinks/rabbitmq/options.h"

namespace tocsin {

/// Its error says which option or part it is about.
template <class T>
Result<T> Prefixed(std::string_view context, Result<T> result) {
  if (!result) return std::unexpected(std::move(result).error().Prefixed(context));
  return result;
}

/// The only line of the file of the option `key`; empty if the path is. Errors name the option and the path, and hold
/// nothing of the line.
Result<std::string> PasswordOf(std::string_view key, const std::string& path);

Result<redis::Options> RedisOptionsOf(const Config& config);
Result<ZookeeperOptions> ZookeeperOptionsOf(const Config& config);
/// kafka.brokers is set.
Result<kafka::Options> KafkaOptionsOf(const Config& config);
/// rabbitmq.url is set.
Result<rabbitmq::Options> RabbitmqOptionsOf(const Config& config);
/// outbox.url is set.
Result<mysql::Options> OutboxOptionsOf(const Config& config);

/// "10.0.0.1:6379,10.0.0.2:6379"
std::string AddressesText(const Addresses& addresses);

}  // namespace tocsin
