// How far replicas are behind, for the topologies of redis_servers.h.
#pragma once

#include <memory>
#include <span>

#include "real/redis_servers.h"

namespace tocsin::real {

/// Whether every server that is awake and a replica has all that its master had a moment ago.
bool InStep(std::span<const std::unique_ptr<RedisServer>> servers);

/// Whether the server says that it is a master.
bool IsMaster(RedisServer& server);

RedisServer& ServerAt(std::span<const std::unique_ptr<RedisServer>> servers, uint16_t port);

}  // namespace tocsin::real
