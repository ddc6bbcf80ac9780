// From the configuration to what the clients of Redis and ZooKeeper take; reads the files of secrets.
#pragma once

#include <string>

#include "base/result.h"
#include "clients/redis/client.h"
#include "config/config.h"
#include "coordination/zookeeper/coordinator.h"

namespace tocsin {

/// An error names the option whose file is at fault.
Result<redis::Options> RedisOptionsOf(const Config& config);
Result<ZookeeperOptions> ZookeeperOptionsOf(const Config& config);

/// "10.0.0.1:6379,10.0.0.2:6379"
std::string AddressesText(const Addresses& addresses);

}  // namespace tocsin
